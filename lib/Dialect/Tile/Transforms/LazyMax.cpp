//===- LazyMax.cpp - a maximum that is updated only when it must be -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference subtracted before the exponential cancels in o / l and in
// m + log(l): any value will do that is not above the true maximum and lets
// nothing overflow. A step therefore keeps the maximum of the steps before,
//
//   P = exp(scale * S - m);  l = l + rowsum(P)
//
// saves the maximum of the block and the rescaling of l and o, and is done once
// more with the true maximum if the row sum of a row is not below a limit:
// 2^64, or 2^15 where the weights are rounded to f16. The test fails also for a
// row that has seen no key yet (its m is -inf and P not a number), so the
// first block is always done properly.
//
// Where scores are not known to be small it must fail for a row with a large
// maximum, too: log2(e) m is rounded by more than a weight can bear. Maxima are
// new only in steps that are done once more, so that these look at them, and
// the loop carries one bit to the next step.
//
// Where scores are c S + r n, a rate times a position n (ALiBi), the bias goes
// into the reference,
//
//   P = exp(c * S + (r * n - m))
//
// whose part in brackets does not wait for S, and is that of the row's first
// position plus constants. So does a bias that is one number for all keys of a
// loop, c S + r, as tile-peel-scores leaves it. Only a step that is done once
// more needs the scores.
//
// A bias that is a position itself, S + n or c S + r n with n the number of a
// key, has rows with large maxima by nature: distances of the farthest keys,
// slopes times positions. There the maximum is subtracted first, in each step,
//
//   P = exp(scores - m)
//
// with one operation per score more, and a large maximum is no reason to do a
// step once more: nearly all steps would be.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILELAZYMAX
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// What `sum` adds to scores, which are `unbiased` times `factor`: `number`
/// times `rate`, or `rate` alone.
struct FusedBias {
  Operation *sum;
  Value number, rate;
  Value unbiased;
  arith::MulFOp scaled; // unbiased * factor; or null
  double factor = 1;
};
} // namespace

/// Why the step of a loop cannot keep its maximum; empty if it can.
static StringRef checkStep(SoftmaxStep &step) {
  if (!step.softmax.getExp2())
    return "the exponential is not an exp2";
  Operation *producer = step.getOutput().getDefiningOp();
  if (producer && producer->getBlock() == step.softmax->getBlock() &&
      !producer->isBeforeInBlock(step.softmax))
    return "the output is computed after the softmax";
  return "";
}

/// scores = unbiased * factor + number * rate: a position as a float, times
/// what does not change in the loop.
static std::optional<FusedBias> matchBias(Value scores) {
  auto sum = scores.getDefiningOp<math::FmaOp>();
  auto loop = sum ? dyn_cast<scf::ForOp>(sum->getParentOp()) : nullptr;
  if (!loop || !scores.hasOneUse())
    return std::nullopt;
  FusedBias bias = {sum, sum.getA(), sum.getB(), sum.getC(), nullptr};
  if (!isWholeNumber(bias.number))
    std::swap(bias.number, bias.rate);
  Value rate = bias.rate;
  if (auto stretched = rate.getDefiningOp<vector::BroadcastOp>())
    rate = stretched.getSource();
  if (!isWholeNumber(bias.number) || !loop.isDefinedOutsideOfLoop(rate))
    return std::nullopt;
  auto scaled = bias.unbiased.getDefiningOp<arith::MulFOp>();
  DenseElementsAttr factor;
  if (scaled && scaled->hasOneUse() &&
      matchPattern(scaled.getRhs(), m_Constant(&factor)) && factor.isSplat()) {
    bias.unbiased = scaled.getLhs();
    bias.scaled = scaled;
    bias.factor = factor.getSplatValue<APFloat>().convertToDouble();
  }
  return bias;
}

/// scores = unbiased * factor + rate: what does not change in the loop, and
/// from key to key.
static std::optional<FusedBias> matchRowBias(Value scores, Type rowType) {
  Operation *sum = scores.getDefiningOp();
  auto loop = sum ? dyn_cast<scf::ForOp>(sum->getParentOp()) : nullptr;
  if (!loop || !scores.hasOneUse() || !isa<math::FmaOp, arith::AddFOp>(sum))
    return std::nullopt;
  auto stretched =
      sum->getOperands().back().getDefiningOp<vector::BroadcastOp>();
  if (!stretched || !loop.isDefinedOutsideOfLoop(stretched.getSource()) ||
      (isa<VectorType>(stretched.getSourceType()) &&
       stretched.getSourceType() != rowType))
    return std::nullopt;
  FusedBias bias = {sum, Value(), stretched.getSource(), sum->getOperand(0),
                    nullptr};
  if (auto fused = dyn_cast<math::FmaOp>(sum)) {
    DenseElementsAttr factor;
    if (!matchPattern(fused.getB(), m_Constant(&factor)) || !factor.isSplat())
      return std::nullopt;
    bias.factor = factor.getSplatValue<APFloat>().convertToDouble();
  }
  return bias;
}

/// Whether a value is a position or a distance, in a tile or along one side of
/// it, or one times a rate.
static bool isPosition(Value value) {
  if (auto stretched = value.getDefiningOp<vector::BroadcastOp>())
    value = stretched.getSource();
  if (!isa<VectorType>(value.getType()))
    return false;
  if (auto product = value.getDefiningOp<arith::MulFOp>())
    return isWholeNumber(product.getLhs()) || isWholeNumber(product.getRhs());
  return isWholeNumber(value);
}

/// Whether scores, those that a mask shows, are the sum of something and a
/// position: large, as these are.
static bool haveAddedPosition(Value scores) {
  if (auto shown = scores.getDefiningOp<arith::SelectOp>())
    scores = shown.getTrueValue();
  Operation *sum = scores.getDefiningOp();
  if (!isa_and_nonnull<math::FmaOp, arith::AddFOp, arith::SubFOp>(sum))
    return false;
  // Of a fused sum the last operand is a term.
  return isPosition(sum->getOperands().back()) ||
         (!isa<math::FmaOp>(sum) && isPosition(sum->getOperand(0)));
}

/// No row sum that a step may keep; and what it is of a block's f16 weights.
static constexpr float sumLimit = 0x1p64f, f16Limit = 0x1p15f;

static Value splat(OpBuilder &b, Location loc, Type type, float value) {
  auto vector = cast<VectorType>(type);
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(vector, APFloat(value)));
}

/// What turns scores into exponents of 2.
static double factorOf(OnlineSoftmaxOp softmax) {
  return softmax.getScale().convertToDouble() * llvm::numbers::log2e;
}

/// `rate` times `factor`.
static Value multiplyRate(OpBuilder &b, Location loc, Value rate,
                          float factor) {
  Value constant =
      isa<VectorType>(rate.getType())
          ? splat(b, loc, rate.getType(), factor)
          : arith::ConstantOp::create(b, loc, b.getF32FloatAttr(factor));
  return b.createOrFold<arith::MulFOp>(loc, rate, constant);
}

/// The same; where one number is stretched to a tile, once.
static Value multiplyTileRate(OpBuilder &b, Location loc, Value rate,
                              float factor) {
  auto stretched = rate.getDefiningOp<vector::BroadcastOp>();
  if (!stretched)
    return multiplyRate(b, loc, rate, factor);
  return vector::BroadcastOp::create(
      b, loc, rate.getType(),
      multiplyRate(b, loc, stretched.getSource(), factor));
}

/// `offset`, of each row, plus `rate`, one number or one of each row, times
/// `factor`.
static Value addRate(OpBuilder &b, Location loc, Value offset, Value rate,
                     float factor) {
  Value added = multiplyRate(b, loc, rate, factor);
  if (!isa<VectorType>(added.getType()))
    added = vector::BroadcastOp::create(b, loc, offset.getType(), added);
  return arith::AddFOp::create(b, loc, offset, added);
}

//===----------------------------------------------------------------------===//
// Large maxima
//===----------------------------------------------------------------------===//

namespace {
/// Whether any row's maximum is large before a step, and where the loop wants
/// to know the same of the next step; null where it does not carry it.
struct FarRows {
  Value before;
  OpOperand *after = nullptr;
};
} // namespace

/// Lets the loop around a step carry the bit beside the maximum. A step whose
/// maximum is not simply carried looks at it.
static FarRows carryFarRows(RewriterBase &b, OnlineSoftmaxOp softmax) {
  OpBuilder::InsertionGuard guard(b);
  Location loc = softmax.getLoc();
  auto loop = dyn_cast<scf::ForOp>(softmax->getParentOp());
  auto max = dyn_cast<BlockArgument>(softmax.getMax());
  bool isCarried =
      loop && max && max.getOwner() == loop.getBody() &&
      max != loop.getInductionVar() &&
      loop.getTiedLoopYieldedValue(max)->get() == softmax.getNewMax();
  if (!isCarried) {
    b.setInsertionPoint(softmax);
    return {isAnyFar(b, loc, softmax.getMax())};
  }
  b.setInsertionPoint(loop);
  Value first = isAnyFar(b, loc, loop.getTiedLoopInit(max)->get());
  loop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, first, /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
        return SmallVector<Value>(added.begin(), added.end());
      }));
  BlockArgument carried = loop.getRegionIterArgs().back();
  return {carried, loop.getTiedLoopYieldedValue(carried)};
}

LogicalResult attn::tile::makeMaximumLazy(RewriterBase &b, scf::ForOp loop,
                                          std::string &reason) {
  FailureOr<SoftmaxStep> matched = matchSoftmaxStep(loop, reason);
  if (failed(matched))
    return failure();
  SoftmaxStep step = *matched;
  if (StringRef why = checkStep(step); !why.empty()) {
    reason = why.str();
    return failure();
  }
  OnlineSoftmaxOp softmax = step.softmax;
  bool isBounded = softmax.getBounded();
  Value scores = softmax.getScores();
  auto rowType = cast<VectorType>(softmax.getMax().getType());
  std::optional<FusedBias> bias = matchBias(scores);
  bool isSubtracted = !isBounded && !bias &&
                      softmax.getScale().isExactlyValue(1) &&
                      haveAddedPosition(scores);
  FarRows far;
  if (!isBounded && !isSubtracted)
    far = carryFarRows(b, softmax);
  Value output = step.getOutput();
  bool isF16 = step.rounding &&
               getElementTypeOrSelf(step.rounding->getResult(0)).isF16();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(softmax);
  Location loc = softmax.getLoc();
  Value m = softmax.getMax(), l = softmax.getSum();
  auto tileType = cast<VectorType>(scores.getType());
  int64_t rows = rowType.getDimSize(0);

  // With the old maximum.
  Value exponents;
  if (isSubtracted) {
    Value reference = vector::BroadcastOp::create(b, loc, tileType, m);
    exponents = arith::MulFOp::create(
        b, loc, arith::SubFOp::create(b, loc, scores, reference),
        splat(b, loc, tileType, factorOf(softmax)));
  } else {
    Value offset = arith::MulFOp::create(
        b, loc, m, splat(b, loc, rowType, -llvm::numbers::log2e));
    if (!bias && (bias = matchRowBias(scores, rowType)))
      offset = addRate(b, loc, offset, bias->rate, factorOf(softmax));
    offset = vector::BroadcastOp::create(b, loc, tileType, offset);
    Value unbiased = bias ? bias->unbiased : scores;
    double scale = bias ? bias->factor : 1;
    Value factor = splat(b, loc, tileType, scale * factorOf(softmax));
    if (bias && bias->number) {
      Value rate = multiplyTileRate(b, loc, bias->rate, factorOf(softmax));
      offset = math::FmaOp::create(b, loc, bias->number, rate, offset,
                                   arith::FastMathFlags::reassoc);
    }
    exponents = math::FmaOp::create(b, loc, unbiased, factor, offset);
  }
  Value weights = math::Exp2Op::create(b, loc, exponents);
  Value sums = vector::MultiDimReductionOp::create(
      b, loc, weights,
      splat(b, loc, VectorType::get({rows}, b.getF32Type()), 0.0f),
      ArrayRef<bool>{false, true}, vector::CombiningKind::ADD);
  sums = vector::ShapeCastOp::create(b, loc, rowType, sums);
  Value newSum = arith::AddFOp::create(b, loc, l, sums);
  float limit = isF16 ? f16Limit : sumLimit;
  Value tooLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGE,
                                         sums, splat(b, loc, rowType, limit));
  Value no = arith::ConstantIntOp::create(b, loc, 0, 1);
  Value redo = vector::MultiDimReductionOp::create(b, loc, tooLarge, no,
                                                   ArrayRef<bool>{true, true},
                                                   vector::CombiningKind::OR);
  if (far.before)
    redo = arith::OrIOp::create(b, loc, redo, far.before);

  // Rounded on both ways, so that the f32 weights do not live beside the scores
  // over the branch.
  auto round = [&](OpBuilder &builder, Value unrounded) -> Value {
    if (!step.rounding)
      return unrounded;
    return arith::TruncFOp::create(
        builder, loc, step.rounding->getResult(0).getType(), unrounded);
  };
  Value rounded = round(b, weights);
  auto branch = scf::IfOp::create(
      b, loc, redo,
      [&](OpBuilder &inner, Location loc) {
        // With the true one; the row may have no key even now.
        Value again = scores;
        if (bias) {
          IRMapping mapping;
          if (bias->scaled)
            inner.clone(*bias->scaled.getOperation(), mapping);
          again = inner.clone(*bias->sum, mapping)->getResult(0);
        }
        auto proper = OnlineSoftmaxOp::create(
            inner, loc, again, m, l, softmax.getScale(), /*guard=*/true,
            /*exp2=*/true, /*exact=*/false, isBounded);
        SmallVector<Value> results = {round(inner, proper.getProbabilities()),
                                      proper.getNewMax(), proper.getNewSum(),
                                      proper.getCorrection()};
        if (far.after)
          results.push_back(isAnyFar(inner, loc, proper.getNewMax()));
        scf::YieldOp::create(inner, loc, results);
      },
      [&](OpBuilder &inner, Location loc) {
        Value one = splat(inner, loc, rowType, 1.0f);
        SmallVector<Value> results = {rounded, m, newSum, one};
        if (far.after)
          results.push_back(no);
        scf::YieldOp::create(inner, loc, results);
      });
  if (far.after)
    far.after->set(branch.getResult(4));
  // By itself, so that what adds to the output has until then to end.
  auto rescaling = scf::IfOp::create(
      b, loc, redo,
      [&](OpBuilder &inner, Location loc) {
        Value correction = vector::BroadcastOp::create(
            inner, loc, output.getType(), branch.getResult(3));
        Value rescaled = arith::MulFOp::create(inner, loc, output, correction);
        scf::YieldOp::create(inner, loc, rescaled);
      },
      [&](OpBuilder &inner, Location loc) {
        scf::YieldOp::create(inner, loc, output);
      });
  b.replaceOp(step.rescaled, rescaling.getResult(0));
  b.eraseOp(step.stretched);
  if (step.rounding)
    b.replaceOp(step.rounding, branch.getResult(0));
  else
    b.replaceAllUsesWith(softmax.getProbabilities(), branch.getResult(0));
  b.replaceAllUsesWith(softmax.getNewMax(), branch.getResult(1));
  b.replaceAllUsesWith(softmax.getNewSum(), branch.getResult(2));
  b.eraseOp(softmax);
  if (bias)
    b.eraseOp(bias->sum);
  if (bias && bias->scaled)
    b.eraseOp(bias->scaled);
  return success();
}

namespace {
struct TileLazyMax final
    : attn::SchedulePass<attn::tile::impl::TileLazyMaxBase<TileLazyMax>,
                         scf::ForOp, TileForm::Expanded> {
  using Base::Base;

  bool isWanted(scf::ForOp loop) override { return bool(findSoftmax(loop)); }

  void transform(RewriterBase &rewriter, scf::ForOp loop) override {
    bool isBounded = findSoftmax(loop).getBounded();
    std::string reason;
    if (failed(makeMaximumLazy(rewriter, loop, reason)))
      return missed(reason);
    passed() << remark::metric("bounded", isBounded ? 1 : 0);
  }
};
} // namespace
