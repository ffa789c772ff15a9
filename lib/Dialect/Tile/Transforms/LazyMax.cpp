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
// maximum, too: log2(e) m is rounded by more than a weight can bear. Such a row
// keeps its sum times 2^64, which the test meets without a look at m: what is
// compared is the new sum of the row. (Of f16 weights it is l + 2^49
// rowsum(P).)
//
// Where scores are c S + r n, a rate times a position n (ALiBi), the bias goes
// into the reference,
//
//   P = exp(c * S + (r * n - m))
//
// whose part in brackets does not wait for S, and is that of the row's first
// position plus constants. Only a step that is done once more needs the scores.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/ScoreBound.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILELAZYMAX
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// A softmax and the one place where its correction goes.
struct LazyStep {
  OnlineSoftmaxOp softmax;
  vector::BroadcastOp stretched; // of the correction
  arith::MulFOp rescaled;        // output * stretched
  Value output;
  Operation *rounding = nullptr; // of the weights, their only use; or null
  bool isF16 = false;            // what the weights are rounded to
};

/// What `sum` adds to scores, which are `unbiased` times `factor`.
struct Bias {
  math::FmaOp sum;
  Value number, rate;
  Value unbiased;
  arith::MulFOp scaled; // unbiased * factor; or null
  double factor = 1;
};
} // namespace

static FailureOr<LazyStep> matchLazyStep(OnlineSoftmaxOp softmax,
                                         StringRef &reason) {
  LazyStep step;
  step.softmax = softmax;
  if (!softmax.getExp2()) {
    reason = "the exponential is not an exp2";
    return failure();
  }
  if (softmax.getCorrection().hasOneUse())
    step.stretched =
        dyn_cast<vector::BroadcastOp>(*softmax.getCorrection().user_begin());
  if (step.stretched && step.stretched->hasOneUse())
    step.rescaled = dyn_cast<arith::MulFOp>(*step.stretched->user_begin());
  if (!step.rescaled || step.rescaled.getRhs() != step.stretched ||
      step.rescaled->getBlock() != softmax->getBlock()) {
    reason = "the correction does not only rescale the output";
    return failure();
  }
  step.output = step.rescaled.getLhs();
  Operation *producer = step.output.getDefiningOp();
  if (producer && producer->getBlock() == softmax->getBlock() &&
      !producer->isBeforeInBlock(softmax)) {
    reason = "the output is computed behind the softmax";
    return failure();
  }
  if (softmax.getProbabilities().hasOneUse()) {
    Operation *user = *softmax.getProbabilities().user_begin();
    if (isa<arith::TruncFOp>(user) && user->getBlock() == softmax->getBlock())
      step.rounding = user;
  }
  step.isF16 =
      llvm::any_of(softmax.getProbabilities().getUsers(), [](Operation *user) {
        return isa<arith::TruncFOp>(user) &&
               getElementTypeOrSelf(user->getResult(0)).isF16();
      });
  if (softmax.getBounded())
    return step;
  for (Value statistic : {softmax.getNewMax(), softmax.getNewSum()})
    if (!statistic.hasOneUse() || !isa<scf::YieldOp>(*statistic.user_begin())) {
      reason = "the loop uses a row's maximum or sum";
      return failure();
    }
  return step;
}

/// scores = unbiased * factor + number * rate: a position as a float, times
/// what does not change in the loop.
static std::optional<Bias> matchBias(Value scores) {
  auto sum = scores.getDefiningOp<math::FmaOp>();
  auto loop = sum ? dyn_cast<scf::ForOp>(sum->getParentOp()) : nullptr;
  if (!loop || !scores.hasOneUse())
    return std::nullopt;
  Bias bias = {sum, sum.getA(), sum.getB(), sum.getC(), nullptr};
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

/// `rate` times `factor`; where one number is stretched to a tile, once.
static Value multiplyRate(OpBuilder &b, Location loc, Value rate,
                          float factor) {
  auto stretched = rate.getDefiningOp<vector::BroadcastOp>();
  Value source = stretched ? stretched.getSource() : rate;
  Value constant =
      isa<VectorType>(source.getType())
          ? splat(b, loc, source.getType(), factor)
          : arith::ConstantOp::create(b, loc, b.getF32FloatAttr(factor));
  Value product = b.createOrFold<arith::MulFOp>(loc, source, constant);
  if (!stretched)
    return product;
  return vector::BroadcastOp::create(b, loc, rate.getType(), product);
}

//===----------------------------------------------------------------------===//
// Sums of rows with a large maximum
//===----------------------------------------------------------------------===//

/// `sum`, times `factor` where `max` is large.
static Value scaleFarSum(OpBuilder &b, Location loc, Value sum, Value max,
                         float factor) {
  Type rowType = max.getType();
  Value isFar = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGE,
                                      math::AbsFOp::create(b, loc, max),
                                      splat(b, loc, rowType, maxFoldedScore));
  // A product: each lane may keep its own part of the sum (warp-defer-sum).
  Value factors =
      arith::SelectOp::create(b, loc, isFar, splat(b, loc, rowType, factor),
                              splat(b, loc, rowType, 1.0f));
  return arith::MulFOp::create(b, loc, sum, factors);
}

static Value markSum(OpBuilder &b, Location loc, Value sum, Value max) {
  return scaleFarSum(b, loc, sum, max, sumLimit);
}

static Value unmarkSum(OpBuilder &b, Location loc, Value sum, Value max) {
  return scaleFarSum(b, loc, sum, max, 1 / sumLimit);
}

/// Lets a step that stays as it is take and give marked sums.
static void markStep(RewriterBase &b, OnlineSoftmaxOp step) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(step);
  Location loc = step.getLoc();
  // No sum is marked before the first step.
  if (!matchPattern(step.getSum(), m_AnyZeroFloat()))
    step.getSumMutable().assign(
        unmarkSum(b, loc, step.getSum(), step.getMax()));
  b.setInsertionPointAfter(step);
  Value marked = markSum(b, loc, step.getNewSum(), step.getNewMax());
  b.replaceUsesWithIf(step.getNewSum(), marked, [&](OpOperand &use) {
    return !use.getOwner()->isBeforeInBlock(marked.getDefiningOp()) &&
           use.getOwner() != marked.getDefiningOp();
  });
}

namespace {
/// A loop and which of its values are the maximum and the sum of a row.
struct CarriedStatistics {
  scf::ForOp loop;
  unsigned max, sum;
};
} // namespace

/// Of the loop around a step that matchLazyStep takes.
static CarriedStatistics findCarried(OnlineSoftmaxOp softmax) {
  return {cast<scf::ForOp>(softmax->getParentOp()),
          softmax.getNewMax().use_begin()->getOperandNumber(),
          softmax.getNewSum().use_begin()->getOperandNumber()};
}

/// Removes the marks behind a loop, but for what goes on in another loop.
static void unmarkResults(RewriterBase &b, CarriedStatistics carried) {
  Value sum = carried.loop.getResult(carried.sum);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : sum.getUses())
    if (!isa<scf::ForOp>(use.getOwner()))
      uses.push_back(&use);
  if (uses.empty())
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(carried.loop);
  Value unmarked = unmarkSum(b, carried.loop.getLoc(), sum,
                             carried.loop.getResult(carried.max));
  for (OpOperand *use : uses)
    b.modifyOpInPlace(use->getOwner(), [&] { use->set(unmarked); });
}

LogicalResult attn::tile::makeMaximumLazy(RewriterBase &b,
                                          OnlineSoftmaxOp softmax,
                                          StringRef &reason) {
  FailureOr<LazyStep> matched = matchLazyStep(softmax, reason);
  if (failed(matched))
    return failure();
  LazyStep step = *matched;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(softmax);
  Location loc = softmax.getLoc();
  Value scores = softmax.getScores(), m = softmax.getMax(),
        l = softmax.getSum();
  auto tileType = cast<VectorType>(scores.getType());
  auto rowType = cast<VectorType>(m.getType());
  int64_t rows = rowType.getDimSize(0);

  // With the old maximum.
  Value offset = arith::MulFOp::create(
      b, loc, m, splat(b, loc, rowType, -llvm::numbers::log2e));
  offset = vector::BroadcastOp::create(b, loc, tileType, offset);
  std::optional<Bias> bias = matchBias(scores);
  Value unbiased = bias ? bias->unbiased : scores;
  double scale = bias ? bias->factor : 1;
  Value factor = splat(b, loc, tileType, scale * factorOf(softmax));
  if (bias) {
    Value rate = multiplyRate(b, loc, bias->rate, factorOf(softmax));
    offset = math::FmaOp::create(b, loc, bias->number, rate, offset,
                                 arith::FastMathFlags::reassoc);
  }
  Value weights = math::Exp2Op::create(
      b, loc, math::FmaOp::create(b, loc, unbiased, factor, offset));
  Value sums = vector::MultiDimReductionOp::create(
      b, loc, weights,
      splat(b, loc, VectorType::get({rows}, b.getF32Type()), 0.0f),
      ArrayRef<bool>{false, true}, vector::CombiningKind::ADD);
  sums = vector::ShapeCastOp::create(b, loc, rowType, sums);
  Value newSum = arith::AddFOp::create(b, loc, l, sums);
  Value tested = softmax.getBounded() ? sums : newSum;
  float limit = step.isF16 && softmax.getBounded() ? f16Limit : sumLimit;
  if (step.isF16 && !softmax.getBounded())
    tested = math::FmaOp::create(
        b, loc, sums, splat(b, loc, rowType, sumLimit / f16Limit), l);
  Value tooLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGE,
                                         tested, splat(b, loc, rowType, limit));
  Value no = arith::ConstantIntOp::create(b, loc, 0, 1);
  Value redo = vector::MultiDimReductionOp::create(b, loc, tooLarge, no,
                                                   ArrayRef<bool>{true, true},
                                                   vector::CombiningKind::OR);

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
          again = inner.clone(*bias->sum.getOperation(), mapping)->getResult(0);
        }
        bool isMarked = !softmax.getBounded();
        auto proper = OnlineSoftmaxOp::create(
            inner, loc, again, m, isMarked ? unmarkSum(inner, loc, l, m) : l,
            softmax.getScale(), /*guard=*/true, /*exp2=*/true, /*exact=*/false,
            softmax.getBounded());
        Value sum = proper.getNewSum();
        if (isMarked)
          sum = markSum(inner, loc, sum, proper.getNewMax());
        scf::YieldOp::create(inner, loc,
                             ValueRange{round(inner, proper.getProbabilities()),
                                        proper.getNewMax(), sum,
                                        proper.getCorrection()});
      },
      [&](OpBuilder &inner, Location loc) {
        Value one = splat(inner, loc, rowType, 1.0f);
        scf::YieldOp::create(inner, loc, ValueRange{rounded, m, newSum, one});
      });
  // By itself, so that what adds to the output has until then to end.
  auto rescaling = scf::IfOp::create(
      b, loc, redo,
      [&](OpBuilder &inner, Location loc) {
        Value correction = vector::BroadcastOp::create(
            inner, loc, step.output.getType(), branch.getResult(3));
        Value rescaled =
            arith::MulFOp::create(inner, loc, step.output, correction);
        scf::YieldOp::create(inner, loc, rescaled);
      },
      [&](OpBuilder &inner, Location loc) {
        scf::YieldOp::create(inner, loc, step.output);
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

/// The steps of a kernel: those in its loops, and the first ones before them.
static LogicalResult findSteps(Operation *root,
                               SmallVectorImpl<OnlineSoftmaxOp> &inLoops,
                               SmallVectorImpl<OnlineSoftmaxOp> &first) {
  bool isPlain = true;
  root->walk([&](OnlineSoftmaxOp op) {
    Operation *parent = op->getParentOp();
    (isa<scf::ForOp>(parent) ? inLoops : first).push_back(op);
    isPlain &= isa<scf::ForOp, scf::ForallOp, func::FuncOp>(parent);
  });
  return success(isPlain);
}

namespace {
struct TileLazyMax final : attn::tile::impl::TileLazyMaxBase<TileLazyMax> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<OnlineSoftmaxOp> steps, first;
    bool isPlain = succeeded(findSteps(getOperation(), steps, first));
    auto all = llvm::concat<OnlineSoftmaxOp>(steps, first);
    bool isBounded =
        llvm::all_of(all, [](OnlineSoftmaxOp op) { return op.getBounded(); });
    // Sums that are marked are so in every step.
    if (!isBounded)
      isPlain &= matchAll(steps);
    for (OnlineSoftmaxOp op : all)
      op.setBounded(isBounded);
    if (!isBounded && !isPlain)
      return;

    IRRewriter rewriter(&getContext());
    SmallVector<CarriedStatistics> loops;
    for (OnlineSoftmaxOp op : steps) {
      Location loc = op.getLoc();
      StringRef reason;
      if (!isBounded)
        loops.push_back(findCarried(op));
      if (failed(makeMaximumLazy(rewriter, op, reason)))
        miss(loc, reason);
    }
    if (isBounded || steps.empty())
      return;
    for (OnlineSoftmaxOp op : first)
      markStep(rewriter, op);
    for (CarriedStatistics carried : loops)
      unmarkResults(rewriter, carried);
  }

  bool matchAll(ArrayRef<OnlineSoftmaxOp> steps) {
    bool matches = true;
    for (OnlineSoftmaxOp op : steps) {
      StringRef reason;
      if (succeeded(matchLazyStep(op, reason)))
        continue;
      miss(op.getLoc(), reason);
      matches = false;
    }
    return matches;
  }

  void miss(Location loc, StringRef reason) {
    remark::missed(loc,
                   remark::RemarkOpts::name("lazy-max").category(getArgument()))
        << reason;
  }
};
} // namespace
