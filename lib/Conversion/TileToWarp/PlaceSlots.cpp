//===- PlaceSlots.cpp - loaded tiles go to shared memory ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlatForm.h"
#include "Patterns.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Warp/IR/Atoms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

namespace {
/// A load and which of the slots of its kind it uses: the number of loads of
/// the same view and type before it in its loop body. So the tiles of loops
/// after each other share a slot. -1: it shares with none, because a reader
/// stands outside the body, or in a loop within.
struct PlacedLoad {
  tile::LoadOp load;
  int64_t ordinal;
};
} // namespace

static int64_t getOrdinal(tile::LoadOp load) {
  bool isLocal =
      isa<scf::ForOp>(load->getParentOp()) &&
      llvm::all_of(load.getResult().getUsers(), [&](Operation *user) {
        // A loop within could copy into the same slot.
        return user->getParentOfType<scf::ForOp>() == load->getParentOp();
      });
  if (!isLocal)
    return -1;
  auto before =
      llvm::make_range(load->getBlock()->begin(), load->getIterator());
  return llvm::count_if(before, [&](Operation &op) {
    auto other = dyn_cast<tile::LoadOp>(op);
    return other && other.getView() == load.getView() &&
           other.getResult().getType() == load.getResult().getType();
  });
}

warp::SlotType attn::getSlotType(ArrayRef<int64_t> shape, Type element,
                                 AtomChoice choice, bool isOperand,
                                 int64_t parts) {
  constexpr int64_t bitsPerByte = 8;
  int64_t rowBytes = shape[1] * element.getIntOrFloatBitWidth() / bitsPerByte;
  bool hasPanels = isOperand && warp::getTraits(choice.of(element)).readsPanels;
  int64_t panelBytes =
      hasPanels ? layout::choosePanelBytes(rowBytes, parts) : 0;
  return warp::SlotType::get(element.getContext(), shape, element, panelBytes);
}

namespace {
/// Builds slots at the start of a kernel and the copies that fill them.
class SlotPlacement {
public:
  SlotPlacement(RewriterBase &rewriter, warp::KernelOp kernel, PlanAttr plan,
                AtomChoice choice)
      : rewriter(rewriter), kernel(kernel), plan(plan), choice(choice) {}

  void place(const PlacedLoad &placed);

private:
  Value getSlot(const PlacedLoad &placed);
  Value createOperand(tile::LoadOp load, Value slot);
  void readByLanes(tile::LoadOp load, Value slot, OpOperand &use);

  RewriterBase &rewriter;
  warp::KernelOp kernel;
  PlanAttr plan;
  AtomChoice choice;
  Operation *lastAlloc = nullptr;
  llvm::DenseMap<std::tuple<Value, Type, int64_t>, Value> slots;
};
} // namespace

/// In how many parts products read the columns of a tile: groups of warps that
/// share the rows of a sum have columns of their own.
static int64_t countParts(tile::LoadOp load, PlanAttr plan) {
  int64_t parts = 1;
  for (OpOperand &use : load.getResult().getUses())
    if (auto contract = dyn_cast<vector::ContractionOp>(use.getOwner());
        contract && use.getOperandNumber() == 1 && !isTransposed(contract, 1))
      parts = std::max(
          parts,
          spread(cast<VectorType>(contract.getAccType()), plan).columnGroups());
  return parts;
}

Value SlotPlacement::getSlot(const PlacedLoad &placed) {
  tile::LoadOp load = placed.load;
  auto type = cast<VectorType>(load.getResult().getType());
  std::tuple<Value, Type, int64_t> key = {load.getView(), type, placed.ordinal};
  if (placed.ordinal >= 0)
    if (Value slot = slots.lookup(key))
      return slot;
  if (lastAlloc)
    rewriter.setInsertionPointAfter(lastAlloc);
  else
    rewriter.setInsertionPointToStart(kernel.getBodyBlock());
  auto slotType =
      getSlotType(type.getShape(), type.getElementType(), choice,
                  /*isOperand=*/!isRow(load), countParts(load, plan));
  auto alloc = warp::AllocOp::create(rewriter, load.getLoc(), slotType,
                                     /*offset=*/nullptr);
  lastAlloc = alloc;
  if (placed.ordinal >= 0)
    slots[key] = alloc.getSlot();
  return alloc.getSlot();
}

/// What is no operand of a product, or its transpose, as a fragment.
void SlotPlacement::readByLanes(tile::LoadOp load, Value slot, OpOperand &use) {
  rewriter.setInsertionPoint(load);
  auto transpose = dyn_cast<vector::TransposeOp>(use.getOwner());
  auto type = cast<VectorType>(transpose ? transpose.getType()
                                         : load.getResult().getType());
  Value fragment = warp::LoadFragOp::create(
      rewriter, load.getLoc(), getAccType(type, plan), slot,
      /*transpose=*/static_cast<bool>(transpose));
  Value tile = UnrealizedConversionCastOp::create(rewriter, load.getLoc(), type,
                                                  fragment)
                   .getResult(0);
  if (transpose)
    rewriter.replaceOp(transpose, tile);
  else
    rewriter.modifyOpInPlace(use.getOwner(), [&] { use.set(tile); });
}

/// The indices of the box of each slice.
static SmallVector<Value> listBoxes(OpBuilder &b, tile::LoadOp load) {
  Location loc = load.getLoc();
  ValueRange first = load.getIndices();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value last;
  if (Value end = load.getSliceEnd())
    last = b.createOrFold<arith::SubIOp>(loc, end, constant(1));
  auto type = cast<VectorType>(load.getResult().getType());
  int64_t dimension = int64_t(first.size()) - type.getRank() - 1;
  SmallVector<Value> indices(first);
  for (int64_t number : llvm::seq<int64_t>(1, load.getSlices())) {
    size_t begin = indices.size();
    llvm::append_range(indices, first);
    Value &slice = indices[begin + dimension];
    slice = b.createOrFold<arith::AddIOp>(loc, slice, constant(number));
    if (last)
      slice = arith::MinSIOp::create(b, loc, slice, last);
  }
  return indices;
}

/// A left operand in registers.
Value SlotPlacement::createOperand(tile::LoadOp load, Value slot) {
  auto type = cast<VectorType>(load.getResult().getType());
  return warp::LoadFragOp::create(
      rewriter, load.getLoc(),
      warp::FragType::get(kernel.getContext(), type.getShape(),
                          type.getElementType(), warp::FragKind::A,
                          kernel.getWarps()),
      slot);
}

void SlotPlacement::place(const PlacedLoad &placed) {
  tile::LoadOp load = placed.load;
  Value slot = getSlot(placed);
  rewriter.setInsertionPoint(load);
  warp::CopyOp::create(rewriter, load.getLoc(), load.getView(),
                       listBoxes(rewriter, load), slot, load.getSlices());
  Value fragment;
  if (isRow(load)) {
    auto type = cast<VectorType>(load.getResult().getType());
    Value row = warp::LoadFragOp::create(rewriter, load.getLoc(),
                                         getAccType(type, plan), slot);
    rewriter.replaceOpWithNewOp<UnrealizedConversionCastOp>(load, type, row);
    return;
  }
  for (OpOperand &use :
       llvm::make_early_inc_range(load.getResult().getUses())) {
    Value tile = slot;
    bool isLhs = use.getOperandNumber() == 0;
    auto contract = dyn_cast<vector::ContractionOp>(use.getOwner());
    if (!contract) {
      readByLanes(load, slot, use);
      continue;
    }
    bool isRead = isLhs && plan.getQInRegisters() && !isTransposed(contract, 0);
    if (isRead) {
      if (!fragment)
        fragment = createOperand(load, slot);
      tile = fragment;
    }
    auto cast = UnrealizedConversionCastOp::create(
        rewriter, load.getLoc(), load.getResult().getType(), tile);
    rewriter.modifyOpInPlace(use.getOwner(),
                             [&] { use.set(cast.getResult(0)); });
  }
  rewriter.eraseOp(load);
}

void attn::placeSlots(RewriterBase &rewriter, warp::KernelOp kernel,
                      PlanAttr plan, AtomChoice choice) {
  SmallVector<PlacedLoad> loads;
  kernel.walk([&](tile::LoadOp load) {
    if (!load.getPacked())
      loads.push_back({load, getOrdinal(load)});
  });
  SlotPlacement placement(rewriter, kernel, plan, choice);
  for (const PlacedLoad &load : loads)
    placement.place(load);
}
