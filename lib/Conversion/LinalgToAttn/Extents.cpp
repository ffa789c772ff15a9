//===- Extents.cpp - which sizes of a function are the same -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Extents.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::raise;

Extents::Extents(func::FuncOp func) {
  func.walk([&](Operation *op) { visit(op); });
}

unsigned Extents::node(Value value, int64_t dim) {
  auto [entry, isNew] = nodes.try_emplace({value, dim}, parents.size());
  if (!isNew)
    return entry->second;
  unsigned result = parents.size();
  parents.push_back(result);
  constants.push_back(-1);
  places.push_back({});
  if (value)
    places.back().push_back({value, dim});
  // The new node may have moved the map: `result`, not the entry.
  if (auto type = value ? dyn_cast<RankedTensorType>(value.getType())
                        : RankedTensorType())
    if (!type.isDynamicDim(dim))
      unite(result, node(type.getDimSize(dim)));
  return result;
}

unsigned Extents::node(int64_t constant) {
  auto [entry, isNew] = constantNodes.try_emplace(constant, parents.size());
  if (isNew) {
    parents.push_back(entry->second);
    constants.push_back(constant);
    places.push_back({});
  }
  return entry->second;
}

unsigned Extents::node(OpFoldResult size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return node(*constant);
  auto value = cast<Value>(size);
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> number = dim.getConstantIndex())
      if (isa<RankedTensorType>(dim.getSource().getType()) && *number >= 0 &&
          *number < cast<RankedTensorType>(dim.getSource().getType()).getRank())
        return node(dim.getSource(), *number);
  return node(value, -1);
}

unsigned Extents::find(unsigned node) {
  while (parents[node] != node)
    node = parents[node] = parents[parents[node]];
  return node;
}

void Extents::unite(unsigned a, unsigned b) {
  a = find(a);
  b = find(b);
  // Two known sizes that differ: a program without meaning; keep them apart.
  if (a == b || (constants[a] >= 0 && constants[b] >= 0))
    return;
  if (constants[b] >= 0)
    std::swap(a, b);
  parents[b] = a;
  llvm::append_range(places[a], places[b]);
}

void Extents::uniteShapes(Value a, Value b) {
  auto type = dyn_cast<RankedTensorType>(a.getType());
  auto other = dyn_cast<RankedTensorType>(b.getType());
  if (!type || !other || type.getRank() != other.getRank())
    return;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    unite(node(a, dim), node(b, dim));
}

/// Groups with one part that is not 1 keep their size.
void Extents::visitReassociation(Value wide, Value narrow,
                                 ArrayRef<SmallVector<int64_t, 2>> groups) {
  auto type = cast<RankedTensorType>(wide.getType());
  for (auto [number, group] : llvm::enumerate(groups)) {
    int64_t kept = -1;
    bool isOne = true;
    for (int64_t dim : group) {
      if (type.getDimSize(dim) == 1)
        continue;
      isOne &= kept < 0;
      kept = dim;
    }
    if (isOne && kept >= 0)
      unite(node(wide, kept), node(narrow, number));
  }
}

void Extents::visit(Operation *op) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    if (!structured.hasPureTensorSemantics())
      return;
    SmallVector<std::optional<unsigned>> loops(structured.getNumLoops());
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      AffineMap map = structured.getMatchingIndexingMap(&operand);
      for (auto [dim, expr] : llvm::enumerate(map.getResults()))
        if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
          unsigned size = node(operand.get(), dim);
          std::optional<unsigned> &known = loops[loop.getPosition()];
          if (known)
            unite(*known, size);
          else
            known = size;
        }
    }
    for (auto [result, init] :
         llvm::zip_equal(op->getResults(), structured.getDpsInits()))
      uniteShapes(result, init);
    return;
  }
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    uniteShapes(softmax.getInput(), softmax.getOutput());
    if (op->getNumResults() == 1)
      uniteShapes(softmax.getOutput(), op->getResult(0));
    return;
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(empty.getMixedSizes()))
      unite(node(empty.getResult(), dim), node(size));
    return;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (slice.getSourceType().getRank() == slice.getType().getRank())
      for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
        unite(node(slice.getResult(), dim), node(size));
    return;
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    visitReassociation(expand.getResult(), expand.getSrc(),
                       expand.getReassociationIndices());
    for (auto [dim, size] : llvm::enumerate(expand.getMixedOutputShape()))
      unite(node(expand.getResult(), dim), node(size));
    return;
  }
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return visitReassociation(collapse.getSrc(), collapse.getResult(),
                              collapse.getReassociationIndices());
  if (auto generate = dyn_cast<tensor::GenerateOp>(op)) {
    unsigned next = 0;
    for (int64_t dim = 0; dim < generate.getType().getRank(); ++dim)
      if (generate.getType().isDynamicDim(dim))
        unite(node(generate.getResult(), dim),
              node(OpFoldResult(generate.getDynamicExtents()[next++])));
    return;
  }
  if (isa<tensor::CastOp>(op) ||
      (OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1))
    for (Value operand : op->getOperands())
      uniteShapes(operand, op->getResult(0));
}

Extent Extents::of(Value tensor, int64_t dim) {
  unsigned root = find(node(tensor, dim));
  return constants[root] >= 0 ? constants[root] : -1 - int64_t(root);
}

Extent Extents::of(OpFoldResult size) {
  unsigned root = find(node(size));
  return constants[root] >= 0 ? constants[root] : -1 - int64_t(root);
}

ArrayRef<Extents::Place> Extents::placesOf(Extent extent) {
  unsigned root = isKnown(extent) ? find(node(extent))
                                  : find(static_cast<unsigned>(-1 - extent));
  return places[root];
}
