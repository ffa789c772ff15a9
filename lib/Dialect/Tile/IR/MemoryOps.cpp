//===- MemoryOps.cpp - loads, stores, gathers, searches -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::tile;

/// (C1)-(C3) of tile.load and tile.store: the vector is a box of the memref's
/// innermost dimensions.
static LogicalResult verifyBox(Operation *op, MemRefType view,
                               VectorType vector, size_t numIndices) {
  // (C1)
  if (numIndices != static_cast<size_t>(view.getRank()))
    return op->emitOpError("got ")
           << numIndices << " indices, expected one per dimension of " << view;
  // (C2)
  if (vector.getElementType() != view.getElementType())
    return op->emitOpError("vector element type ")
           << vector.getElementType() << " differs from the memref's "
           << view.getElementType();
  // (C3)
  if (vector.getRank() > view.getRank())
    return op->emitOpError("vector rank ")
           << vector.getRank() << " exceeds the memref's rank "
           << view.getRank();
  if (vector.isScalable())
    return op->emitOpError("got scalable vector type ")
           << vector << ", expected fixed sizes";
  return success();
}

/// (C6) of tile.load and tile.store.
static LogicalResult verifySlices(Operation *op, MemRefType view,
                                  VectorType vector, int64_t slices, Value end,
                                  bool isPacked) {
  if (slices == 1 && !end)
    return success();
  if (slices <= 1)
    return op->emitOpError("has ")
           << slices << (slices == 1 ? " slice" : " slices")
           << (end ? " below an index" : "") << ", expected several";
  if (isPacked)
    return op->emitOpError("packs a tile of several slices, expected one");
  if (vector.getDimSize(0) % slices != 0)
    return op->emitOpError("takes ")
           << slices << " slices, expected a number that divides the "
           << vector.getDimSize(0) << " rows";
  if (vector.getRank() >= view.getRank())
    return op->emitOpError("takes slices of ")
           << view << ", expected a dimension in front of those of " << vector;
  return success();
}

/// (C4) of tile.load and tile.store.
static LogicalResult verifyPacked(Operation *op, MemRefType view,
                                  VectorType vector, ValueRange indices) {
  if (vector.getRank() != 2 || !vector.getElementType().isF32() ||
      vector.getNumElements() != view.getShape().back())
    return op->emitOpError("packs ")
           << vector << " into the innermost dimension of " << view
           << ", expected rank 2 and as many elements of f32";
  if (!isConstantIntValue(indices.back(), 0))
    return op->emitOpError("packs from an innermost index on that is not the "
                           "constant 0");
  return success();
}

LogicalResult LoadOp::verify() {
  auto view = cast<MemRefType>(getView().getType());
  auto vector = cast<VectorType>(getResult().getType());
  if (failed(verifyBox(*this, view, vector, getIndices().size())) ||
      failed(verifySlices(*this, view, vector, getSlices(), getSliceEnd(),
                          getPacked())))
    return failure();
  return getPacked() ? verifyPacked(*this, view, vector, getIndices())
                     : success();
}

LogicalResult StoreOp::verify() {
  Type element = cast<VectorType>(getValue().getType()).getElementType();
  if (getAccumulate() && !element.isF32())
    return emitOpError("accumulates elements of ")
           << element << ", expected f32";
  auto view = cast<MemRefType>(getView().getType());
  auto vector = cast<VectorType>(getValue().getType());
  if (failed(verifyBox(*this, view, vector, getIndices().size())) ||
      failed(verifySlices(*this, view, vector, getSlices(), getSliceEnd(),
                          getPacked())))
    return failure();
  if (getAccumulate() && getSlices() != 1)
    return emitOpError("accumulates ")
           << getSlices() << " slices, expected one";
  return getPacked() ? verifyPacked(*this, view, vector, getIndices())
                     : success();
}

/// True for i32, and for vectors of i32 whose dimensions are 1 or those of
/// `result`.
static bool stretchesTo(Type type, VectorType result) {
  if (type.isInteger(32))
    return true;
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getElementType().isInteger(32) &&
         vector.getRank() == result.getRank() &&
         llvm::all_of(llvm::zip(vector.getShape(), result.getShape()),
                      [](auto sizes) {
                        auto [from, to] = sizes;
                        return from == 1 || from == to;
                      });
}

LogicalResult GatherOp::verify() {
  auto view = cast<MemRefType>(getView().getType());
  Type element = getElementTypeOrSelf(getResult());
  auto result = dyn_cast<VectorType>(getResult().getType());
  // (C1)
  if (getIndices().size() != static_cast<size_t>(view.getRank()))
    return emitOpError("got ")
           << getIndices().size() << " indices, expected one per dimension of "
           << view;
  // (C2)
  if (element != view.getElementType())
    return emitOpError("result element type ")
           << element << " differs from the memref's " << view.getElementType();
  // (C5)
  if (!result && !isa_and_present<ScoresOp>((*this)->getParentOp()))
    return emitOpError("gives a scalar outside of tile.scores");
  // (C3), (C5)
  for (auto [number, type] : llvm::enumerate(getIndices().getTypes()))
    if (!result && !type.isInteger(32))
      return emitOpError("index ") << number << " has type " << type
                                   << ", expected i32 for a scalar result";
    else if (result && !stretchesTo(type, result))
      return emitOpError("index ")
             << number << " has type " << type
             << ", expected i32 or a vector of i32 that stretches to "
             << result;
  // (C6)
  if (getAligned() && (!getInside() || !result || result.getRank() != 2))
    return emitOpError("is aligned, expected it to be inside, and of rank 2");
  // (C4)
  if (getSorted() &&
      (view.getRank() == 0 || !view.getElementType().isInteger()))
    return emitOpError("is sorted, expected a memref of integers of rank 1 or "
                       "more, got ")
           << view;
  return success();
}

LogicalResult SearchOp::verify() {
  auto view = cast<MemRefType>(getView().getType());
  // (C2)
  if (view.getRank() == 0 || !view.getElementType().isInteger(32))
    return emitOpError("expected a memref of i32 of rank 1 or more, got ")
           << view;
  // (C1)
  if (static_cast<int64_t>(getIndices().size()) != view.getRank() - 1)
    return emitOpError("got ")
           << getIndices().size() << " leading indices, "
           << "expected " << view.getRank() - 1 << " for " << view;
  if (!getElementTypeOrSelf(getResult().getType()).isInteger(32))
    return emitOpError("expected a result of i32, got ")
           << getResult().getType();
  // (C3), (C4)
  auto result = dyn_cast<VectorType>(getResult().getType());
  SmallVector<Type> types(getIndices().getTypes());
  types.push_back(getValue().getType());
  for (auto [number, type] : llvm::enumerate(types))
    if (result ? !stretchesTo(type, result) : !type.isInteger(32)) {
      InFlightDiagnostic diag = emitOpError("operand ");
      diag << number + 1 << " has type " << type << ", expected i32";
      if (result)
        diag << " or a vector of i32 that stretches to " << result;
      return diag;
    }
  return success();
}

LogicalResult BinsOp::verify() {
  // (C1)
  if (!isa_and_present<KernelOp>((*this)->getParentOp()))
    return emitOpError("does not stand directly in a tile.kernel");
  // (C2)
  auto type = cast<MemRefType>(getBins().getType());
  if (!type.hasStaticShape() || type.getRank() < 1 || type.getRank() > 2 ||
      !type.getElementType().isF32() || !type.getLayout().isIdentity())
    return emitOpError("makes ")
           << type << ", expected f32 of rank 1 or 2, fixed sizes, no layout";
  // (C3)
  StoreBinsOp last;
  for (Operation *user : getBins().getUsers()) {
    auto store = dyn_cast<StoreBinsOp>(user);
    if (store && last)
      return store.emitOpError("stores bins that are stored elsewhere, too");
    if (store)
      last = store;
    else if (!isa<ScatterAddOp>(user))
      return user->emitOpError("uses bins, expected tile.scatter_add or "
                               "tile.store_bins");
  }
  if (last && last->getBlock() != (*this)->getBlock())
    return last.emitOpError("does not stand in the block of its bins");
  for (Operation *user : getBins().getUsers()) {
    Operation *around =
        last ? last->getBlock()->findAncestorOpInBlock(*user) : nullptr;
    if (around && around != last && !around->isBeforeInBlock(last))
      return user->emitOpError("adds to bins that are stored before");
  }
  return success();
}

LogicalResult ScatterAddOp::verify() {
  auto value = cast<VectorType>(getValue().getType());
  // (C1)
  if (value.getRank() != 2 || !value.getElementType().isF32())
    return emitOpError("adds ") << value << ", expected rank 2 and f32";
  // (C2)
  auto bins = cast<MemRefType>(getBins().getType());
  if (bins.getRank() == 2 && bins.getDimSize(0) != value.getDimSize(0))
    return emitOpError("adds ")
           << value << " to bins of " << bins.getDimSize(0) << " rows";
  // (C3)
  if (!stretchesTo(getIndex().getType(), value))
    return emitOpError("has an index of type ")
           << getIndex().getType()
           << ", expected i32 or a vector of i32 that stretches to " << value;
  return success();
}

LogicalResult StoreBinsOp::verify() {
  auto view = cast<MemRefType>(getView().getType());
  if (view.getRank() < 2 || !view.getElementType().isF32())
    return emitOpError("writes to ")
           << view << ", expected rank 2 or more and f32";
  if (getIndices().size() != static_cast<size_t>(view.getRank()))
    return emitOpError("got ")
           << getIndices().size() << " indices, expected one per dimension of "
           << view;
  return success();
}
