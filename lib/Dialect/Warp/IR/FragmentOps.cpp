//===- FragmentOps.cpp - operations on fragments --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Same rows and columns, spread in the same way.
static bool isSpreadAlike(FragType a, FragType b) {
  return a.getShape() == b.getShape() && a.getKind() == b.getKind() &&
         a.sharesGrid(b);
}

LogicalResult SelectOp::verify() {
  FragType condition = getCondition().getType();
  FragType value = getResult().getType();
  if (!condition.getElementType().isInteger(1))
    return emitOpError("condition is ")
           << condition << ", expected elements of i1";
  if (!isSpreadAlike(condition, value))
    return emitOpError("condition is ")
           << condition << " and the values are " << value
           << ", expected the same shape and layout";
  return success();
}

/// What arith says of the scalar cast.
static bool isCastLegal(CastKind kind, Type from, Type to) {
  TypeRange in(from), out(to);
  switch (kind) {
  case CastKind::TruncF:
    return arith::TruncFOp::areCastCompatible(in, out);
  case CastKind::ExtF:
    return arith::ExtFOp::areCastCompatible(in, out);
  case CastKind::SIToFP:
    return arith::SIToFPOp::areCastCompatible(in, out);
  case CastKind::UIToFP:
    return arith::UIToFPOp::areCastCompatible(in, out);
  case CastKind::FPToSI:
    return arith::FPToSIOp::areCastCompatible(in, out);
  case CastKind::FPToUI:
    return arith::FPToUIOp::areCastCompatible(in, out);
  case CastKind::TruncI:
    return arith::TruncIOp::areCastCompatible(in, out);
  case CastKind::ExtSI:
    return arith::ExtSIOp::areCastCompatible(in, out);
  case CastKind::ExtUI:
    return arith::ExtUIOp::areCastCompatible(in, out);
  case CastKind::Bitcast:
    return arith::BitcastOp::areCastCompatible(in, out);
  }
  return false;
}

LogicalResult CastOp::verify() {
  FragType from = getValue().getType(), to = getResult().getType();
  if (from.getKind() != FragKind::Acc || !isSpreadAlike(from, to))
    return emitOpError("casts ")
           << from << " to " << to << ", expected 'acc' fragments of one shape";
  if (!isCastLegal(getKind(), from.getElementType(), to.getElementType()))
    return emitOpError("'")
           << stringifyCastKind(getKind()) << "' cannot turn "
           << from.getElementType() << " into " << to.getElementType();
  return success();
}

LogicalResult ConvertOp::verify() {
  FragType from = getValue().getType(), to = getResult().getType();
  bool sameTile = from.getShape() == to.getShape() &&
                  from.getElementType() == to.getElementType() &&
                  from.sharesGrid(to);
  if (!sameTile)
    return emitOpError("turns ")
           << from << " into " << to << ", expected the same tile";
  if (from.getKind() != FragKind::Acc || to.getKind() != FragKind::A)
    return emitOpError("turns '")
           << stringifyFragKind(from.getKind()) << "' into '"
           << stringifyFragKind(to.getKind())
           << "', only 'acc' to 'a' stays inside the lanes";
  return success();
}

LogicalResult BroadcastOp::verify() {
  FragType from = getValue().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType() || !from.sharesGrid(to) ||
      from.getKind() != FragKind::Acc || to.getKind() != FragKind::Acc)
    return emitOpError("stretches ")
           << from << " to " << to
           << ", expected 'acc' fragments of one element type";
  for (auto [have, want] : llvm::zip(from.getShape(), to.getShape()))
    if (have != want && have != 1)
      return emitOpError("stretches ")
             << from << " to " << to
             << ", only a dimension of size 1 stretches";
  return success();
}

LogicalResult ReduceOp::verify() {
  FragType from = getValue().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType() || !from.sharesGrid(to) ||
      from.getKind() != FragKind::Acc || to.getKind() != FragKind::Acc)
    return emitOpError("reduces ")
           << from << " to " << to
           << ", expected 'acc' fragments of one element type";
  if (!from.getElementType().isF32())
    return emitOpError("reduces ") << from << ", expected elements of f32";
  if (from.getLayout().columnGroups() > 1)
    return emitOpError("reduces ")
           << from << ", expected warps that have whole rows";
  int64_t columns = to.getShape()[1];
  bool toRows = columns == 1;
  bool toLanes = columns == layout::laneColumns && from.getShape()[1] > columns;
  if (from.getShape()[0] != to.getShape()[0] || from.getShape()[0] == 1 ||
      from.getShape()[1] == 1 || !(toRows || toLanes))
    return emitOpError("reduces ")
           << from << " to " << to << ", expected MxN to Mx1 or to Mx4";
  return success();
}

LogicalResult AnyOp::verify() {
  FragType from = getValue().getType();
  if (!from.getElementType().isInteger(1) || from.getKind() != FragKind::Acc)
    return emitOpError("asks ") << from << ", expected an i1 'acc' fragment";
  return success();
}

LogicalResult ExtremeOp::verify() {
  FragType from = getValue().getType();
  if (!from.getElementType().isInteger(32) || from.getKind() != FragKind::Acc ||
      from.getWarps() != 1)
    return emitOpError("looks at ")
           << from << ", expected an i32 'acc' fragment of one warp";
  return success();
}

LogicalResult CoordsOp::verify() {
  FragType frag = getResult().getType();
  if (getAxis() != 0 && getAxis() != 1)
    return emitOpError("got axis ") << getAxis() << ", expected 0 or 1";
  if (!frag.getElementType().isInteger(32) || frag.getKind() != FragKind::Acc)
    return emitOpError("gives ") << frag << ", expected an i32 'acc' fragment";
  if (frag.getShape()[1 - getAxis()] != 1)
    return emitOpError("gives ")
           << frag << " along axis " << getAxis() << ", expected size 1 in the "
           << "other dimension";
  return success();
}
