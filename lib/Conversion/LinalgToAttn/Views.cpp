//===- Views.cpp - elements that are moved -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::raise;

ExprRef Reader::readIndex(OpFoldResult value) {
  if (auto attribute = dyn_cast<Attribute>(value))
    return e.index(cast<IntegerAttr>(attribute).getInt());
  return readScalar(cast<Value>(value));
}

/// The sizes of the dimensions of a group.
static SmallVector<Extent> sizesOf(Extents &extents, Value tensor,
                                   ArrayRef<int64_t> group) {
  SmallVector<Extent> sizes;
  for (int64_t dim : group)
    sizes.push_back(extents.of(tensor, dim));
  return sizes;
}

/// Groups of dimensions of both sides that number the same elements, in order:
/// their sizes have the same product.
ExprRef Reader::readReshape(tensor::ReshapeOp op, ArrayRef<ExprRef> indices) {
  Value source = op.getSource(), result = op.getResult();
  if (!isa<RankedTensorType>(source.getType()))
    return nullptr;
  int64_t from = 0, to = 0;
  int64_t fromRank = cast<RankedTensorType>(source.getType()).getRank();
  int64_t toRank = indices.size();
  SmallVector<ExprRef> positions;
  while (from < fromRank || to < toRank) {
    SmallVector<Extent> wide, narrow;
    SmallVector<ExprRef> parts;
    auto takeFrom = [&] { wide.push_back(extents.of(source, from++)); };
    auto takeTo = [&] {
      narrow.push_back(extents.of(result, to));
      parts.push_back(indices[to++]);
    };
    if (from < fromRank)
      takeFrom();
    if (to < toRank)
      takeTo();
    while (extents.ratio(wide, narrow) != Extents::Ratio::One) {
      bool isWider = extents.ratio(wide, narrow) == Extents::Ratio::Several;
      bool isNarrower = extents.ratio(narrow, wide) == Extents::Ratio::Several;
      if (isWider && to < toRank)
        takeTo();
      else if (isNarrower && from < fromRank)
        takeFrom();
      else
        return nullptr;
    }
    ExprRef position = e.join(parts, narrow);
    for (size_t part = 0; part < wide.size(); ++part) {
      ExprRef next = e.split(position, wide, part);
      positions.push_back(next ? next : e.index(0));
    }
  }
  return e.element(source, positions);
}

ExprRef Reader::readView(Operation *op, ArrayRef<ExprRef> indices) {
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return isa<RankedTensorType>(cast.getSource().getType())
               ? e.element(cast.getSource(), indices)
               : nullptr;
  if (isa<tensor::EmptyOp>(op))
    return e.undefined(getElementTypeOrSelf(op->getResult(0).getType()));
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return readScalar(splat.getInput());
  if (auto elements = dyn_cast<tensor::FromElementsOp>(op))
    return elements.getElements().size() == 1
               ? readScalar(elements.getElements()[0])
               : nullptr;
  if (auto generate = dyn_cast<tensor::GenerateOp>(op)) {
    llvm::DenseMap<Value, ExprRef> values;
    Block &body = generate.getBody().front();
    for (auto [argument, index] : llvm::zip_equal(body.getArguments(), indices))
      values[argument] = index;
    SmallVector<ExprRef> results = readBody(body, values, {});
    return results.empty() ? nullptr : results.front();
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    SmallVector<ExprRef> positions;
    for (ArrayRef<int64_t> group : expand.getReassociationIndices()) {
      SmallVector<ExprRef> parts;
      for (int64_t dim : group)
        parts.push_back(indices[dim]);
      positions.push_back(
          e.join(parts, sizesOf(extents, expand.getResult(), group)));
    }
    return e.element(expand.getSrc(), positions);
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    SmallVector<ExprRef> positions(collapse.getSrcType().getRank());
    for (auto [number, group] :
         llvm::enumerate(collapse.getReassociationIndices())) {
      SmallVector<Extent> sizes = sizesOf(extents, collapse.getSrc(), group);
      for (auto [part, dim] : llvm::enumerate(group))
        positions[dim] = e.split(indices[number], sizes, part);
    }
    for (ExprRef &position : positions)
      if (!position) // a scalar: every dimension is 1
        position = e.index(0);
    return e.element(collapse.getSrc(), positions);
  }
  if (auto reshape = dyn_cast<tensor::ReshapeOp>(op))
    return readReshape(reshape, indices);
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    SmallVector<ExprRef> positions;
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    unsigned next = 0;
    for (auto [dim, offset] : llvm::enumerate(slice.getMixedOffsets())) {
      ExprRef position = readIndex(offset);
      ExprRef stride = readIndex(slice.getMixedStrides()[dim]);
      if (!position || !stride)
        return nullptr;
      if (!dropped.test(dim)) {
        ExprRef moved =
            e.make<arith::MulIOp>(e.indexType, {indices[next++], stride});
        position = e.make<arith::AddIOp>(e.indexType, {moved, position});
      }
      positions.push_back(position);
    }
    return e.element(slice.getSource(), positions);
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return readConcatenation(concat, indices);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return readPadding(pad, indices);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return readInsertion(insert, indices);
  return nullptr;
}
