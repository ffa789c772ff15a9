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
        /*staging=*/Value(), rows);
    return success();
  }
};

/// tile.gather -> warp.gather.
struct ConvertGather final : OpConversionPattern<tile::GatherOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::GatherOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<warp::GatherOp>(
        op, getTypeConverter()->convertType(op.getResult().getType()),
        adaptor.getView(), adaptor.getIndices());
    return success();
  }
};

/// tile.search -> warp.search.
struct ConvertSearch final : OpConversionPattern<tile::SearchOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::SearchOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<warp::SearchOp>(
        op, getTypeConverter()->convertType(op.getResult().getType()),
        adaptor.getView(), adaptor.getIndices(), adaptor.getValue());
    return success();
  }
};

/// tile.coords -> warp.coords.
struct ConvertCoords final : OpConversionPattern<tile::CoordsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CoordsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<warp::CoordsOp>(
        op, getTypeConverter()->convertType(op.getResult().getType()),
        adaptor.getBase(), op.getAxis());
    return success();
  }
};
/// tile.exit_if -> warp.exit_if
struct ConvertExitIf final : OpConversionPattern<tile::ExitIfOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ExitIfOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<warp::ExitIfOp>(op, adaptor.getCondition());
    return success();
  }
};
} // namespace

void attn::populateMemoryPatterns(const FragmentConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<ConvertStore, ConvertGather, ConvertSearch, ConvertCoords,
               ConvertExitIf>(converter, patterns.getContext(),
                              PatternBenefit(2));
}
