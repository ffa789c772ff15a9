//===- ContractToMma.cpp - vector.contract to warp.mma --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// The slot or operand fragment of a value of `placeSlots`.
static Value lookThroughCasts(Value value) {
  while (auto cast = value.getDefiningOp<UnrealizedConversionCastOp>())
    value = cast.getInputs().front();
  return value;
}

namespace {
/// vector.contract -> warp.mma; a left operand that was computed is rearranged
/// inside the lanes.
struct ContractToMma final : OpConversionPattern<vector::ContractionOp> {
  ContractToMma(const FragmentConverter &converter, MLIRContext *context,
                AtomChoice choice)
      : OpConversionPattern(converter, context), choice(choice) {}

  LogicalResult
  matchAndRewrite(vector::ContractionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value a = lookThroughCasts(adaptor.getLhs());
    Value b = lookThroughCasts(adaptor.getRhs());
    auto acc = cast<warp::FragType>(adaptor.getAcc().getType());
    bool isShared = acc.getLayout().columnGroups() > 1;
    if (isTransposed(op, 0) || isShared)
      a = exchange(op, a, rewriter);
    b = exchange(op, b, rewriter);
    auto slot = dyn_cast<warp::SlotType>(b.getType());
    if (!slot)
      return rewriter.notifyMatchFailure(op, "rhs is not in shared memory");
    auto frag = dyn_cast<warp::FragType>(a.getType());
    if (frag && frag.getKind() == warp::FragKind::Acc)
      a = warp::ConvertOp::create(
          rewriter, op.getLoc(),
          warp::FragType::get(getContext(), frag.getShape(),
                              frag.getElementType(), warp::FragKind::A,
                              frag.getWarps()),
          a);
    AtomChoice own = choice;
    own.ieee |= op->hasAttr(tile::TileDialect::kIeeeAttrName);
    rewriter.replaceOpWithNewOp<warp::MmaOp>(
        op, acc, own.of(slot.getElementType()), a, b, adaptor.getAcc(),
        isTransposed(op, 0), isTransposed(op, 1));
    return success();
  }

private:
  /// An operand in a slot: one that was computed, too, where warps read what
  /// others have.
  Value exchange(Operation *op, Value operand,
                 ConversionPatternRewriter &rewriter) const {
    auto type = dyn_cast<warp::FragType>(operand.getType());
    if (!type)
      return operand;
    auto slotType = getSlotType(type.getShape(), type.getElementType(), choice);
    auto kernel = op->getParentOfType<warp::KernelOp>();
    // One for all of a type: each is read where it is written. Where warps
    // share rows all left operands go through slots, and each has one of its
    // own: so warps meet once for those that are written one after the other.
    llvm::SmallDenseSet<Value> used;
    warp::StoreFragOp last;
    if (type.getGridColumns() > 1) {
      if (warp::StoreFragOp store = findStore(op, operand))
        return store.getTarget();
      for (auto store : op->getBlock()->getOps<warp::StoreFragOp>()) {
        used.insert(store.getTarget());
        last = store;
      }
    }
    Value slot;
    for (auto alloc : kernel.getBodyBlock()->getOps<warp::AllocOp>())
      if (isExchange(alloc) && alloc.getSlot().getType() == slotType &&
          !used.contains(alloc.getSlot()))
        slot = alloc.getSlot();
    OpBuilder::InsertionGuard guard(rewriter);
    if (!slot) {
      rewriter.setInsertionPointToStart(kernel.getBodyBlock());
      slot = warp::AllocOp::create(rewriter, op->getLoc(), slotType,
                                   /*offset=*/nullptr);
      rewriter.setInsertionPoint(op);
    }
    Operation *definition = operand.getDefiningOp();
    if (last && (!definition || definition->getBlock() != last->getBlock() ||
                 definition->isBeforeInBlock(last)))
      rewriter.setInsertionPointAfter(last);
    warp::StoreFragOp::create(rewriter, op->getLoc(), operand, slot,
                              /*item=*/Value());
    return slot;
  }

  /// The store of the operand in the block of a product, in front of it.
  static warp::StoreFragOp findStore(Operation *op, Value operand) {
    for (Operation *user : operand.getUsers())
      if (auto store = dyn_cast<warp::StoreFragOp>(user);
          store && store->getBlock() == op->getBlock())
        return store;
    return {};
  }

  static bool isExchange(warp::AllocOp alloc) {
    return llvm::any_of(alloc.getSlot().getUsers(),
                        llvm::IsaPred<warp::StoreFragOp>);
  }

  AtomChoice choice;
};
} // namespace

void attn::populateContractPatterns(const FragmentConverter &converter,
                                    RewritePatternSet &patterns,
                                    AtomChoice choice) {
  patterns.add<ContractToMma>(converter, patterns.getContext(), choice);
}
