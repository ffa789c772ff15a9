//===- Bins.cpp - sums by element -----------------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

using namespace mlir;
using namespace attn;

namespace {
/// How many bins there are, and of how many rows of a tile; 0: rows share them.
struct BinShape {
  int64_t count, rows;
};
} // namespace

static BinShape getShape(Value bins) {
  auto type = cast<MemRefType>(bins.getType());
  return {type.getShape().back(), type.getRank() == 2 ? type.getDimSize(0) : 0};
}

void attn::placeBins(RewriterBase &rewriter, warp::KernelOp kernel) {
  for (auto bins : llvm::make_early_inc_range(
           kernel.getBodyBlock()->getOps<tile::BinsOp>())) {
    Location loc = bins.getLoc();
    BinShape shape = getShape(bins.getBins());
    rewriter.setInsertionPointToStart(kernel.getBodyBlock());
    auto alloc = warp::AllocOp::create(
        rewriter, loc,
        warp::ClearBinsOp::getSlotType(kernel.getContext(), shape.count,
                                       shape.rows, kernel.getWarps()),
        /*offset=*/nullptr);
    rewriter.setInsertionPoint(bins);
    warp::ClearBinsOp::create(rewriter, loc, alloc.getSlot());
    rewriter.replaceOpWithNewOp<UnrealizedConversionCastOp>(
        bins, bins.getBins().getType(), alloc.getSlot());
  }
}

/// What `placeBins` has put in their place.
static Value getSlot(Value bins) {
  return bins.getDefiningOp<UnrealizedConversionCastOp>().getInputs().front();
}

namespace {
struct ConvertScatterAdd final : OpConversionPattern<tile::ScatterAddOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ScatterAddOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto [count, rows] = getShape(op.getBins());
    rewriter.replaceOpWithNewOp<warp::ScatterAddOp>(
        op, adaptor.getValue(), getSlot(op.getBins()), adaptor.getIndex(),
        count, rows);
    return success();
  }
};

struct ConvertStoreBins final : OpConversionPattern<tile::StoreBinsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreBinsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto [count, rows] = getShape(op.getBins());
    rewriter.replaceOpWithNewOp<warp::StoreBinsOp>(
        op, getSlot(op.getBins()), adaptor.getView(), adaptor.getIndices(),
        count, rows);
    return success();
  }
};
} // namespace

void attn::populateBinPatterns(const FragmentConverter &converter,
                               RewritePatternSet &patterns) {
  patterns.add<ConvertScatterAdd, ConvertStoreBins>(
      converter, patterns.getContext(), PatternBenefit(2));
}
