//===- FoldExp2.cpp - scores to powers of two -----------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
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
/// scores = factor * product + sign * number [* rate]
struct Bias {
  Operation *sum;
  arith::MulFOp scaled; // product * factor
  APFloat factor = APFloat(1.0f);
  Value number; // an integer, as a float
  Value rate;   // from outside of the loop; or null
  bool isNegative = false;
};
} // namespace

/// An integer is far from overflowing, whatever it is multiplied by.
static bool isInteger(Value value) {
  if (auto magnitude = value.getDefiningOp<math::AbsFOp>())
    value = magnitude.getOperand();
  return isa_and_present<arith::SIToFPOp, arith::UIToFPOp>(
      value.getDefiningOp());
}

static std::optional<Bias> matchBias(Value scores) {
  Operation *sum = scores.getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::SubFOp>(sum) ||
      !scores.hasOneUse())
    return std::nullopt;
  Bias bias;
  bias.sum = sum;
  bias.isNegative = isa<arith::SubFOp>(sum);
  Value other = sum->getOperand(1);
  auto takeScaled = [&](Value value) {
    bias.scaled = value.getDefiningOp<arith::MulFOp>();
    std::optional<APFloat> factor =
        bias.scaled ? splatValue(bias.scaled.getRhs()) : std::nullopt;
    if (factor)
      bias.factor = *factor;
    return factor.has_value();
  };
  if (!takeScaled(sum->getOperand(0))) {
    if (bias.isNegative || !takeScaled(other))
      return std::nullopt;
    other = sum->getOperand(0);
  }
  bias.number = other;
  if (auto product = other.getDefiningOp<arith::MulFOp>())
    for (auto [number, rate] :
         {std::pair<Value, Value>{product.getLhs(), product.getRhs()},
          std::pair<Value, Value>{product.getRhs(), product.getLhs()}}) {
      if (auto broadcast = rate.getDefiningOp<vector::BroadcastOp>())
        rate = broadcast.getSource();
      else if (!splatValue(rate))
        continue;
      if (isInteger(number) && product->hasOneUse() &&
          (splatValue(rate) || rate.getParentBlock() != product->getBlock())) {
        bias.number = number;
        bias.rate = rate;
      }
    }
  APFloat inverse = APFloat(1.0f) / bias.factor;
  if (!isInteger(bias.number) || bias.factor.isNegative() ||
      !bias.factor.isNormal() || !inverse.isNormal())
    return std::nullopt;
  return bias;
}

/// c x + r n = c (x + (r / c) n): the factor can then leave the scores.
static Value foldBias(RewriterBase &rewriter, Bias bias) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(bias.sum);
  Location loc = bias.sum->getLoc();
  auto type = cast<VectorType>(bias.sum->getResult(0).getType());
  APFloat inverse = APFloat(1.0f) / bias.factor;
  if (bias.isNegative)
    inverse.changeSign();
  auto constant = [&](Type type) -> Value {
    auto vector = dyn_cast<VectorType>(type);
    return arith::ConstantOp::create(
        rewriter, loc,
        vector ? TypedAttr(DenseElementsAttr::get(vector, inverse))
               : rewriter.getFloatAttr(type, inverse));
  };
  Value rate;
  if (bias.rate) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointAfterValue(bias.rate);
    rate = arith::MulFOp::create(rewriter, loc, bias.rate,
                                 constant(bias.rate.getType()));
    rewriter.setInsertionPoint(bias.sum);
    if (rate.getType() != type)
      rate = vector::BroadcastOp::create(rewriter, loc, type, rate);
  } else {
    rate = constant(type);
  }
  Value sum = math::FmaOp::create(rewriter, loc, bias.number, rate,
                                  bias.scaled.getLhs());
  return arith::MulFOp::create(rewriter, loc, sum, bias.scaled.getRhs());
}

static void foldBiases(RewriterBase &rewriter, OnlineSoftmaxOp op) {
  // scores = [select mask,] sum [, -inf]
  auto mask = op.getScores().getDefiningOp<arith::SelectOp>();
  if (mask && !isMinusInf(mask.getFalseValue()))
    return;
  Value scores = mask ? mask.getTrueValue() : Value(op.getScores());
  std::optional<Bias> bias = matchBias(scores);
  if (!bias)
    return;
  Value folded = foldBias(rewriter, *bias);
  SmallVector<Operation *> parts;
  for (Value part : bias->sum->getOperands())
    parts.push_back(part.getDefiningOp());
  rewriter.replaceOp(bias->sum, folded);
  for (Operation *part : parts)
    if (isOpTriviallyDead(part))
      rewriter.eraseOp(part);
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

namespace {
struct TileFoldExp2 final : attn::tile::impl::TileFoldExp2Base<TileFoldExp2> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<OnlineSoftmaxOp> steps;
    getOperation()->walk([&](OnlineSoftmaxOp op) { steps.push_back(op); });
    for (OnlineSoftmaxOp op : steps) {
      if (op.getExact())
        continue;
      foldBiases(rewriter, op);
      while (succeeded(foldScale(rewriter, op)))
        ;
      op.setExp2(true);
      SmallVector<arith::MulFOp> products(
          op->getBlock()->getOps<arith::MulFOp>());
      for (arith::MulFOp product : products)
        if (product.getType() == op.getScores().getType())
          mergeFactors(rewriter, product);
      SmallVector<Operation *> sums;
      for (Operation &sum : *op->getBlock())
        if (isa<arith::AddFOp, arith::SubFOp>(sum) &&
            sum.getResult(0).getType() == op.getScores().getType())
          sums.push_back(&sum);
      for (Operation *sum : sums)
        fuseSum(rewriter, sum);
    }
  }
};
} // namespace
