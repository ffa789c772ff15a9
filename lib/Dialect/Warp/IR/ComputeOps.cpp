//===- ComputeOps.cpp - matrix products -----------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Atoms.h"

using namespace mlir;
using namespace attn::warp;

LogicalResult LoadFragOp::verify() {
  FragType frag = getResult().getType();
  SlotType slot = getSlot().getType();
  if (frag.getLayout().columnGroups() > 1 && slot.getShape()[0] != 1)
    return emitOpError("gives ")
           << frag << ", expected rows that spread over the warps";
  constexpr int64_t panelOfTransposed = 128; // bytes
  if (getTranspose() &&
      (!readsTile() || slot.getElementType().getIntOrFloatBitWidth() != 16 ||
       slot.getPanelBytes() != panelOfTransposed))
    return emitOpError("transposes ")
           << slot << " to " << frag
           << ", expected panels of 64 16-bit elements, and an 'acc' fragment";
  // A row may stand for the rows of a tile.
  SmallVector<int64_t> shape(frag.getShape());
  if (getTranspose() || (frag.getKind() == FragKind::Acc &&
                         slot.getShape()[0] == 1 && shape[1] == 1))
    std::swap(shape[0], shape[1]);
  if (ArrayRef<int64_t>(shape) != slot.getShape() ||
      frag.getElementType() != slot.getElementType())
    return emitOpError("gives ") << frag << " from " << slot
                                 << ", expected the same shape and elements";
  return success();
}

LogicalResult attn::warp::verifyProduct(ProductOp op) {
  FragType acc = op.getAcc().getType();
  SlotType b = op.getB().getType();
  SmallVector<int64_t> aShape;
  Type aElement;
  if (auto frag = dyn_cast<FragType>(op.getA().getType())) {
    if (frag.getKind() != FragKind::A)
      return op.emitOpError("operand a is ")
             << frag << ", expected an 'a' fragment or a slot";
    if (frag.getWarps() != acc.getWarps())
      return op.emitOpError("operand a is over ")
             << frag.getWarps() << " warps and the accumulator over "
             << acc.getWarps() << ", expected the same";
    if (acc.getLayout().columnGroups() > 1)
      return op.emitOpError("operand a is ")
             << frag << " and the accumulator " << acc
             << ": expected a slot, which warps read for each other";
    // (C5)
    if (op.getTransposeA())
      return op.emitOpError("transposes an operand a in registers, expected a "
                            "slot");
    aShape = llvm::to_vector(frag.getShape());
    aElement = frag.getElementType();
  } else {
    auto slot = cast<SlotType>(op.getA().getType());
    aShape = llvm::to_vector(slot.getShape());
    if (op.getTransposeA())
      std::swap(aShape[0], aShape[1]);
    aElement = slot.getElementType();
  }
  if (acc.getKind() != FragKind::Acc || !acc.getElementType().isF32())
    return op.emitOpError("accumulator is ")
           << acc << ", expected an f32 'acc' fragment";
  if (aElement != b.getElementType())
    return op.emitOpError("operands have elements of ")
           << aElement << " and " << b.getElementType()
           << ", expected the same";
  int64_t bK = b.getShape()[op.getTransposeB() ? 1 : 0];
  int64_t bN = b.getShape()[op.getTransposeB() ? 0 : 1];
  int64_t m = acc.getShape()[0], n = acc.getShape()[1];
  if (aShape[0] != m || bN != n || aShape[1] != bK)
    return op.emitOpError("got a of ")
           << aShape[0] << "x" << aShape[1] << ", b of " << bK << "x" << bN
           << " and an accumulator of " << m << "x" << n
           << ", expected MxK, KxN and MxN";
  if (m == 1 || n < 8)
    return op.emitOpError("accumulator is a slice, expected a full fragment");
  return verifyAtom(op);
}

LogicalResult MmaAsyncOp::verify() {
  // (C1)
  if (getTraits(getAtom()).isAsync)
    return success();
  return emitOpError("is of ")
         << stringifyProductAtom(getAtom())
         << ", which cannot be waited for later: expected "
         << stringifyProductAtom(ProductAtom::Wgmma);
}
