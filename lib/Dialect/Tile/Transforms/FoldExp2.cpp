//===- FoldExp2.cpp - scores to powers of two -----------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

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

static bool isMinusInf(Value value) {
  std::optional<APFloat> number = splatValue(value);
  return number && number->isInfinity() && number->isNegative();
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
      while (succeeded(foldScale(rewriter, op)))
        ;
      op.setExp2(true);
      SmallVector<arith::MulFOp> products(
          op->getBlock()->getOps<arith::MulFOp>());
      for (arith::MulFOp product : products)
        if (product.getType() == op.getScores().getType())
          mergeFactors(rewriter, product);
    }
  }
};
} // namespace
