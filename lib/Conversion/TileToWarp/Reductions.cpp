//===- Reductions.cpp - row reductions to warp.reduce ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

/// A splat of 0 for sums or of -inf for maxima.
static bool isNeutral(Value acc, warp::ReduceKind kind) {
  auto splat = acc.getDefiningOp<warp::SplatOp>();
  APFloat value(0.0f);
  if (!splat || !matchPattern(splat.getScalar(), m_ConstantFloat(&value)))
    return false;
  if (kind == warp::ReduceKind::Add)
    return value.isZero();
  return value.isInfinity() && value.isNegative();
}

namespace {
/// vector.multi_reduction <or> to a scalar -> warp.any. The tile asks for all
/// rows; what it does with the answer it may do row by row, so each warp
/// answers for its rows.
struct ConvertVote final : OpConversionPattern<vector::MultiDimReductionOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::MultiDimReductionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getKind() != vector::CombiningKind::OR)
      return rewriter.notifyMatchFailure(op, "no vote");
    Value any = warp::AnyOp::create(rewriter, op.getLoc(), adaptor.getSource());
    if (matchPattern(adaptor.getAcc(), m_Zero()))
      rewriter.replaceOp(op, any);
    else
      rewriter.replaceOpWithNewOp<arith::OrIOp>(op, any, adaptor.getAcc());
    return success();
  }
};

/// vector.multi_reduction <minsi> or <maxsi> to a scalar -> warp.extreme, and
/// the accumulator joins.
struct ConvertExtreme final : OpConversionPattern<vector::MultiDimReductionOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::MultiDimReductionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    using vector::CombiningKind;
    bool isLeast = op.getKind() == CombiningKind::MINSI;
    if (!isLeast && op.getKind() != CombiningKind::MAXSI)
      return rewriter.notifyMatchFailure(op, "not of integers");
    Value found = warp::ExtremeOp::create(rewriter, op.getLoc(),
                                          isLeast ? warp::ExtremeKind::Least
                                                  : warp::ExtremeKind::Greatest,
                                          adaptor.getSource());
    if (isLeast)
      rewriter.replaceOpWithNewOp<arith::MinSIOp>(op, found, adaptor.getAcc());
    else
      rewriter.replaceOpWithNewOp<arith::MaxSIOp>(op, found, adaptor.getAcc());
    return success();
  }
};

/// vector.multi_reduction -> warp.reduce, and the accumulator joins if it is
/// not neutral.
struct ConvertReduction final
    : OpConversionPattern<vector::MultiDimReductionOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::MultiDimReductionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<VectorType>(op.getDestType()))
      return rewriter.notifyMatchFailure(op, "of all elements");
    warp::ReduceKind kind = op.getKind() == vector::CombiningKind::ADD
                                ? warp::ReduceKind::Add
                                : warp::ReduceKind::Max;
    Value acc = adaptor.getAcc();
    Value reduced = warp::ReduceOp::create(rewriter, op.getLoc(), acc.getType(),
                                           kind, adaptor.getSource());
    if (isNeutral(acc, kind))
      rewriter.replaceOp(op, reduced);
    else if (kind == warp::ReduceKind::Add)
      rewriter.replaceOpWithNewOp<arith::AddFOp>(op, acc, reduced);
    else
      rewriter.replaceOpWithNewOp<arith::MaxNumFOp>(op, acc, reduced);
    return success();
  }
};

/// A column has one fragment type, with or without its unit dimension.
struct DropShapeCast final : OpConversionPattern<vector::ShapeCastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::ShapeCastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getSource());
    return success();
  }
};
} // namespace

void attn::populateReductionPatterns(const FragmentConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<ConvertReduction, ConvertVote, ConvertExtreme, DropShapeCast>(
      converter, patterns.getContext(), PatternBenefit(2));
}
