//===- Mailbox.cpp - tiles that are handed out -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The counter starts at 0 and goes up by one with each draw; with the number of
// tiles it wraps around. Each tile is followed by one draw, so the last draw of
// a launch, wherever it happens, leaves 0 behind. Where each tile has a block
// none is left to draw, and the counter is not touched: there may be none.
//
// An item of `warp.mailbox`: its two barriers (as those of a ring), then the
// numbers, 4 bytes each.
//
//===----------------------------------------------------------------------===//

#include "Mailbox.h"

#include "Atoms/Mbarrier.h"
#include "Integers.h"
#include "Roles.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The address (i32) of number `number` of an item.
static Value numberAddress(OpBuilder &builder, Location loc,
                           const ItemBarriers &barriers, int64_t number) {
  constexpr int64_t numberBytes = 4;
  return Integers(builder, loc)
      .add(barriers.full, RingOp::barrierBytesPerSlot + number * numberBytes);
}

namespace {

/// The address is part of the operations that use it.
struct LowerMailbox final : OpConversionPattern<MailboxOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MailboxOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, Integers(rewriter, op.getLoc()).constant(0));
    return success();
  }
};

struct LowerDraw final : OpConversionPattern<DrawOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DrawOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Integers ints(rewriter, loc);
    FailureOr<View> view = View::get(rewriter, loc, op.getCounter());
    if (failed(view))
      return failure();
    Value last = ints.add(ints.fromIndex(adaptor.getTiles()), -1);
    Value blocks = ints.fromIndex(
        gpu::GridDimOp::create(rewriter, loc, gpu::Dimension::x));
    Type word = rewriter.getI32Type();
    auto drawn = LLVM::InlineAsmOp::create(
        rewriter, loc, TypeRange{word},
        ValueRange{view->address, last, ints.lane(), blocks},
        "{ .reg .pred draws; setp.eq.u32 draws, $3, 0; "
        "setp.le.and.u32 draws, $4, $2, draws; mov.u32 $0, 0; "
        "@draws atom.global.inc.u32 $0, [$1], $2; }",
        "=&r,l,r,r,r,~{memory}",
        /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                  LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
    // Memory takes its time: lane 0 tells the others where they ask.
    Operation *first = nullptr;
    for (Operation *user : op.getNumber().getUsers()) {
      Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
      if (here && (!first || here->isBeforeInBlock(first)))
        first = here;
    }
    if (first)
      rewriter.setInsertionPoint(first);
    constexpr int64_t toLastLane = layout::warpSize - 1;
    Value ofLane0 = NVVM::ShflOp::create(rewriter, loc, word, ints.constant(-1),
                                         drawn.getRes(), ints.constant(0),
                                         ints.constant(toLastLane),
                                         NVVM::ShflKind::idx, UnitAttr());
    rewriter.replaceOp(op, ints.toIndex(ints.add(ofLane0, blocks)));
    return success();
  }
};

/// An operation on an item, between one of its barriers and the other.
template <typename Op> class LowerItem : public OpConversionPattern<Op> {
public:
  LowerItem(const TypeConverter &converter, MLIRContext *context,
            const RolePlan &roles)
      : OpConversionPattern<Op>(converter, context), roles(roles) {}

protected:
  ItemBarriers barriersOf(Op op, Value item, RewriterBase &rewriter) const {
    return ItemBarriers::get(rewriter, op, item, roles.accesses.lookup(op));
  }

private:
  const RolePlan &roles;
};

struct LowerSend final : LowerItem<SendOp> {
  using LowerItem::LowerItem;

  LogicalResult
  matchAndRewrite(SendOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Integers ints(rewriter, loc);
    ItemBarriers barriers = barriersOf(op, adaptor.getItem(), rewriter);
    emitBarrierWait(rewriter, loc, barriers.empty,
                    ints.bitXor(barriers.parity, 1));
    for (auto [number, value] : llvm::enumerate(adaptor.getValues()))
      emitStatement(rewriter, loc,
                    "{ .reg .pred first; setp.eq.u32 first, $1, 0; "
                    "@first st.shared.b32 [$0], $2; }",
                    {numberAddress(rewriter, loc, barriers, int64_t(number)),
                     ints.lane(), ints.fromIndex(value)});
    emitBarrierArrive(rewriter, loc, barriers.full);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerReceive final : LowerItem<ReceiveOp> {
  using LowerItem::LowerItem;

  LogicalResult
  matchAndRewrite(ReceiveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Integers ints(rewriter, loc);
    ItemBarriers barriers = barriersOf(op, adaptor.getItem(), rewriter);
    emitBarrierWait(rewriter, loc, barriers.full, barriers.parity);
    SmallVector<Value> values;
    for (size_t number = 0; number < op.getNumResults(); ++number) {
      Value pointer = ints.toPointer(
          numberAddress(rewriter, loc, barriers, int64_t(number)));
      Value loaded =
          LLVM::LoadOp::create(rewriter, loc, rewriter.getI32Type(), pointer);
      values.push_back(ints.toIndex(loaded));
    }
    // The arrival is that of all lanes.
    NVVM::SyncWarpOp::create(rewriter, loc, ints.constant(-1));
    emitBarrierArrive(rewriter, loc, barriers.empty);
    rewriter.replaceOp(op, values);
    return success();
  }
};

} // namespace

void attn::warp::populateMailboxPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns,
                                         const RolePlan &roles) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerMailbox, LowerDraw>(converter, context);
  patterns.add<LowerSend, LowerReceive>(converter, context, roles);
}
