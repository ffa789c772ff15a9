//===- Memory.cpp - stores, gathers and coordinates -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "attn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace attn;

namespace {
/// tile.store -> warp.store; a vector of rank 1 is written as rows.
struct ConvertStore final : OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    bool rows = cast<VectorType>(op.getValue().getType()).getRank() == 1;
    rewriter.replaceOpWithNewOp<warp::StoreOp>(
        op, adaptor.getValue(), adaptor.getView(), adaptor.getIndices(),
        adaptor.getSliceEnd(), /*staging=*/Value(), rows, op.getAccumulate(),
        op.getPacked(), op.getSlices());
    return success();
  }
};

/// A packed tile.load -> warp.load; others lie in shared memory.
struct ConvertLoad final : OpConversionPattern<tile::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<warp::LoadOp>(
        op, getTypeConverter()->convertType(op.getResult().getType()),
        adaptor.getView(), adaptor.getIndices());
    return success();
  }
};

/// An operation of tiles -> that of fragments with the same operands.
template <typename From, typename To>
struct ConvertAlike final : OpConversionPattern<From> {
  using OpConversionPattern<From>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(From op, typename From::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    if (failed(this->getTypeConverter()->convertTypes(op->getResultTypes(),
                                                      types)))
      return rewriter.notifyMatchFailure(op, "result is no fragment");
    SmallVector<NamedAttribute> attributes;
    for (NamedAttribute attribute : op->getAttrs())
      if (llvm::is_contained(To::getAttributeNames(), attribute.getName()))
        attributes.push_back(attribute);
    rewriter.replaceOpWithNewOp<To>(op, types, adaptor.getOperands(),
                                    attributes);
    return success();
  }
};
} // namespace

void attn::populateMemoryPatterns(const FragmentConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<ConvertStore, ConvertLoad,
               ConvertAlike<tile::GatherOp, warp::GatherOp>,
               ConvertAlike<tile::SearchOp, warp::SearchOp>,
               ConvertAlike<tile::CoordsOp, warp::CoordsOp>,
               ConvertAlike<tile::ExitIfOp, warp::ExitIfOp>>(
      converter, patterns.getContext(), PatternBenefit(2));
}
