//===- ExpandSoftmax.cpp - online softmax step by step --------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With e = log2(e) and f = scale * e, where exp2 is allowed:
//
//   newMax        = max(max, scale * rowmax(s))
//   reference     = newMax, or 0 where guarded and newMax = -inf
//   probabilities = exp2(s * f - reference * e)        one fma per score
//   correction    = exp2((max - reference) * e)
//   newSum        = sum * correction + rowsum(probabilities)
//
// The rounding of a large reference * e is a large number itself, or infinite:
// all weights of the row would overflow, or vanish. Where scores are not known
// to be small (`bounded`), the maximum of the block is subtracted first, which
// costs an addition per score; what is done in each turn of a loop asks before
// whether the reference of any row is large:
//
//   top           = rowmax(s), or 0 where that is -inf
//   probabilities = exp2((s - top) * f + (scale * rowmax(s) - reference) * e)
//
// The correction subtracts first: it is exactly 1 while the maximum stays, so
// that the rounding of reference * e, the same in every block, cannot build up
// over the blocks of a long row.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEEXPANDSOFTMAX
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static Value splat(OpBuilder &b, Location loc, Type type, APFloat value) {
  auto vector = cast<VectorType>(type);
  return arith::ConstantOp::create(b, loc,
                                   DenseElementsAttr::get(vector, value));
}

/// The reduction of each row, as a column.
static Value reduceRows(OpBuilder &b, Location loc, vector::CombiningKind kind,
                        Value value, APFloat neutral) {
  auto type = cast<VectorType>(value.getType());
  auto flat = VectorType::get({type.getDimSize(0)}, type.getElementType());
  Value reduced = vector::MultiDimReductionOp::create(
      b, loc, value, splat(b, loc, flat, neutral),
      /*reductionMask=*/ArrayRef<bool>{false, true}, kind);
  return vector::ShapeCastOp::create(
      b, loc, VectorType::get({type.getDimSize(0), 1}, type.getElementType()),
      reduced);
}

/// `value`, or 0 where it is -inf.
static Value replaceMinusInf(OpBuilder &b, Location loc, Value value) {
  APFloat zero(0.0f);
  APFloat minusInf = APFloat::getInf(zero.getSemantics(), /*Negative=*/true);
  Value empty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, value,
                                      splat(b, loc, value.getType(), minusInf));
  return arith::SelectOp::create(b, loc, empty,
                                 splat(b, loc, value.getType(), zero), value);
}

Value attn::tile::isAnyFar(OpBuilder &b, Location loc, Value reference) {
  Value isFar = arith::CmpFOp::create(
      b, loc, arith::CmpFPredicate::UGE,
      math::AbsFOp::create(b, loc, reference),
      splat(b, loc, reference.getType(), APFloat(maxFoldedScore)));
  Value no = arith::ConstantIntOp::create(b, loc, 0, 1);
  return vector::MultiDimReductionOp::create(
      b, loc, isFar, no, ArrayRef<bool>{true, true}, vector::CombiningKind::OR);
}

void attn::tile::expandSoftmax(RewriterBase &b, OnlineSoftmaxOp op) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value scores = op.getScores();
  Type rowType = op.getMax().getType(), tileType = scores.getType();
  APFloat zero(0.0f), one(1.0f);
  APFloat minusInf = APFloat::getInf(zero.getSemantics(), /*Negative=*/true);
  auto sub = [&](Value lhs, Value rhs) -> Value {
    return arith::SubFOp::create(b, loc, lhs, rhs);
  };
  auto mul = [&](Value lhs, Value rhs) -> Value {
    return arith::MulFOp::create(b, loc, lhs, rhs);
  };

  auto stretch = [&](Value row) -> Value {
    return vector::BroadcastOp::create(b, loc, tileType, row);
  };

  Value rowMax =
      reduceRows(b, loc, vector::CombiningKind::MAXNUMF, scores, minusInf);
  Value scaledMax = rowMax;
  bool isScaled = op.getScale() != one;
  if (isScaled)
    scaledMax = mul(rowMax, splat(b, loc, rowType, op.getScale()));
  Value newMax = arith::MaxNumFOp::create(b, loc, op.getMax(), scaledMax);
  Value reference = newMax;
  if (op.getGuard())
    reference = replaceMinusInf(b, loc, newMax);

  Value probabilities, correction;
  if (op.getExp2()) {
    APFloat log2e(static_cast<float>(llvm::numbers::log2e));
    APFloat factor(static_cast<float>(op.getScale().convertToDouble() *
                                      llvm::numbers::log2e));
    Value log2eRow = splat(b, loc, rowType, log2e);
    auto foldOffset = [&](OpBuilder &b) -> Value {
      Value product = arith::MulFOp::create(b, loc, reference, log2eRow);
      return arith::NegFOp::create(b, loc, product);
    };
    auto subtractTop = [&](OpBuilder &b) -> SmallVector<Value> {
      Value top = replaceMinusInf(b, loc, rowMax);
      top = vector::BroadcastOp::create(b, loc, tileType, top);
      Value below = arith::SubFOp::create(b, loc, scaledMax, reference);
      return {arith::SubFOp::create(b, loc, scores, top),
              arith::MulFOp::create(b, loc, below, log2eRow)};
    };
    SmallVector<Value> operands;
    if (op.getBounded()) {
      operands = {scores, foldOffset(b)};
    } else if (isa<scf::IfOp>(op->getParentOp())) {
      operands = subtractTop(b);
    } else {
      // The exponentials stay outside of the branch, beside what follows.
      operands = scf::IfOp::create(
                     b, loc, isAnyFar(b, loc, reference),
                     [&](OpBuilder &inner, Location loc) {
                       scf::YieldOp::create(inner, loc, subtractTop(inner));
                     },
                     [&](OpBuilder &inner, Location loc) {
                       scf::YieldOp::create(
                           inner, loc, ValueRange{scores, foldOffset(inner)});
                     })
                     .getResults();
    }
    Value offset = operands[1];
    scores = operands[0];
    offset = stretch(offset);
    probabilities = math::Exp2Op::create(
        b, loc,
        math::FmaOp::create(b, loc, scores, splat(b, loc, tileType, factor),
                            offset));
    correction = math::Exp2Op::create(
        b, loc, mul(sub(op.getMax(), reference), log2eRow));
  } else {
    if (isScaled)
      scores = mul(scores, splat(b, loc, tileType, op.getScale()));
    probabilities =
        math::ExpOp::create(b, loc, sub(scores, stretch(reference)));
    correction = math::ExpOp::create(b, loc, sub(op.getMax(), reference));
  }
  Value rowSum =
      reduceRows(b, loc, vector::CombiningKind::ADD, probabilities, zero);
  Value newSum = math::FmaOp::create(b, loc, op.getSum(), correction, rowSum);
  b.replaceOp(op, {probabilities, newMax, newSum, correction});
}

namespace {
struct TileExpandSoftmax final
    : attn::tile::impl::TileExpandSoftmaxBase<TileExpandSoftmax> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireForm(getOperation(), TileForm::Lazy, getArgument())))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    getOperation()->walk(
        [&](OnlineSoftmaxOp op) { expandSoftmax(rewriter, op); });
  }
};
} // namespace
