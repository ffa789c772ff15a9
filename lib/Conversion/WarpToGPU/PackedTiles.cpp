//===- PackedTiles.cpp - tiles in memory as lanes hold them -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Register r of thread t lies at r T + t, of T threads: the lanes of a warp
// write, add or read 128 bytes side by side, and nothing moves between lanes.
//
//===----------------------------------------------------------------------===//

#include "PackedTiles.h"

#include "Fragments.h"
#include "Integers.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Where register 0 of the running thread lies.
static Value firstOf(OpBuilder &builder, Location loc, const View &view,
                     ValueRange indices) {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  SmallVector<Value> at;
  for (Value index : indices.drop_back())
    at.push_back(addresses.fromIndex(index));
  Value thread = ints.add(ints.mul(ints.warp(), layout::warpSize), ints.lane());
  at.push_back(addresses.fromInt(thread));
  return addresses.toPointer(view.addressOf(builder, loc, at));
}

static Value offsetTo(OpBuilder &builder, Location loc, Value first,
                      FragType type, int64_t reg, int64_t elementBytes) {
  int64_t bytes = reg * type.getWarps() * layout::warpSize * elementBytes;
  return offsetBy(builder, loc, first, bytes);
}

void attn::warp::emitAdd(OpBuilder &builder, Location loc, Value address,
                         Value value) {
  LLVM::InlineAsmOp::create(
      builder, loc, TypeRange(), ValueRange{address, value},
      "red.relaxed.gpu.global.add.f32 [$0], $1;", "l,f,~{memory}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

namespace {

struct LowerPackedStore final : OpConversionPattern<StoreOp> {
  LowerPackedStore(const TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, /*benefit=*/4) {}

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getPacked())
      return failure();
    Location loc = op.getLoc();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    FragType type = op.getValue().getType();
    Value first = firstOf(rewriter, loc, *view, op.getIndices());
    SmallVector<Value> elements =
        unpack(rewriter, loc, type, adaptor.getValue());
    for (auto [reg, element] : llvm::enumerate(elements)) {
      Value to = offsetTo(rewriter, loc, first, type, reg, view->elementBytes);
      if (op.getAccumulate())
        emitAdd(rewriter, loc, to, element);
      else
        LLVM::StoreOp::create(rewriter, loc, element, to, view->elementBytes);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerLoad final : OpConversionPattern<LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    FragType type = op.getResult().getType();
    Value first = firstOf(rewriter, loc, *view, op.getIndices());
    SmallVector<Value> elements;
    for (int64_t reg = 0, e = layoutOf(type).numRegisters(); reg < e; ++reg)
      elements.push_back(LLVM::LoadOp::create(
          rewriter, loc, type.getElementType(),
          offsetTo(rewriter, loc, first, type, reg, view->elementBytes),
          view->elementBytes));
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type, elements)});
    return success();
  }
};

} // namespace

void attn::warp::populatePackedTilePatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerPackedStore, LowerLoad>(converter, patterns.getContext());
}
