//===- StageStores.cpp - results leave through shared memory -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane holds pieces of 4 bytes of many rows, so that a store of fragments
// writes small pieces all over. Through a slot whole rows are written: in
// pieces of 16 bytes, or by TMA beside what comes next.
//
// Which slot: with roles one of its own, as wide as what is left of shared
// memory allows (all the tile, a half, a quarter, …), so that the slots of the
// inputs are free for what comes next. Else, and without roles, where memory
// decides how many blocks run side by side, the slot of an `a` operand with
// the same rows, whose release then stands after the store.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/Atoms.h"
#include "attn/Dialect/Warp/IR/Turns.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Layout/Descriptors.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPSTAGESTORES
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The widest slot of whole panels that takes the tile in equal parts and fits
/// into `bytes`; null if there is none.
static SlotType chooseOwnSlot(FragType frag, int64_t bytes) {
  int64_t rows = frag.getShape()[0], columns = frag.getShape()[1];
  int64_t elementBytes = frag.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t panelBytes = layout::choosePanelBytes(columns * elementBytes);
  for (int64_t parts = 1; parts <= columns; ++parts) {
    int64_t perPart = columns / parts;
    if (parts > 1 &&
        (columns % parts != 0 || perPart * elementBytes % panelBytes != 0))
      continue;
    auto slot = SlotType::get(frag.getContext(), {rows, perPart},
                              frag.getElementType(), panelBytes);
    if (slot.getLayout().bytes() <= bytes)
      return slot;
  }
  return {};
}

static Value createOwnSlot(RewriterBase &rewriter, KernelOp kernel,
                           SlotType type, Location loc) {
  Operation *last = nullptr;
  for (Operation &op : *kernel.getBodyBlock())
    if (isa<AllocOp, RingOp>(op))
      last = &op;
  if (last)
    rewriter.setInsertionPointAfter(last);
  else
    rewriter.setInsertionPointToStart(kernel.getBodyBlock());
  return AllocOp::create(rewriter, loc, type, /*offset=*/nullptr).getSlot();
}

/// Whether the store may go via an awaited or allocated slot: it takes the
/// tile, and nothing but `a` operands is read from it.
static bool takesTile(Value slot, StoreOp store) {
  auto type = cast<SlotType>(slot.getType());
  FragType frag = store.getValue().getType();
  if (type.getElementType() != frag.getElementType() ||
      type.getShape()[0] != frag.getShape()[0] ||
      frag.getShape()[1] > type.getShape()[1])
    return false;
  return llvm::all_of(getUsesThroughTurns(slot), [](OpOperand *use) {
    Operation *user = use->getOwner();
    auto product = dyn_cast<ProductOp>(user);
    // What lanes read is refilled: a bias, no query tile.
    auto load = dyn_cast<LoadFragOp>(user);
    return isa<ReleaseOp, CopyOp>(user) || (load && !load.readsTile()) ||
           (product && !product.isReadByAll(use));
  });
}

/// Whether something reads an awaited slot after `end`.
static bool isReadAfter(Value slot, Operation *end) {
  return llvm::any_of(getUsesThroughTurns(slot), [&](OpOperand *use) {
    Operation *reader =
        end->getBlock()->findAncestorOpInBlock(*use->getOwner());
    return !isa<ReleaseOp>(use->getOwner()) && reader &&
           end->isBeforeInBlock(reader);
  });
}

/// A slot of the inputs that the store's block, or one around it, awaits, and
/// its release there, if any.
static std::pair<Value, ReleaseOp> findInputSlot(StoreOp store) {
  for (Operation *end = store; isa<StoreOp, scf::IfOp>(end);
       end = end->getParentOp())
    for (Operation &op : *end->getBlock()) {
      if (&op == end)
        break;
      auto await = dyn_cast<AwaitOp>(op);
      if (!await || !takesTile(await.getSlot(), store) ||
          isReadAfter(await.getSlot(), end))
        continue;
      for (OpOperand *use : getUsesThroughTurns(await.getSlot()))
        if (auto release = dyn_cast<ReleaseOp>(use->getOwner());
            release && release->getBlock() == await->getBlock())
          return {await.getSlot(), release};
    }
  auto kernel = store->getParentOfType<KernelOp>();
  if (store->getParentOp() == kernel)
    for (auto alloc : kernel.getBodyBlock()->getOps<AllocOp>())
      if (takesTile(alloc.getSlot(), store))
        return {alloc.getSlot(), {}};
  return {};
}

/// TMA, in roles, for what it takes of the function's arguments: of other
/// memory there are no tensor maps.
static CopyAtom chooseAtom(StoreOp store) {
  auto argument = dyn_cast<BlockArgument>(store.getView());
  bool isTMA = store->getParentOfType<RoleOp>() && argument &&
               isa<func::FuncOp>(argument.getOwner()->getParentOp()) &&
               findTMAObstacle(cast<MemRefType>(store.getView().getType()),
                               store.getStaging().getType(),
                               attn::layout::groupOfWarpsRows)
                   .empty();
  return isTMA ? CopyAtom::TMA : CopyAtom::Plain;
}

static LogicalResult stageStore(RewriterBase &rewriter, KernelOp kernel,
                                StoreOp store, int64_t limit,
                                std::string &reason) {
  OpBuilder::InsertionGuard guard(rewriter);
  FragType frag = store.getValue().getType();
  if (frag.getLayout().columnGroups() > 1) {
    reason = "warps have different columns of the tile";
    return failure();
  }
  if (store.getSlices() != 1) {
    reason = "the rows go to several slices of the memory";
    return failure();
  }
  auto view = cast<MemRefType>(store.getView().getType());
  int64_t perPiece = 8 * layout::chunkBytes / view.getElementTypeBitWidth();
  if (view.isDynamicDim(view.getRank() - 1) ||
      view.getShape().back() % perPiece != 0) {
    reason = "the rows in memory are no whole pieces of 16 bytes";
    return failure();
  }
  Value slot;
  unsigned bits = frag.getElementType().getIntOrFloatBitWidth();
  if (kernel.hasRoles() && bits == 16)
    if (SlotType type = chooseOwnSlot(frag, limit - getSharedBytesUsed(kernel)))
      slot = createOwnSlot(rewriter, kernel, type, store.getLoc());
  if (!slot) {
    auto [input, release] = findInputSlot(store);
    if (!input) {
      reason = "no shared memory is left, and no slot of an operand takes the "
               "tile";
      return failure();
    }
    slot = input;
    if (release) {
      Operation *end = release->getBlock()->findAncestorOpInBlock(*store);
      if (release->isBeforeInBlock(end))
        rewriter.moveOpAfter(release, end);
    }
  }
  rewriter.modifyOpInPlace(store, [&] {
    store.getStagingMutable().assign(slot);
    store.setAtom(chooseAtom(store));
  });
  return success();
}

int64_t attn::warp::stageStores(RewriterBase &rewriter, KernelOp kernel,
                                int64_t limit, std::string &reason) {
  SmallVector<StoreOp> stores;
  kernel.walk([&](StoreOp store) {
    ArrayRef<int64_t> shape = store.getValue().getType().getShape();
    if (!store.getRows() && !store.getAccumulate() && !store.getPacked() &&
        !store.getStaging() && shape[0] > 1 && shape[1] > 1)
      stores.push_back(store);
  });
  if (stores.empty())
    reason = "no tile is stored";
  return llvm::count_if(stores, [&](StoreOp store) {
    return succeeded(stageStore(rewriter, kernel, store, limit, reason));
  });
}

namespace {
struct WarpStageStores final
    : attn::SchedulePass<attn::warp::impl::WarpStageStoresBase<WarpStageStores>,
                         KernelOp, WarpForm::Staged> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("stores", stageStores(rewriter, kernel, sharedLimit, reason),
           reason);
  }
};
} // namespace
