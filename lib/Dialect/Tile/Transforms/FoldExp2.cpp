//===- FoldExp2.cpp - scores to powers of two -----------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"
#include "ValueAxes.h"

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/ScoreBound.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEFOLDEXP2
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static std::optional<APFloat> constantValue(Value value) {
  APFloat constant(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&constant)))
    return std::nullopt;
  return constant;
}

/// What the score function gives where it hides nothing.
static OpOperand &getScore(ScoresOp op) {
  OpOperand &yielded = op.getScore().front().getTerminator()->getOpOperand(0);
  auto select = yielded.get().getDefiningOp<arith::SelectOp>();
  bool hides =
      select && select->hasOneUse() && isMinusInf(select.getFalseValue());
  return hides ? select->getOpOperand(1) : yielded;
}

/// Moves a positive constant factor of the scores into the scale of `softmax`.
static LogicalResult foldScale(RewriterBase &rewriter, ScoresOp op,
                               OnlineSoftmaxOp softmax) {
  OpOperand &score = getScore(op);
  auto product = score.get().getDefiningOp<arith::MulFOp>();
  if (!product || !ValueAxes(op, op.getScore()).isPerScore(product))
    return failure();
  Value unscaled = product.getLhs();
  std::optional<APFloat> factor = constantValue(product.getRhs());
  if (!factor) {
    unscaled = product.getRhs();
    factor = constantValue(product.getLhs());
  }
  if (!factor)
    return failure();
  APFloat scale = softmax.getScale() * *factor;
  if (!scale.isFiniteNonZero() || scale.isNegative() || scale.isDenormal())
    return failure();
  rewriter.modifyOpInPlace(score.getOwner(), [&] { score.set(unscaled); });
  rewriter.modifyOpInPlace(softmax, [&] { softmax.setScale(scale); });
  if (product->use_empty())
    rewriter.eraseOp(product);
  return success();
}

/// x * a * b becomes x * (a * b), with one rounding instead of two: a softcap
/// divides the scaled scores once more.
static void mergeFactors(RewriterBase &rewriter, ValueAxes &axes,
                         arith::MulFOp outer) {
  auto inner = outer.getLhs().getDefiningOp<arith::MulFOp>();
  if (!inner || !inner->hasOneUse() || !axes.isPerScore(inner))
    return;
  std::optional<APFloat> a = constantValue(inner.getRhs());
  std::optional<APFloat> b = constantValue(outer.getRhs());
  if (!a || !b)
    return;
  APFloat factor = *a * *b;
  if (!factor.isNormal())
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(outer);
  Value constant = arith::ConstantOp::create(
      rewriter, outer.getLoc(), rewriter.getFloatAttr(outer.getType(), factor));
  auto merged = rewriter.replaceOpWithNewOp<arith::MulFOp>(
      outer, inner.getLhs(), constant);
  axes.add(merged, merged.getLhs());
  rewriter.eraseOp(inner);
}

/// A bias, number * rate of the row, becomes one fma of these two and the rest:
/// what tile-lazy-max takes into the reference.
static void fuseBias(RewriterBase &rewriter, ScoresOp op) {
  Operation *sum =
      op.getScore().front().getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::SubFOp>(sum) || !sum->hasOneUse())
    return;
  bool isDifference = isa<arith::SubFOp>(sum);
  ValueAxes axes(op, op.getScore());
  for (unsigned side : {1, 0}) {
    if (side == 0 && isDifference)
      return;
    auto bias = sum->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!bias || !bias->hasOneUse())
      continue;
    Value number = bias.getLhs(), rate = bias.getRhs();
    auto areAsNamed = [&] {
      return isWholeNumber(number) && axes.isPerScore(number) &&
             axes.isPerRow(rate);
    };
    if (!areAsNamed())
      std::swap(number, rate);
    if (!areAsNamed())
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    if (isDifference) {
      rewriter.setInsertionPointAfterValue(rate);
      rate = rewriter.createOrFold<arith::NegFOp>(rate.getLoc(), rate);
    }
    rewriter.setInsertionPoint(sum);
    rewriter.replaceOpWithNewOp<math::FmaOp>(sum, number, rate,
                                             sum->getOperand(1 - side));
    rewriter.eraseOp(bias);
    return;
  }
}

/// Products and their sum, with one rounding instead of two.
static void fuseSum(RewriterBase &rewriter, const ValueAxes &axes,
                    Operation *sum) {
  bool isDifference = isa<arith::SubFOp>(sum);
  for (unsigned side : {0, 1}) {
    auto product = sum->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!product || !product->hasOneUse() || !axes.isPerScore(product))
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

/// Fewer operations, and roundings, in the score function; what leads to a
/// decision stays as it is written.
static void simplify(RewriterBase &rewriter, ScoresOp op,
                     const DecisionPaths &exact) {
  Block &block = op.getScore().front();
  ValueAxes axes(op, op.getScore());
  auto isWanted = [&](Operation *inner) {
    return axes.isPerScore(inner->getResult(0)) && !exact.contains(inner);
  };
  for (auto product : llvm::make_early_inc_range(block.getOps<arith::MulFOp>()))
    if (isWanted(product))
      mergeFactors(rewriter, axes, product);
  axes = ValueAxes(op, op.getScore());
  for (Operation &sum : llvm::make_early_inc_range(block.without_terminator()))
    if (isa<arith::AddFOp, arith::SubFOp>(sum) && isWanted(&sum))
      fuseSum(rewriter, axes, &sum);
  eraseDeadOps(rewriter, &block);
  if (block.getTerminator()->getOperand(0) == block.getArgument(0))
    rewriter.eraseBlock(&block);
}

/// Whether the scores are known to be small; says so in a remark.
static bool isBounded(ScoresOp op, OnlineSoftmaxOp softmax) {
  std::optional<double> bound = boundMagnitude(op);
  if (bound)
    *bound *= softmax.getScale().convertToDouble();
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
                         ScoresOp, TileForm::Reversed> {
  using Base::Base;

  void transform(RewriterBase &rewriter, ScoresOp op) override {
    OnlineSoftmaxOp softmax = findSoftmax(op);
    if (!softmax)
      return missed("no softmax takes the scores");
    if (softmax.getExact())
      return missed("the softmax is exact");
    int64_t numFactors = 0;
    DecisionPaths exact = DecisionPaths::find(op.getScore());
    if (op.hasScore()) {
      fuseBias(rewriter, op);
      while (succeeded(foldScale(rewriter, op, softmax)))
        ++numFactors;
    }
    bool bounded = isBounded(op, softmax);
    rewriter.modifyOpInPlace(softmax, [&] {
      softmax.setExp2(true);
      softmax.setBounded(bounded);
    });
    passed() << remark::metric("factors", numFactors);
    if (op.hasScore())
      simplify(rewriter, op, exact);
  }
};
} // namespace
