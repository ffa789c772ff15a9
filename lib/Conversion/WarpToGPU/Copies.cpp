//===- Copies.cpp - slots, rings and the copies that fill them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The block's dynamic shared memory: an external array without a size, whose
/// alignment `gpu.dynamic_shared_memory` could not ask for.
static LLVM::GlobalOp sharedMemory(OpBuilder &builder, Operation *op) {
  auto module = op->getParentOfType<gpu::GPUModuleOp>();
  constexpr StringLiteral name = "attn_shared_memory";
  if (auto global = module.lookupSymbol<LLVM::GlobalOp>(name))
    return global;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  return LLVM::GlobalOp::create(
      builder, module.getLoc(),
      LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
      /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
      slotAlignment, static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
}

/// The address of a byte of shared memory.
static Value sharedAddress(OpBuilder &builder, Operation *op, int64_t offset) {
  Location loc = op->getLoc();
  Value memory =
      LLVM::AddressOfOp::create(builder, loc, sharedMemory(builder, op));
  Integers ints(builder, loc);
  return ints.add(
      LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), memory),
      offset);
}

static SlotType slotOf(RingType ring) {
  return SlotType::get(ring.getContext(), ring.getShape(),
                       ring.getElementType());
}

/// The address of the slot that item `item` of a ring uses.
static Value slotAddress(OpBuilder &builder, Location loc, RingType ring,
                         Value base, Value item) {
  if (ring.getDepth() == 1)
    return base;
  Integers ints(builder, loc);
  Value slot = ints.rem(ints.fromIndex(item), ring.getDepth());
  return ints.add(base, ints.mul(slot, layoutOf(slotOf(ring)).bytes()));
}

/// Threads of the block, which the kernel function knows.
static int64_t blockThreads(Operation *op) {
  auto function = op->getParentOfType<gpu::GPUFuncOp>();
  return function.getKnownBlockSize()->front();
}

namespace {

/// Its place in shared memory.
template <typename Op> struct LowerAllocation final : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    std::optional<int64_t> offset = op.getOffset();
    if (!offset)
      return op.emitOpError("has no place in shared memory; run "
                            "warp-assign-resources first");
    if (*offset % slotAlignment != 0)
      return op.emitOpError("expected an offset that is a multiple of ")
             << slotAlignment << ", got " << *offset;
    rewriter.replaceOp(op, sharedAddress(rewriter, op, *offset));
    return success();
  }
};

/// barrier; copy; wait; barrier: nobody reads the old, everybody sees the new.
struct LowerCopy final : OpConversionPattern<CopyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    gpu::BarrierOp::create(rewriter, loc);
    if (failed(emitTileCopy(rewriter, loc, op.getView(), adaptor.getIndices(),
                            op.getSlot().getType(), adaptor.getSlot(),
                            blockThreads(op))))
      return failure();
    emitCommit(rewriter, loc);
    emitWait(rewriter, loc, 0);
    gpu::BarrierOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Starts the copy and closes its group. The group is closed even when nothing
/// is copied, so that the number of younger groups is known at every wait.
struct LowerCopyAsync final : OpConversionPattern<CopyAsyncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CopyAsyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RingType ring = op.getRing().getType();
    int64_t threads = blockThreads(op);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      if (Value condition = adaptor.getCondition()) {
        auto branch = scf::IfOp::create(rewriter, loc, condition,
                                        /*withElseRegion=*/false);
        rewriter.setInsertionPointToStart(branch.thenBlock());
      }
      Value slot = slotAddress(rewriter, loc, ring, adaptor.getRing(),
                               adaptor.getItem());
      if (failed(emitTileCopy(rewriter, loc, op.getView(), adaptor.getIndices(),
                              slotOf(ring), slot, threads)))
        return failure();
    }
    emitCommit(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Own copies first, then everybody's.
struct LowerAwait final : OpConversionPattern<AwaitOp> {
  LowerAwait(const TypeConverter &converter, MLIRContext *context,
             const AwaitPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(AwaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    if (std::optional<int64_t> pending = plans.lookup(op).pending) {
      emitWait(rewriter, loc, *pending);
      gpu::BarrierOp::create(rewriter, loc);
    }
    rewriter.replaceOp(op, slotAddress(rewriter, loc, op.getRing().getType(),
                                       adaptor.getRing(), adaptor.getItem()));
    return success();
  }

private:
  const AwaitPlans &plans;
};

/// Nothing to do: the next item's await is a barrier, and nobody overwrites the
/// slot before it.
struct LowerRelease final : OpConversionPattern<ReleaseOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void attn::warp::populateCopyPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      const AwaitPlans &awaits) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerAllocation<AllocOp>, LowerAllocation<RingOp>, LowerCopy,
               LowerCopyAsync, LowerRelease>(converter, context);
  patterns.add<LowerAwait>(converter, context, awaits);
}
