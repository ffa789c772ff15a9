//===- Elementwise.cpp - arithmetic on vectors to fragments ---*- C++ -*-===//
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

using namespace mlir;
using namespace attn;

namespace {
/// An elementwise operation of vectors -> the same of fragments.
struct ConvertElementwise final : ConversionPattern {
  ConvertElementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "not elementwise");
    Type type = getTypeConverter()->convertType(op->getResult(0).getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "result is no fragment");
    OperationState state(op->getLoc(), op->getName(), operands, {type},
                         op->getAttrs());
    rewriter.replaceOp(op, rewriter.create(state));
    return success();
  }
};

/// A splat constant -> a scalar constant and warp.splat.
struct ConvertConstant final : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto elements = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!elements)
      return rewriter.notifyMatchFailure(op, "not a splat");
    Value scalar = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        cast<TypedAttr>(elements.getSplatValue<Attribute>()));
    rewriter.replaceOpWithNewOp<warp::SplatOp>(
        op, getTypeConverter()->convertType(op.getType()), scalar);
    return success();
  }
};

/// A selection by a vector -> warp.select; by a scalar it stays as it is.
struct ConvertSelect final : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isa<warp::FragType>(adaptor.getCondition().getType()))
      return rewriter.notifyMatchFailure(op, "condition is a scalar");
    rewriter.replaceOpWithNewOp<warp::SelectOp>(
        op, adaptor.getTrueValue().getType(), adaptor.getCondition(),
        adaptor.getTrueValue(), adaptor.getFalseValue());
    return success();
  }
};

/// A cast of vectors -> warp.cast.
template <typename CastOp, warp::CastKind kind>
struct ConvertCast final : OpConversionPattern<CastOp> {
  using OpConversionPattern<CastOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CastOp op, typename CastOp::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = this->getTypeConverter()->convertType(op.getType());
    rewriter.replaceOpWithNewOp<warp::CastOp>(op, type, kind, adaptor.getIn());
    return success();
  }
};

/// vector.broadcast -> warp.splat of a scalar, warp.broadcast of a slice.
struct ConvertBroadcast final : OpConversionPattern<vector::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(vector::BroadcastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    Value source = adaptor.getSource();
    if (source.getType() == type)
      rewriter.replaceOp(op, source);
    else if (isa<warp::FragType>(source.getType()))
      rewriter.replaceOpWithNewOp<warp::BroadcastOp>(op, type, source);
    else
      rewriter.replaceOpWithNewOp<warp::SplatOp>(op, type, source);
    return success();
  }
};
} // namespace

void attn::populateElementwisePatterns(const FragmentConverter &converter,
                                       RewritePatternSet &patterns) {
  using warp::CastKind;
  MLIRContext *context = patterns.getContext();
  patterns.add<ConvertElementwise>(converter, context);
  patterns.add<ConvertConstant, ConvertSelect, ConvertBroadcast,
               ConvertCast<arith::TruncFOp, CastKind::TruncF>,
               ConvertCast<arith::ExtFOp, CastKind::ExtF>,
               ConvertCast<arith::SIToFPOp, CastKind::SIToFP>,
               ConvertCast<arith::UIToFPOp, CastKind::UIToFP>,
               ConvertCast<arith::FPToSIOp, CastKind::FPToSI>,
               ConvertCast<arith::FPToUIOp, CastKind::FPToUI>,
               ConvertCast<arith::TruncIOp, CastKind::TruncI>,
               ConvertCast<arith::ExtSIOp, CastKind::ExtSI>,
               ConvertCast<arith::ExtUIOp, CastKind::ExtUI>,
               ConvertCast<arith::BitcastOp, CastKind::Bitcast>>(
      converter, context, PatternBenefit(2));
}
