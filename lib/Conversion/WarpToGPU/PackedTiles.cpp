//===- PackedTiles.cpp - tiles in memory as lanes hold them -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers go in parts of N: part p of thread t lies at (p T + t) N, of T
// threads. The lanes of a warp write, add or read N times 128 bytes side by
// side, and nothing moves between lanes. N is what one addition takes: four
// floats on SM90, one before. (There 32 additions of a lane filled the queue of
// the memory pipe: warps waited for 15 % of a gradient's time.)
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

#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Where register 0 of the running thread lies.
static Value firstOf(OpBuilder &builder, Location loc, const View &view,
                     ValueRange indices, int64_t part) {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  SmallVector<Value> at;
  for (Value index : indices.drop_back())
    at.push_back(addresses.fromIndex(index));
  Value thread = ints.add(ints.mul(ints.warp(), layout::warpSize), ints.lane());
  at.push_back(addresses.fromInt(ints.mul(thread, part)));
  return addresses.toPointer(view.addressOf(builder, loc, at));
}

/// Registers that lie side by side.
static int64_t partOf(FragType type, bool addsVectors) {
  constexpr int64_t most = 4;
  return addsVectors ? std::gcd(layoutOf(type).numRegisters(), most) : 1;
}

static Value constantOf(OpBuilder &builder, Location loc, int64_t number) {
  return LLVM::ConstantOp::create(builder, loc,
                                  builder.getI32IntegerAttr(number));
}

static Value offsetTo(OpBuilder &builder, Location loc, Value first,
                      FragType type, int64_t reg, int64_t elementBytes) {
  int64_t bytes = reg * type.getWarps() * layout::warpSize * elementBytes;
  return offsetBy(builder, loc, first, bytes);
}

static void emitAdd(OpBuilder &builder, Location loc, Value address,
                    ValueRange values, StringRef code, StringRef constraints) {
  SmallVector<Value> operands = {address};
  llvm::append_range(operands, values);
  LLVM::InlineAsmOp::create(
      builder, loc, TypeRange(), operands, code, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

void attn::warp::emitAdd(OpBuilder &builder, Location loc, Value address,
                         Value value) {
  ::emitAdd(builder, loc, address, value,
            "red.relaxed.gpu.global.add.f32 [$0], $1;", "l,f,~{memory}");
}

static void emitAddOfFour(OpBuilder &builder, Location loc, Value address,
                          ValueRange values) {
  emitAdd(builder, loc, address, values,
          "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};",
          "l,f,f,f,f,~{memory}");
}

namespace {

struct LowerPackedStore final : OpConversionPattern<StoreOp> {
  LowerPackedStore(const TypeConverter &converter, MLIRContext *context,
                   bool addsVectors)
      : OpConversionPattern(converter, context, /*benefit=*/4),
        addsVectors(addsVectors) {}

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
    int64_t part = partOf(type, addsVectors);
    Value first = firstOf(rewriter, loc, *view, op.getIndices(), part);
    SmallVector<Value> elements =
        unpack(rewriter, loc, type, adaptor.getValue());
    for (size_t reg = 0; reg < elements.size(); reg += part) {
      ArrayRef<Value> values = ArrayRef(elements).slice(reg, part);
      Value to = offsetTo(rewriter, loc, first, type, reg, view->elementBytes);
      if (!op.getAccumulate())
        store(rewriter, loc, values, to, view->elementBytes);
      else if (part == 4)
        emitAddOfFour(rewriter, loc, to, values);
      else
        for (auto [number, value] : llvm::enumerate(values))
          emitAdd(
              rewriter, loc,
              offsetBy(rewriter, loc, to, int64_t(number) * view->elementBytes),
              value);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void store(OpBuilder &builder, Location loc, ArrayRef<Value> values,
                    Value to, int64_t elementBytes) {
    int64_t part = values.size();
    Value stored = values.front();
    if (part > 1) {
      auto type = VectorType::get(part, stored.getType());
      stored = LLVM::PoisonOp::create(builder, loc, type);
      for (auto [number, value] : llvm::enumerate(values))
        stored = LLVM::InsertElementOp::create(
            builder, loc, stored, value, constantOf(builder, loc, number));
    }
    LLVM::StoreOp::create(builder, loc, stored, to, part * elementBytes);
  }

  bool addsVectors;
};

struct LowerLoad final : OpConversionPattern<LoadOp> {
  LowerLoad(const TypeConverter &converter, MLIRContext *context,
            bool addsVectors)
      : OpConversionPattern(converter, context), addsVectors(addsVectors) {}

  LogicalResult
  matchAndRewrite(LoadOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    FragType type = op.getResult().getType();
    int64_t part = partOf(type, addsVectors);
    Value first = firstOf(rewriter, loc, *view, op.getIndices(), part);
    Type element = type.getElementType();
    Type loaded = part > 1 ? VectorType::get(part, element) : element;
    SmallVector<Value> elements;
    for (int64_t reg = 0, e = layoutOf(type).numRegisters(); reg < e;
         reg += part) {
      Value values = LLVM::LoadOp::create(
          rewriter, loc, loaded,
          offsetTo(rewriter, loc, first, type, reg, view->elementBytes),
          part * view->elementBytes);
      if (part == 1)
        elements.push_back(values);
      for (int64_t number = 0; part > 1 && number < part; ++number)
        elements.push_back(LLVM::ExtractElementOp::create(
            rewriter, loc, values, constantOf(rewriter, loc, number)));
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type, elements)});
    return success();
  }

private:
  bool addsVectors;
};

} // namespace

void attn::warp::populatePackedTilePatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns,
                                            bool addsVectors) {
  patterns.add<LowerPackedStore, LowerLoad>(converter, patterns.getContext(),
                                            addsVectors);
}
