//===- CopyOps.cpp - shared memory, rings and copies ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Atoms.h"
#include "attn/Dialect/Warp/IR/Turns.h"
#include "attn/Layout/Descriptors.h"

using namespace mlir;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static LogicalResult verifyPlace(Operation *op, std::optional<int64_t> offset) {
  if (!isa_and_present<KernelOp>(op->getParentOp()))
    return op->emitOpError("must stand directly in a warp.kernel");
  if (offset && (*offset < 0 || *offset % 16 != 0))
    return op->emitOpError("is placed at byte ")
           << *offset << ", expected a multiple of 16 that is not negative";
  return success();
}

LogicalResult AllocOp::verify() { return verifyPlace(*this, getOffset()); }

LogicalResult RingOp::verify() { return verifyPlace(*this, getOffset()); }

int64_t RingOp::getBarrierOffset() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  assert(kernel.getSharedBytes() && kernel.hasRoles() && "a placed kernel");
  int64_t offset = *kernel.getSharedBytes() - kernel.getBarrierBytes();
  for (auto ring : kernel.getBodyBlock()->getOps<RingOp>()) {
    if (ring == *this)
      break;
    offset += ring.getRing().getType().getDepth() * barrierBytesPerSlot;
  }
  return offset;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// A box of `view` at `indices` has the type of a tile. Rows are read in chunks
/// of 16 bytes, so the innermost dimension is contiguous.
static LogicalResult verifyBox(Operation *op, Type type, size_t indices,
                               SlotType tile) {
  auto view = dyn_cast<MemRefType>(type);
  if (!view)
    return op->emitOpError("expects a ranked memref");
  if (int64_t(indices) != view.getRank())
    return op->emitOpError("got ")
           << indices << " indices for a memref of rank " << view.getRank();
  int64_t leastRank = tile.getShape()[0] == 1 ? 1 : 2;
  if (view.getRank() < leastRank)
    return op->emitOpError("got a memref of rank ")
           << view.getRank() << ", expected at least " << leastRank;
  if (view.getElementType() != tile.getElementType())
    return op->emitOpError("got elements of ")
           << view.getElementType() << " in memory and of "
           << tile.getElementType() << " in the tile, expected the same";
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(view.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return op->emitOpError("expects a strided memref with innermost stride 1, "
                           "got ")
           << view;
  return success();
}

/// What is copied by TMA.
static LogicalResult verifyTMA(Operation *op, MemRefType view, SlotType slot,
                               int64_t rows) {
  std::string obstacle = findTMAObstacle(view, slot, rows);
  if (obstacle.empty())
    return success();
  return op->emitOpError("is by tma: ")
         << obstacle << ", got " << view << " and " << slot;
}

/// Of a copy: boxes of equal parts of the rows, whole patterns of the swizzle.
template <typename Copy>
static LogicalResult verifyBoxes(Copy op, SlotType tile) {
  int64_t boxes = op.getBoxes(), rows = tile.getShape()[0];
  if (boxes < 1 || op.getIndices().size() % boxes != 0)
    return op.emitOpError("got ")
           << op.getIndices().size() << " indices for " << boxes
           << " boxes, expected equally many each";
  if (boxes > 1 && rows % (boxes * attn::layout::rowsOfSwizzle) != 0)
    return op.emitOpError("fills ")
           << rows << " rows from " << boxes
           << " boxes, expected equal parts of a multiple of "
           << attn::layout::rowsOfSwizzle;
  return verifyBox(op, op.getView().getType(), op.getBox(0).size(), tile);
}

OperandRange CopyOp::getBox(int64_t number) {
  int64_t rank = getIndices().size() / getBoxes();
  return getIndices().slice(number * rank, rank);
}

int64_t CopyOp::getRowsPerBox() {
  return getSlot().getType().getShape()[0] / int64_t(getBoxes());
}

LogicalResult CopyOp::verify() {
  return verifyBoxes(*this, getSlot().getType());
}

OperandRange CopyAsyncOp::getBox(int64_t number) {
  int64_t rank = getIndices().size() / getBoxes();
  return getIndices().slice(number * rank, rank);
}

int64_t CopyAsyncOp::getRowsPerBox() {
  return getRing().getType().getShape()[0] / int64_t(getBoxes());
}

LogicalResult CopyAsyncOp::verify() {
  SlotType tile = getRing().getType().getSlotType();
  if (failed(verifyBoxes(*this, tile)))
    return failure();
  // (C1)
  bool inRole = (*this)->getParentOfType<RoleOp>();
  CopyAtom expected = inRole ? CopyAtom::TMA : CopyAtom::CpAsync;
  if (getAtom() != expected)
    return emitOpError("is by ")
           << stringifyCopyAtom(getAtom()) << (inRole ? " in" : " without")
           << " a role, expected " << stringifyCopyAtom(expected);
  // (C2)
  return inRole ? verifyTMA(*this, cast<MemRefType>(getView().getType()), tile,
                            getRowsPerBox())
                : success();
}

LogicalResult AwaitOp::verify() {
  SlotType expected = getRing().getType().getSlotType();
  if (getSlot().getType() != expected)
    return emitOpError("gives a ")
           << getSlot().getType() << ", the ring holds " << expected;
  return success();
}

LogicalResult ReleaseOp::verify() {
  if (!getSourceThroughTurns(getSlot()).getDefiningOp<AwaitOp>())
    return emitOpError("releases a slot that no warp.await gave");
  return success();
}

SlotType StoreFragOp::getSlotType() {
  if (auto ring = dyn_cast<RingType>(getTarget().getType()))
    return ring.getSlotType();
  return cast<SlotType>(getTarget().getType());
}

LogicalResult StoreFragOp::verify() {
  bool isRing = isa<RingType>(getTarget().getType());
  if (isRing != bool(getItem()))
    return emitOpError(isRing ? "stores to a ring without the number of an item"
                              : "stores to an item of a slot, which has none");
  FragType frag = getValue().getType();
  if (frag.getKind() != FragKind::Acc)
    return emitOpError("expects an 'acc' fragment, got ") << frag;
  SlotType slot = getSlotType();
  if (frag.getShape() != slot.getShape() ||
      frag.getElementType() != slot.getElementType())
    return emitOpError("stores ") << frag << " to " << slot
                                  << ", expected the same shape and elements";
  if (slot.getShape()[0] == 1)
    return emitOpError("stores one row, expected a tile");
  if (int64_t groups = frag.getLayout().columnGroups();
      groups > 1 && (slot.hasPanels() || !slot.getLayout().splitsInto(groups)))
    return emitOpError("stores ")
           << frag << " to " << slot
           << ", expected rows that spread over the warps";
  return success();
}

/// The slot takes the tile, at once or in parts of whole panels.
static LogicalResult verifyStaging(StoreOp store) {
  if (!store.getStaging())
    return success();
  SlotType slot = store.getStaging().getType();
  FragType frag = store.getValue().getType();
  if (store.getRows())
    return store.emitOpError("writes rows, which cannot go via a slot");
  if (slot.getElementType() != frag.getElementType() ||
      slot.getShape()[0] != frag.getShape()[0])
    return store.emitOpError("goes via ")
           << slot << ", expected the rows and the elements of " << frag;
  int64_t columns = frag.getShape()[1], perPart = slot.getShape()[1];
  if (frag.getLayout().columnGroups() > 1 || store.getPacked())
    return store.emitOpError("goes via a slot: ")
           << frag << (store.getPacked() ? " is packed" : "")
           << ", expected rows that spread over the warps";
  if (perPart >= columns)
    return success();
  attn::layout::SharedTile tile = slot.getLayout();
  if (columns % perPart != 0 ||
      (slot.hasPanels() && perPart % tile.panelColumns() != 0))
    return store.emitOpError("goes in parts via ")
           << slot << ", expected columns that divide " << columns
           << (slot.hasPanels() ? " and fill whole panels" : "");
  return success();
}

/// The parts of the rows that go to slices of their own.
static LogicalResult verifySlices(StoreOp store) {
  int64_t slices = store.getSlices();
  int64_t rows = store.getValue().getType().getShape()[0];
  if (slices == 1 && !store.getSliceEnd())
    return success();
  if (slices <= 1)
    return store.emitOpError("has ")
           << slices << (slices == 1 ? " slice" : " slices")
           << (store.getSliceEnd() ? " below an index" : "")
           << ", expected several";
  if (rows % (slices * attn::layout::rowsOfSwizzle) != 0)
    return store.emitOpError("writes ")
           << rows << " rows to " << slices
           << " slices, expected equal parts of a multiple of "
           << attn::layout::rowsOfSwizzle;
  auto view = cast<MemRefType>(store.getView().getType());
  int64_t least = store.getRows() ? 2 : 3;
  if (view.getRank() < least)
    return store.emitOpError("writes slices of a memref of rank ")
           << view.getRank() << ", expected at least " << least;
  // (C3)
  if (store.getStaging() || store.getAccumulate() || store.getPacked())
    return store.emitOpError("writes slices, expected that it goes via no slot "
                             "and is neither packed nor accumulated");
  return success();
}

/// What a packed store writes, or a load reads.
static LogicalResult verifyPacked(Operation *op, FragType frag, MemRefType view,
                                  size_t numIndices) {
  if (!view || static_cast<int64_t>(numIndices) != view.getRank())
    return op->emitOpError("got ")
           << numIndices << " indices, expected one per dimension of a memref";
  if (frag.getKind() != FragKind::Acc || !frag.getElementType().isF32() ||
      !view.getElementType().isF32() || frag.getShape()[0] == 1 ||
      frag.getShape()[1] < 8 || frag.getNumElements() != view.getShape().back())
    return op->emitOpError("packs ")
           << frag << " in the innermost dimension of " << view
           << ", expected a tile of as many elements of f32";
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyPacked(*this, getResult().getType(),
                      dyn_cast<MemRefType>(getView().getType()),
                      getIndices().size());
}

LogicalResult StoreOp::verify() {
  if (getPacked() && !getStaging() && !getRows() && getSlices() == 1)
    return verifyPacked(*this, getValue().getType(),
                        dyn_cast<MemRefType>(getView().getType()),
                        getIndices().size());
  auto view = dyn_cast<MemRefType>(getView().getType());
  if (!view)
    return emitOpError("expects a ranked memref");
  FragType frag = getValue().getType();
  if (frag.getKind() != FragKind::Acc)
    return emitOpError("expects an 'acc' fragment, got ") << frag;
  if (int64_t(getIndices().size()) != view.getRank())
    return emitOpError("got ")
           << getIndices().size() << " indices for a memref of rank "
           << view.getRank();
  if (view.getElementType() != frag.getElementType())
    return emitOpError("got elements of ")
           << frag.getElementType() << " for a memref of "
           << view.getElementType() << ", expected the same";
  if (getAccumulate() && !frag.getElementType().isF32())
    return emitOpError("accumulates elements of ")
           << frag.getElementType() << ", expected f32";
  if (getAccumulate() && getRows())
    return emitOpError("accumulates rows, expected a whole tile");
  if (getRows() && frag.getShape()[1] != 1)
    return emitOpError("writes rows of ") << frag << ", expected one column";
  int64_t rank = getRows() ? 1 : 2;
  if (view.getRank() < rank)
    return emitOpError("got a memref of rank ")
           << view.getRank() << ", expected at least " << rank;
  if (failed(verifySlices(*this)))
    return failure();
  if (failed(verifyStaging(*this)))
    return failure();
  // (C1)
  if (getAtom() == CopyAtom::CpAsync)
    return emitOpError("is by cp_async, which only loads: expected plain or "
                       "tma");
  if (getAtom() == CopyAtom::Plain)
    return success();
  if (!getStaging() || !(*this)->getParentOfType<RoleOp>())
    return emitOpError("is by tma ")
           << (getStaging() ? "without a role" : "and goes via no slot")
           << ", expected plain";
  // (C2)
  return verifyTMA(*this, view, getStaging().getType(),
                   attn::layout::groupOfWarpsRows);
}

/// True for i32, and for fragments of i32 whose dimensions are 1 or those of
/// `result`.
static bool stretchesTo(Type type, FragType result) {
  if (type.isInteger(32))
    return true;
  auto index = dyn_cast<FragType>(type);
  return index && index.getElementType().isInteger(32) &&
         index.getKind() == FragKind::Acc && index.sharesGrid(result) &&
         llvm::all_of(llvm::zip(index.getShape(), result.getShape()),
                      [](auto sizes) {
                        auto [have, want] = sizes;
                        return have == want || have == 1;
                      });
}

LogicalResult SearchOp::verify() {
  auto view = dyn_cast<MemRefType>(getView().getType());
  if (!view || view.getRank() == 0 || !view.getElementType().isInteger(32))
    return emitOpError("expects a memref of i32 of rank 1 or more, got ")
           << getView().getType();
  if (int64_t(getIndices().size()) != view.getRank() - 1)
    return emitOpError("got ")
           << getIndices().size() << " leading indices for a memref of rank "
           << view.getRank();
  Type type = getResult().getType();
  auto result = dyn_cast<FragType>(type);
  bool isFrag = result && result.getKind() == FragKind::Acc &&
                result.getElementType().isInteger(32);
  if (!isFrag && !type.isInteger(32))
    return emitOpError("expects an i32 or an 'acc' fragment of i32, got ")
           << type;
  SmallVector<Type> operands(getIndices().getTypes());
  operands.push_back(getValue().getType());
  for (Type operand : operands) {
    if (isFrag ? stretchesTo(operand, result) : operand.isInteger(32))
      continue;
    return emitOpError("has an operand of ")
           << operand << ", expected i32"
           << (isFrag ? " or an i32 fragment that stretches to the result"
                      : "");
  }
  return success();
}

LogicalResult GatherOp::verify() {
  auto view = dyn_cast<MemRefType>(getView().getType());
  if (!view)
    return emitOpError("expects a ranked memref");
  FragType result = getResult().getType();
  if (result.getKind() != FragKind::Acc)
    return emitOpError("expects an 'acc' fragment, got ") << result;
  if (view.getElementType() != result.getElementType())
    return emitOpError("got elements of ")
           << view.getElementType() << " in memory and of "
           << result.getElementType() << " in the result, expected the same";
  if (int64_t(getIndices().size()) != view.getRank())
    return emitOpError("got ")
           << getIndices().size() << " indices for a memref of rank "
           << view.getRank();
  for (auto [number, type] : llvm::enumerate(getIndices().getTypes()))
    if (!stretchesTo(type, result))
      return emitOpError("index ")
             << number << " is " << type
             << ", expected i32 or an i32 fragment that stretches to "
             << result;
  return success();
}

static int64_t rowBytesOf(MemRefType view) {
  constexpr int64_t bitsPerByte = 8;
  return view.getShape().back() * view.getElementTypeBitWidth() / bitsPerByte;
}

std::string DotRowsOp::whyNot(Type lhs, Type rhs) {
  for (Type type : {lhs, rhs}) {
    auto view = dyn_cast<MemRefType>(type);
    if (!view || view.getRank() < 2)
      return "expects memrefs of rank 2 or more";
    Type element = view.getElementType();
    if (!element.isF16() && !element.isBF16() && !element.isF32())
      return "expects elements of f16, bf16 or f32";
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(view.getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return "expects contiguous rows";
    if (view.isDynamicDim(view.getRank() - 1) ||
        rowBytesOf(view) % layout::chunkBytes != 0)
      return "expects rows of a multiple of " +
             std::to_string(layout::chunkBytes) + " bytes";
  }
  auto left = cast<MemRefType>(lhs), right = cast<MemRefType>(rhs);
  if (left.getRank() != right.getRank() ||
      left.getElementType() != right.getElementType() ||
      left.getShape().back() != right.getShape().back())
    return "expects tensors of one rank, element type and length of rows";
  return "";
}

int64_t DotRowsOp::getRowBytes() {
  return rowBytesOf(cast<MemRefType>(getLhs().getType()));
}

LogicalResult DotRowsOp::verify() {
  if (std::string message = whyNot(getLhs().getType(), getRhs().getType());
      !message.empty())
    return emitOpError(message)
           << ", got " << getLhs().getType() << " and " << getRhs().getType();
  int64_t rank = cast<MemRefType>(getLhs().getType()).getRank();
  if (int64_t(getIndices().size()) != rank - 1)
    return emitOpError("got ")
           << getIndices().size() << " indices for memrefs of rank " << rank
           << ", expected all but the last";
  FragType result = getResult().getType();
  if (result.getKind() != FragKind::Acc || !result.getElementType().isF32() ||
      result.getShape()[0] == 1 || result.getShape()[1] != layout::laneColumns)
    return emitOpError("gives ") << result << ", expected Mx4 of f32, 'acc'";
  return success();
}

//===----------------------------------------------------------------------===//
// Bins
//===----------------------------------------------------------------------===//

int64_t ClearBinsOp::getRowsOfLane(int64_t rows, int64_t warps) {
  if (rows == 0)
    return 1;
  return layout::Fragment{layout::FragmentKind::Acc, rows, 1, warps}
      .numRegisters();
}

SlotType ClearBinsOp::getSlotType(MLIRContext *context, int64_t count,
                                  int64_t rows, int64_t warps) {
  int64_t numRows = llvm::alignTo(getRowsOfLane(rows, warps) * (count + 1),
                                  layout::rowsOfSwizzle);
  return SlotType::get(context, {numRows, warps * layout::warpSize},
                       Float32Type::get(context));
}

/// (C1) of operations with bins.
static LogicalResult verifyBins(Operation *op, TypedValue<SlotType> bins,
                                int64_t count, int64_t rows, int64_t warps) {
  if (count <= 0 || rows < 0 || warps <= 0)
    return op->emitOpError("has ")
           << count << " bins for " << rows << " rows and " << warps
           << " warps, expected bins of some warps";
  if (rows != 0) {
    std::string message =
        attn::layout::Fragment{attn::layout::FragmentKind::Acc, rows, 1, warps}
            .check();
    if (!message.empty())
      return op->emitOpError("has bins of ") << rows << " rows: " << message;
  }
  SlotType wanted =
      ClearBinsOp::getSlotType(op->getContext(), count, rows, warps);
  if (bins.getType() != wanted)
    return op->emitOpError("has ")
           << count << " bins in " << bins.getType() << ", expected " << wanted;
  bool isAlone =
      bins.getDefiningOp<AllocOp>() &&
      llvm::all_of(bins.getUsers(),
                   llvm::IsaPred<ClearBinsOp, ScatterAddOp, StoreBinsOp>);
  if (!isAlone)
    return op->emitOpError("has bins in a slot that is used for something "
                           "else, expected one of warp.alloc for them alone");
  return success();
}

LogicalResult ScatterAddOp::verify() {
  FragType value = getValue().getType();
  if (value.getKind() != FragKind::Acc || !value.getElementType().isF32() ||
      llvm::is_contained(value.getShape(), 1))
    return emitOpError("adds ")
           << value << ", expected a whole tile of f32, 'acc'";
  bool isOfRows = static_cast<int64_t>(getRows()) == value.getShape()[0] &&
                  value.getGridColumns() == 1;
  if (getRows() != 0 && !isOfRows)
    return emitOpError("adds ")
           << value << " to bins of " << getRows() << " rows";
  if (failed(verifyBins(*this, getBins(), getCount(), getRows(),
                        value.getWarps())))
    return failure();
  if (!stretchesTo(getIndex().getType(), value))
    return emitOpError("has an index of type ")
           << getIndex().getType()
           << ", expected i32 or a fragment of i32 that stretches to " << value;
  return success();
}

int64_t StoreBinsOp::getWarps() {
  return getBins().getType().getShape()[1] / layout::warpSize;
}

LogicalResult StoreBinsOp::verify() {
  if (failed(verifyBins(*this, getBins(), getCount(), getRows(), getWarps())))
    return failure();
  auto view = cast<MemRefType>(getView().getType());
  if (view.getRank() < 2 || !view.getElementType().isF32())
    return emitOpError("writes to ")
           << view << ", expected rank 2 or more and f32";
  if (int64_t(getIndices().size()) != view.getRank())
    return emitOpError("got ")
           << getIndices().size() << " indices, expected one per dimension of "
           << view;
  return success();
}
