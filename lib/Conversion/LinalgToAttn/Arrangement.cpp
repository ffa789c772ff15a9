//===- Arrangement.cpp - operands as attention wants them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Build.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace attn;
using namespace attn::raise;

Value attn::raise::readSize(OpBuilder &b, Location loc, Extents &extents,
                            Extent extent, ArrayRef<Operation *> avoided) {
  Operation *here = &*b.getInsertionPoint();
  DominanceInfo dominance(here->getParentOfType<func::FuncOp>());
  // Arguments first: they stay when the rest of the graph goes.
  for (bool wantsArgument : {true, false})
    for (const Extents::Place &place : extents.placesOf(extent)) {
      Operation *producer = place.tensor.getDefiningOp();
      if ((wantsArgument && producer) ||
          !dominance.properlyDominates(place.tensor, here) ||
          (producer && llvm::is_contained(avoided, producer)))
        continue;
      if (place.dim < 0 && place.tensor.getType().isIndex())
        return place.tensor;
      if (place.dim < 0)
        return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                          place.tensor);
      return tensor::DimOp::create(b, loc, place.tensor, place.dim);
    }
  return {};
}

OpFoldResult Arrangement::sizeOf(ExprRef variable) {
  Extent extent = variable->extents[0];
  if (isKnown(extent))
    return b.getIndexAttr(extent);
  return readSize(b, loc, extents, extent);
}

Value Arrangement::castShape(Value tensor, RankedTensorType type) {
  if (tensor.getType() == type)
    return tensor;
  return tensor::CastOp::create(b, loc, type, tensor);
}

Value Arrangement::castElements(Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType() == element)
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  SmallVector<AffineMap> maps(2, b.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  bool isWider = element.getIntOrFloatBitWidth() >
                 type.getElementType().getIntOrFloatBitWidth();
  return linalg::GenericOp::create(
             b, loc, empty.getType(), tensor, empty, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange v) {
               Value value =
                   isWider ? arith::ExtFOp::create(b, loc, element, v[0])
                                 .getResult()
                           : arith::TruncFOp::create(b, loc, element, v[0])
                                 .getResult();
               linalg::YieldOp::create(b, loc, value);
             })
      .getResult(0);
}

/// Each group holds one dimension that is wanted, and units around it.
static SmallVector<ReassociationIndices> groupUnits(ArrayRef<bool> isUnit) {
  SmallVector<ReassociationIndices> groups;
  ReassociationIndices leading;
  for (auto [dim, unit] : llvm::enumerate(isUnit)) {
    if (unit && !groups.empty()) {
      groups.back().push_back(dim);
      continue;
    }
    leading.push_back(dim);
    if (unit)
      continue;
    groups.push_back(leading);
    leading.clear();
  }
  return groups;
}

static SmallVector<bool> unitsOf(const Dimensions &dims) {
  SmallVector<bool> units;
  for (ArrayRef<ExprRef> parts : dims)
    units.push_back(parts.empty());
  return units;
}

static RankedTensorType typeOf(ArrayRef<OpFoldResult> sizes, Type element) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, element);
}

/// One dimension per variable.
Value Arrangement::toAtoms(Value tensor, const Dimensions &from) {
  auto type = cast<RankedTensorType>(tensor.getType());
  // Sizes that are known are in the type.
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, parts] : llvm::enumerate(from))
    if (parts.size() <= 1)
      shape[dim] = parts.empty()                   ? 1
                   : isKnown(parts[0]->extents[0]) ? parts[0]->extents[0]
                                                   : ShapedType::kDynamic;
    else {
      // Known if all parts are, or else unknown though the tensor's is known:
      // what a known size is expanded into is known.
      shape[dim] = 1;
      for (ExprRef part : parts)
        shape[dim] = isKnown(part->extents[0]) && shape[dim] >= 0
                         ? shape[dim] * part->extents[0]
                         : ShapedType::kDynamic;
    }
  Type element = type.getElementType();
  tensor = castShape(tensor, RankedTensorType::get(shape, element));
  SmallVector<bool> units = unitsOf(from);
  if (llvm::is_contained(units, true))
    tensor = tensor::CollapseShapeOp::create(b, loc, tensor, groupUnits(units));
  bool isJoined =
      llvm::any_of(from, [](const auto &parts) { return parts.size() > 1; });
  if (!isJoined)
    return tensor;
  SmallVector<ReassociationIndices> groups;
  SmallVector<OpFoldResult> sizes;
  for (ArrayRef<ExprRef> parts : from) {
    if (parts.empty())
      continue;
    groups.push_back({});
    for (ExprRef part : parts) {
      groups.back().push_back(sizes.size());
      sizes.push_back(sizeOf(part));
    }
  }
  return tensor::ExpandShapeOp::create(b, loc, typeOf(sizes, element), tensor,
                                       groups, sizes);
}

/// The reverse.
Value Arrangement::fromAtoms(Value tensor, const Dimensions &to) {
  SmallVector<ReassociationIndices> groups;
  unsigned next = 0;
  bool isJoined = false;
  for (ArrayRef<ExprRef> parts : to) {
    if (parts.empty())
      continue;
    groups.push_back({});
    for (size_t part = 0; part < parts.size(); ++part)
      groups.back().push_back(next++);
    isJoined |= parts.size() > 1;
  }
  if (isJoined)
    tensor = tensor::CollapseShapeOp::create(b, loc, tensor, groups);
  SmallVector<bool> units = unitsOf(to);
  if (!llvm::is_contained(units, true))
    return tensor;
  SmallVector<OpFoldResult> own = tensor::getMixedSizes(b, loc, tensor), sizes;
  unsigned kept = 0;
  for (bool unit : units)
    sizes.push_back(unit ? OpFoldResult(b.getIndexAttr(1)) : own[kept++]);
  auto type = cast<RankedTensorType>(tensor.getType());
  return tensor::ExpandShapeOp::create(b, loc,
                                       typeOf(sizes, type.getElementType()),
                                       tensor, groupUnits(units), sizes);
}

Value Arrangement::rearrange(Value tensor, const Dimensions &from,
                             const Dimensions &to) {
  if (from == to)
    return tensor;
  SmallVector<ExprRef> before, after;
  for (ArrayRef<ExprRef> parts : from)
    llvm::append_range(before, parts);
  for (ArrayRef<ExprRef> parts : to)
    llvm::append_range(after, parts);
  tensor = toAtoms(tensor, from);
  if (before != after) {
    SmallVector<int64_t> permutation;
    SmallVector<OpFoldResult> own = tensor::getMixedSizes(b, loc, tensor),
                              sizes;
    for (ExprRef atom : after) {
      permutation.push_back(llvm::find(before, atom) - before.begin());
      sizes.push_back(own[permutation.back()]);
    }
    Value empty = tensor::EmptyOp::create(
        b, loc, sizes,
        cast<RankedTensorType>(tensor.getType()).getElementType());
    tensor = linalg::TransposeOp::create(b, loc, tensor, empty, permutation)
                 ->getResult(0);
  }
  return fromAtoms(tensor, to);
}
