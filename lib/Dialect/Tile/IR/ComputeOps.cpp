//===- ComputeOps.cpp - coordinates and steps of a tile ------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn::tile;

LogicalResult CoordsOp::verify() {
  auto type = cast<VectorType>(getResult().getType());
  int64_t axis = getAxis();
  // (C1)
  if (axis < 0 || axis >= type.getRank())
    return emitOpError("axis ") << axis << " is not a dimension of " << type;
  // (C2)
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (static_cast<int64_t>(dim) != axis && size != 1)
      return emitOpError("dimension ")
             << dim << " of " << type << " has size " << size
             << ", expected 1: only axis " << axis << " is counted along";
  return success();
}

LogicalResult ExitIfOp::verify() {
  // (C1)
  Operation *parent = (*this)->getParentOp();
  if (!isa_and_present<KernelOp>(parent))
    return emitOpError("must stand directly in a tile.kernel");
  return success();
}

LogicalResult ShareBlocksOp::verify() {
  // (C1)
  auto kernel = dyn_cast_if_present<KernelOp>((*this)->getParentOp());
  if (!kernel)
    return emitOpError("must stand directly in a tile.kernel");
  ShareBlocksOp first = *kernel.getBody()->getOps<ShareBlocksOp>().begin();
  if (first != *this) {
    InFlightDiagnostic diagnostic =
        emitOpError("is the second one of its kernel, expected one");
    diagnostic.attachNote(first.getLoc()) << "first one is here";
    return diagnostic;
  }
  // (C2)
  if (getCount() < 1)
    return emitOpError("is of ")
           << getCount() << " shares, expected at least 1";
  return success();
}

LogicalResult GroupBoundsOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location>,
                                              ValueRange operands,
                                              DictionaryAttr, OpaqueProperties,
                                              RegionRange,
                                              SmallVectorImpl<Type> &types) {
  types.assign(operands.size(), IndexType::get(context));
  return success();
}

LogicalResult GroupBoundsOp::verifyRegions() {
  // (C1)
  if (getRows() < 1)
    return emitOpError("is of ") << getRows() << " rows, expected at least 1";
  // (C3)
  if (getBounds().size() < 2)
    return emitOpError("has ")
           << getBounds().size() << " bounds, expected at least 2";
  // (C2)
  Block &block = getOwn().front();
  Type index = IndexType::get(getContext());
  if (!llvm::equal(block.getArgumentTypes(), ArrayRef<Type>(index)))
    return emitOpError("region is a function of (")
           << block.getArgumentTypes() << "), expected (" << index << ")";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("region does not yield ")
           << getBounds().size() << " of " << index << ", one for each bound";
  for (Operation &inner : block)
    if (inner.getNumRegions() != 0 || !isPure(&inner)) {
      InFlightDiagnostic diagnostic = emitOpError("region holds '")
                                      << inner.getName()
                                      << "', expected arithmetic";
      diagnostic.attachNote(inner.getLoc()) << "is here";
      return diagnostic;
    }
  return success();
}

LogicalResult OnlineSoftmaxOp::verify() {
  auto scores = cast<VectorType>(getScores().getType());
  auto row = cast<VectorType>(getMax().getType());
  // (C1)
  if (row.getDimSize(0) != scores.getDimSize(0) || row.getDimSize(1) != 1)
    return emitOpError("row statistics have type ")
           << row << ", expected one per row: "
           << VectorType::get({scores.getDimSize(0), 1},
                              scores.getElementType());
  // (C2)
  APFloat scale = getScale();
  if (!scale.isFinite() || scale.isNegative() || scale.isZero())
    return emitOpError("scale is ")
           << getScaleAttr() << ", expected a positive finite number";
  // (C3)
  if (getExact() && getExp2())
    return emitOpError("is exact, but exp2 rounds its argument once more");
  // (C4)
  if (getBounded() && !getExp2())
    return emitOpError("is bounded without exp2: only exp2 depends on it");
  return success();
}
