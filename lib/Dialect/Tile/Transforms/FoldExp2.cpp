//===- FoldExp2.cpp - scores to powers of two -----------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/ScoreBound.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEFOLDEXP2
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The value of a constant whose elements are all equal.
static std::optional<APFloat> splatValue(Value value) {
  DenseElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat())
    return std::nullopt;
  return constant.getSplatValue<APFloat>();
}

LogicalResult attn::tile::foldScale(RewriterBase &rewriter,
                                    OnlineSoftmaxOp op) {
  // scores = [select mask,] product [, -inf]; -inf scales to -inf.
  auto mask = op.getScores().getDefiningOp<arith::SelectOp>();
  if (mask && !isMinusInf(mask.getFalseValue()))
    return failure();
  Value scores = mask ? mask.getTrueValue() : Value(op.getScores());
  auto product = scores.getDefiningOp<arith::MulFOp>();
  if (!product)
    return failure();
  Value unscaled = product.getLhs();
  std::optional<APFloat> factor = splatValue(product.getRhs());
  if (!factor) {
    unscaled = product.getRhs();
    factor = splatValue(product.getLhs());
  }
  if (!factor)
    return failure();
  APFloat scale = op.getScale() * *factor;
  if (!scale.isFiniteNonZero() || scale.isNegative() || scale.isDenormal())
    return failure();

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  if (mask)
    unscaled =
        arith::SelectOp::create(rewriter, mask.getLoc(), mask.getCondition(),
                                unscaled, mask.getFalseValue());
  rewriter.modifyOpInPlace(op, [&] {
    op.getScoresMutable().assign(unscaled);
    op.setScale(scale);
  });
  if (mask && mask->use_empty())
    rewriter.eraseOp(mask);
  if (product->use_empty())
    rewriter.eraseOp(product);
  return success();
}

/// x * a * b becomes x * (a * b), with one rounding instead of two: a softcap
/// divides the scaled scores once more.
static void mergeFactors(RewriterBase &rewriter, arith::MulFOp outer) {
  auto inner = outer.getLhs().getDefiningOp<arith::MulFOp>();
  if (!inner || !inner->hasOneUse() || inner->getBlock() != outer->getBlock())
    return;
  std::optional<APFloat> a = splatValue(inner.getRhs());
  std::optional<APFloat> b = splatValue(outer.getRhs());
  if (!a || !b)
    return;
  APFloat factor = *a * *b;
  if (!factor.isNormal())
    return;
  auto type = cast<ShapedType>(outer.getType());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(outer);
  Value constant = arith::ConstantOp::create(
      rewriter, outer.getLoc(), DenseElementsAttr::get(type, factor));
  rewriter.replaceOpWithNewOp<arith::MulFOp>(outer, inner.getLhs(), constant);
  rewriter.eraseOp(inner);
}

//===----------------------------------------------------------------------===//
// Biases
//===----------------------------------------------------------------------===//

namespace {
/// scores = product + sign * number * rate
struct Bias {
  Operation *sum;
  Value product;
  arith::MulFOp part; // number * rate
  Value number;       // an integer, as a float
  Value rate;         // from outside of the loop
};
} // namespace

static std::optional<Bias> matchBias(Value scores) {
  Operation *sum = scores.getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::SubFOp>(sum) ||
      !scores.hasOneUse())
    return std::nullopt;
  for (unsigned side : {1, 0}) {
    if (side == 0 && isa<arith::SubFOp>(sum))
      continue;
    auto part = sum->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!part || !part->hasOneUse())
      continue;
    for (auto [number, rate] :
         {std::pair<Value, Value>{part.getLhs(), part.getRhs()},
          std::pair<Value, Value>{part.getRhs(), part.getLhs()}}) {
      auto stretched = rate.getDefiningOp<vector::BroadcastOp>();
      bool isFixed = splatValue(rate) ||
                     (stretched && stretched.getSource().getParentBlock() !=
                                       part->getBlock());
      if (isWholeNumber(number) && isFixed)
        return Bias{sum, sum->getOperand(1 - side), part, number, rate};
    }
  }
  return std::nullopt;
}

/// -rate, where it was computed.
static Value negate(RewriterBase &rewriter, Value rate) {
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = rate.getLoc();
  auto stretched = rate.getDefiningOp<vector::BroadcastOp>();
  Value source = stretched ? stretched.getSource() : rate;
  rewriter.setInsertionPointAfterValue(source);
  Value negated = rewriter.createOrFold<arith::NegFOp>(loc, source);
  if (!stretched)
    return negated;
  rewriter.setInsertionPoint(stretched);
  return vector::BroadcastOp::create(rewriter, loc, rate.getType(), negated);
}

/// One fma of the number and the rate: what tile-lazy-max takes into the
/// reference.
static void fuseBias(RewriterBase &rewriter, OnlineSoftmaxOp op) {
  // scores = [select mask,] sum [, -inf]
  auto mask = op.getScores().getDefiningOp<arith::SelectOp>();
  if (mask && !isMinusInf(mask.getFalseValue()))
    return;
  Value scores = mask ? mask.getTrueValue() : Value(op.getScores());
  std::optional<Bias> bias = matchBias(scores);
  if (!bias)
    return;
  Value rate = bias->rate;
  if (isa<arith::SubFOp>(bias->sum))
    rate = negate(rewriter, rate);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(bias->sum);
  rewriter.replaceOpWithNewOp<math::FmaOp>(bias->sum, bias->number, rate,
                                           bias->product);
  rewriter.eraseOp(bias->part);
}

/// Products and their sum, with one rounding instead of two.
static void fuseSum(RewriterBase &rewriter, Operation *sum) {
  bool isDifference = isa<arith::SubFOp>(sum);
  for (unsigned side : {0, 1}) {
    auto product = sum->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!product || !product->hasOneUse() ||
        product->getBlock() != sum->getBlock())
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(sum);
    Value factor = product.getLhs(), other = sum->getOperand(1 - side);
    if (isDifference) {
      Value &negated = side == 0 ? other : factor;
      negated = arith::NegFOp::create(rewriter, sum->getLoc(), negated);
    }
    rewriter.replaceOpWithNewOp<math::FmaOp>(sum, factor, product.getRhs(),
                                             other);
    rewriter.eraseOp(product);
    return;
  }
}

/// Whether the scores are known to be small; says so in a remark.
static bool isBounded(OnlineSoftmaxOp op) {
  std::optional<double> bound = boundMagnitude(op.getScores());
  if (bound)
    *bound *= op.getScale().convertToDouble();
  auto options =
      remark::RemarkOpts::name("score-bound").category("tile-fold-exp2");
  if (bound && *bound <= maxFoldedScore) {
    remark::passed(op.getLoc(), options)
        << remark::metric("bound", *bound) << "one fma per score";
    return true;
  }
  remark::missed(op.getLoc(), options)
      << "scores are not known to be at most 512: where a row's maximum is "
         "larger, it is subtracted first";
  return false;
}

namespace {
struct TileFoldExp2 final
    : attn::SchedulePass<attn::tile::impl::TileFoldExp2Base<TileFoldExp2>,
                         func::FuncOp, TileForm::Expanded> {
  using Base::Base;

  void transform(RewriterBase &rewriter, func::FuncOp func) override {
    SmallVector<OnlineSoftmaxOp> steps;
    func.walk([&](OnlineSoftmaxOp op) { steps.push_back(op); });
    DecisionPaths exact = DecisionPaths::find(func.getBody());
    for (OnlineSoftmaxOp op : steps) {
      if (op.getExact()) {
        missed("the softmax is exact", op.getLoc());
        continue;
      }
      fuseBias(rewriter, op);
      int64_t numFactors = 0;
      while (succeeded(foldScale(rewriter, op)))
        ++numFactors;
      op.setExp2(true);
      op.setBounded(isBounded(op));
      passed(op.getLoc()) << remark::metric("factors", numFactors);
      SmallVector<arith::MulFOp> products(
          op->getBlock()->getOps<arith::MulFOp>());
      for (arith::MulFOp product : products)
        if (product.getType() == op.getScores().getType() &&
            !exact.contains(product))
          mergeFactors(rewriter, product);
      SmallVector<Operation *> sums;
      for (Operation &sum : *op->getBlock())
        if (isa<arith::AddFOp, arith::SubFOp>(sum) &&
            sum.getResult(0).getType() == op.getScores().getType() &&
            !exact.contains(&sum))
          sums.push_back(&sum);
      for (Operation *sum : sums)
        fuseSum(rewriter, sum);
    }
  }
};
} // namespace
