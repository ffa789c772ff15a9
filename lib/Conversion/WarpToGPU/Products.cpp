//===- Products.cpp - products of tiles, by their atoms ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"

#include "Atoms/FmaF32.h"
#include "Atoms/MmaSync.h"
#include "Atoms/MmaTf32.h"
#include "Atoms/Wgmma.h"

#include "attn/Dialect/Warp/Analysis/PendingMmas.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Whether every element is the constant zero.
static bool isZero(Value acc) {
  auto splat = acc.getDefiningOp<SplatOp>();
  FloatAttr value;
  return splat && matchPattern(splat.getScalar(), m_Constant(&value)) &&
         value.getValue().isPosZero();
}

ProductsInFlight ProductsInFlight::plan(gpu::GPUFuncOp function) {
  ProductsInFlight plan;
  function.walk([&](ProductOp op) {
    if (isZero(op.getAcc()))
      plan.startAtZero.insert(op);
    if (!isa<MmaAsyncOp>(op))
      return;
    int64_t number = plan.numbers.size();
    plan.numbers[op] = number;
  });
  plan.products.resize(plan.numbers.size());
  function.walk([&](WaitOp op) {
    Wait &wait = plan.waits[op];
    wait.product = plan.numbers.at(getIssue(op));
    wait.pending = countYoungerMmas(op);
    for (MmaAsyncOp issue : getInFlight(op))
      wait.inFlight.push_back(plan.numbers.at(issue));
  });
  return plan;
}

static ProductEmitter &getEmitter(ProductAtom atom) {
  switch (atom) {
  case ProductAtom::MmaSync:
    return emitMmaSync;
  case ProductAtom::MmaTF32:
    return emitMmaTF32;
  case ProductAtom::FmaF32:
    return emitFmaF32;
  case ProductAtom::Wgmma:
    return emitWgmma;
  }
  llvm_unreachable("unknown ProductAtom");
}

namespace {

/// The operands of a product as the lanes have them.
template <typename Op, typename Adaptor>
Product getProduct(Op op, Adaptor adaptor, const ProductsInFlight &inFlight) {
  return {op, adaptor.getA(), adaptor.getB().front(), adaptor.getAcc(),
          inFlight.startAtZero.contains(op)};
}

struct LowerMma final : OpConversionPattern<MmaOp> {
  LowerMma(const TypeConverter &converter, MLIRContext *context,
           const ProductsInFlight &inFlight)
      : OpConversionPattern(converter, context), inFlight(inFlight) {}

  LogicalResult
  matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> result =
        getEmitter(op.getAtom())(rewriter, getProduct(op, adaptor, inFlight));
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }

private:
  const ProductsInFlight &inFlight;
};

/// Only the issue; of the atoms, wgmma alone can be waited for later.
struct LowerMmaAsync final : OpConversionPattern<MmaAsyncOp> {
  LowerMmaAsync(const TypeConverter &converter, MLIRContext *context,
                ProductsInFlight &inFlight)
      : OpConversionPattern(converter, context), inFlight(inFlight) {}

  LogicalResult
  matchAndRewrite(MmaAsyncOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    assert(op.getAtom() == ProductAtom::Wgmma && "(C1) of warp.mma_async");
    Product product = getProduct(op, adaptor, inFlight);
    SmallVector<Value> result = issueWgmma(rewriter, product);
    ProductsInFlight::Registers &state =
        inFlight.products[inFlight.numbers.at(op)];
    state.accumulators = result;
    if (!product.leftSlot())
      state.left = llvm::to_vector(product.a);
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }

private:
  ProductsInFlight &inFlight;
};

/// Registers of everything in flight go through the wait.
struct LowerWait final : OpConversionPattern<WaitOp> {
  LowerWait(const TypeConverter &converter, MLIRContext *context,
            ProductsInFlight &inFlight)
      : OpConversionPattern(converter, context), inFlight(inFlight) {}

  LogicalResult
  matchAndRewrite(WaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const ProductsInFlight::Wait &wait = inFlight.waits.at(op);
    SmallVector<Value> tied;
    for (int64_t number : wait.inFlight)
      llvm::append_range(tied, inFlight.products[number].accumulators);
    SmallVector<Value> results =
        waitForWgmma(rewriter, op.getLoc(), wait.pending, tied,
                     inFlight.products[wait.product].left);
    auto next = results.begin();
    for (int64_t number : wait.inFlight)
      for (Value &value : inFlight.products[number].accumulators)
        value = *next++;
    rewriter.replaceOpWithMultiple(
        op, {inFlight.products[wait.product].accumulators});
    return success();
  }

private:
  ProductsInFlight &inFlight;
};

/// The A operand read once into registers.
struct LowerLoadFrag final : OpConversionPattern<LoadFragOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadFragOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType type = op.getResult().getType();
    if (type.getKind() != FragKind::A)
      return rewriter.notifyMatchFailure(op, "left to SlotReader");
    bool isF32 = type.getElementType().isF32();
    SmallVector<Value> result =
        (isF32 ? loadFragF32 : loadFrag16)(rewriter, op, adaptor.getSlot());
    rewriter.replaceOpWithMultiple(op, {result});
    return success();
  }
};

} // namespace

void attn::warp::populateProductPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns,
                                         ProductsInFlight &inFlight) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerMma, LowerMmaAsync, LowerWait>(converter, context,
                                                   inFlight);
  patterns.add<LowerLoadFrag>(converter, context);
}
