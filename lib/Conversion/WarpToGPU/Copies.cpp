//===- Copies.cpp - slots, rings and the copies that fill them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Copies.h"

#include "Atoms/CpAsync.h"
#include "Atoms/Mbarrier.h"
#include "Atoms/Tma.h"
#include "Fragments.h"
#include "Integers.h"
#include "Roles.h"
#include "SharedMemory.h"
#include "SlotWriter.h"

#include "attn/Dialect/Warp/IR/Atoms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The address of the slot that item `item` of a ring uses.
static Value slotAddress(OpBuilder &builder, Location loc, RingType ring,
                         Value base, Value item) {
  if (ring.getDepth() == 1)
    return base;
  Integers ints(builder, loc);
  Value slot = ints.rem(ints.fromIndex(item), ring.getDepth());
  return ints.add(base, ints.mul(slot, layoutOf(ring.getSlotType()).bytes()));
}

/// The indices of each box.
template <typename Copy>
static SmallVector<ValueRange> boxesOf(Copy op,
                                       typename Copy::Adaptor adaptor) {
  ValueRange indices = adaptor.getIndices();
  SmallVector<ValueRange> boxes;
  size_t rank = indices.size() / op.getBoxes();
  for (; !indices.empty(); indices = indices.drop_front(rank))
    boxes.push_back(indices.take_front(rank));
  return boxes;
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
    assert(offset && "the form is warp-placed");
    int64_t alignment = layoutOf(slotOf(op)).alignment();
    if (*offset % alignment != 0)
      return op.emitOpError("expected an offset that is a multiple of ")
             << alignment << ", got " << *offset;
    rewriter.replaceOp(op, sharedAddress(rewriter, op, *offset, alignment));
    return success();
  }

private:
  static SlotType slotOf(AllocOp op) { return op.getSlot().getType(); }
  static SlotType slotOf(RingOp op) {
    return op.getRing().getType().getSlotType();
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
    SlotType slot = op.getSlot().getType();
    for (auto [number, box] : llvm::enumerate(boxesOf(op, adaptor)))
      if (failed(emitTileCopy(rewriter, loc, op.getView(), box, slot,
                              adaptor.getSlot(), blockThreads(op),
                              number * op.getRowsPerBox(), op.getRowsPerBox())))
        return failure();
    emitCommit(rewriter, loc);
    emitWait(rewriter, loc, 0);
    if (isReadByWgmma(slot))
      emitProxyFence(rewriter, loc);
    gpu::BarrierOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Starts the copy and closes its group. The group is closed even when nothing
/// is copied, so that the number of younger groups is known at every wait.
struct LowerCopyAsync final : OpConversionPattern<CopyAsyncOp> {
  LowerCopyAsync(const TypeConverter &converter, MLIRContext *context,
                 const RolePlan &roles)
      : OpConversionPattern(converter, context), roles(roles) {}

  LogicalResult
  matchAndRewrite(CopyAsyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RingType ring = op.getRing().getType();
    if (op.getAtom() == CopyAtom::TMA)
      return copyTensor(op, adaptor, ring, rewriter);
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
      for (auto [number, box] : llvm::enumerate(boxesOf(op, adaptor)))
        if (failed(emitTileCopy(
                rewriter, loc, op.getView(), box, ring.getSlotType(), slot,
                threads, number * op.getRowsPerBox(), op.getRowsPerBox())))
          return failure();
    }
    emitCommit(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// In a role: as soon as the item before has left the slot.
  LogicalResult copyTensor(CopyAsyncOp op, OpAdaptor adaptor, RingType ring,
                           ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    Integers ints(rewriter, loc);
    RolePlan::Access access = roles.accesses.lookup(op);
    auto barriers = ItemBarriers::get(rewriter, op, adaptor.getItem(), access);
    // The first time round the slot is free: the phase before the first.
    if (access.waits)
      emitBarrierWait(rewriter, loc, barriers.empty,
                      ints.bitXor(barriers.parity, 1));
    SlotType slot = ring.getSlotType();
    emitBarrierExpect(rewriter, loc, barriers.full, layoutOf(slot).bytes());
    Value base =
        slotAddress(rewriter, loc, ring, adaptor.getRing(), adaptor.getItem());
    auto function = op->getParentOfType<gpu::GPUFuncOp>();
    for (auto [number, box] : llvm::enumerate(boxesOf(op, adaptor)))
      if (failed(emitTensorCopy(rewriter, loc,
                                function.getArgument(access.tensorMap),
                                access.boxPanels, box, slot, base,
                                barriers.full, number * op.getRowsPerBox())))
        return failure();
    rewriter.eraseOp(op);
    return success();
  }

  const RolePlan &roles;
};

/// Own rows first, then everybody's.
struct LowerStoreFrag final : OpConversionPattern<StoreFragOp> {
  LowerStoreFrag(const TypeConverter &converter, MLIRContext *context,
                 const StoreFragPlans &plans, const RolePlan &roles)
      : OpConversionPattern(converter, context), plans(plans), roles(roles) {}

  LogicalResult
  matchAndRewrite(StoreFragOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Integers ints(rewriter, loc);
    SlotType type = op.getSlotType();
    Value slot = adaptor.getTarget().front();
    std::optional<ItemBarriers> barriers;
    if (op.getItem()) {
      Value item = adaptor.getItem().front();
      slot = slotAddress(rewriter, loc,
                         cast<RingType>(op.getTarget().getType()), slot, item);
      barriers =
          ItemBarriers::get(rewriter, op, item, roles.accesses.lookup(op));
      emitBarrierWait(rewriter, loc, barriers->empty,
                      ints.bitXor(barriers->parity, 1));
    } else if (plans.lookup(op).meetsBefore) {
      gpu::BarrierOp::create(rewriter, loc);
    }
    SlotWriter(rewriter, loc, op.getValue().getType(), type, adaptor.getValue(),
               slot)
        .write(/*firstColumn=*/0);
    // Each thread that wrote.
    if (isReadByWgmma(type))
      emitProxyFence(rewriter, loc);
    if (barriers) {
      // The arrival is that of all lanes.
      NVVM::SyncWarpOp::create(rewriter, loc, ints.constant(-1));
      emitBarrierArrive(rewriter, loc, barriers->full);
    } else if (plans.lookup(op).meetsAfter) {
      gpu::BarrierOp::create(rewriter, loc);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  const StoreFragPlans &plans;
  const RolePlan &roles;
};

/// Own copies first, then everybody's.
struct LowerAwait final : OpConversionPattern<AwaitOp> {
  LowerAwait(const TypeConverter &converter, MLIRContext *context,
             const AwaitPlans &plans, RolePlan &roles)
      : OpConversionPattern(converter, context), plans(plans), roles(roles) {}

  LogicalResult
  matchAndRewrite(AwaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    if (roles.contains(op)) {
      RolePlan::Access access = roles.accesses.lookup(op);
      auto barriers =
          ItemBarriers::get(rewriter, op, adaptor.getItem(), access);
      if (access.waits)
        emitBarrierWait(rewriter, loc, barriers.full, barriers.parity,
                        adaptor.getArrived());
      roles.emptyBarriers[roles.awaitNumbers.lookup(op)] = barriers.empty;
    } else if (std::optional<int64_t> pending = plans.lookup(op).pending) {
      emitWait(rewriter, loc, *pending);
      if (isReadByWgmma(op.getRing().getType().getSlotType()))
        emitProxyFence(rewriter, loc);
      gpu::BarrierOp::create(rewriter, loc);
    }
    rewriter.replaceOp(op, slotAddress(rewriter, loc, op.getRing().getType(),
                                       adaptor.getRing(), adaptor.getItem()));
    return success();
  }

private:
  const AwaitPlans &plans;
  RolePlan &roles;
};

/// Nobody asks about what comes with another ring's item.
struct LowerTest final : OpConversionPattern<TestOp> {
  LowerTest(const TypeConverter &converter, MLIRContext *context,
            const RolePlan &roles)
      : OpConversionPattern(converter, context), roles(roles) {}

  LogicalResult
  matchAndRewrite(TestOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RolePlan::Access access = roles.accesses.lookup(op);
    if (!access.waits) {
      rewriter.replaceOpWithNewOp<arith::ConstantIntOp>(op, 0, 1);
      return success();
    }
    auto barriers = ItemBarriers::get(rewriter, op, adaptor.getItem(), access);
    rewriter.replaceOp(
        op, emitBarrierTest(rewriter, loc, barriers.full, barriers.parity));
    return success();
  }

private:
  const RolePlan &roles;
};

/// With roles one arrival per warp. Else nothing to do: the next item's await
/// is a barrier, and nobody overwrites the slot before it.
struct LowerRelease final : OpConversionPattern<ReleaseOp> {
  LowerRelease(const TypeConverter &converter, MLIRContext *context,
               const RolePlan &roles)
      : OpConversionPattern(converter, context), roles(roles) {}

  LogicalResult
  matchAndRewrite(ReleaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (auto number = roles.awaitNumbers.find(op);
        number != roles.awaitNumbers.end()) {
      // The arrival is that of all lanes.
      if (roles.releasesOfLanes.contains(op))
        NVVM::SyncWarpOp::create(rewriter, op.getLoc(),
                                 Integers(rewriter, op.getLoc()).constant(-1));
      emitBarrierArrive(rewriter, op.getLoc(),
                        roles.emptyBarriers[number->second]);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  const RolePlan &roles;
};

} // namespace

void attn::warp::populateCopyPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      const AwaitPlans &awaits,
                                      const StoreFragPlans &stores,
                                      RolePlan &roles) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerAllocation<AllocOp>, LowerAllocation<RingOp>, LowerCopy>(
      converter, context);
  patterns.add<LowerCopyAsync, LowerRelease, LowerTest>(converter, context,
                                                        roles);
  patterns.add<LowerStoreFrag>(converter, context, stores, roles);
  patterns.add<LowerAwait>(converter, context, awaits, roles);
}
