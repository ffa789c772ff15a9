//===- TracedView.cpp - tensors that others are views of ------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Analysis/TracedView.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

using Parts = std::vector<ViewPart>;

/// The size of a part that takes what others leave.
static constexpr int64_t isOpen = -1;
/// Takes `size` elements from the inner end of `parts`; fails where no part
/// ends there.
static FailureOr<Parts> takeInner(Parts &parts, int64_t size) {
  Parts taken;
  while (size > 1) {
    if (parts.empty())
      return failure();
    ViewPart &last = parts.back();
    if (last.size != isOpen && last.size > 0 && size % last.size == 0) {
      size /= last.size;
      taken.insert(taken.begin(), last);
      parts.pop_back();
      continue;
    }
    if (last.size != isOpen && (last.size <= 0 || last.size % size != 0))
      return failure();
    taken.insert(taken.begin(), {last.dim, size, last.step});
    last.step *= size;
    if (last.size != isOpen)
      last.size /= size;
    size = 1;
  }
  return taken;
}

/// The parts of one dimension, handed out to dimensions of `sizes`.
static FailureOr<ViewParts> split(Parts parts, ArrayRef<int64_t> sizes) {
  ViewParts result(sizes.size());
  const auto *outermost =
      llvm::find_if(sizes, [](int64_t s) { return s != 1; });
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1)
      continue;
    if (&sizes[i] == outermost) {
      result[i] = std::move(parts); // all that is left
      return result;
    }
    if (ShapedType::isDynamic(sizes[i]))
      return failure();
    FailureOr<Parts> taken = takeInner(parts, sizes[i]);
    if (failed(taken))
      return failure();
    result[i] = std::move(*taken);
  }
  return result;
}

static FailureOr<ViewParts> traceExpansion(tensor::ExpandShapeOp op,
                                           const ViewParts &source) {
  ViewParts result;
  ArrayRef<int64_t> sizes = op.getResultType().getShape();
  for (auto [group, parts] :
       llvm::zip_equal(op.getReassociationIndices(), source)) {
    FailureOr<ViewParts> dims =
        split(parts, sizes.slice(group.front(), group.size()));
    if (failed(dims))
      return failure();
    llvm::append_range(result, *dims);
  }
  return result;
}

static ViewParts traceCollapse(tensor::CollapseShapeOp op,
                               const ViewParts &source) {
  ViewParts result;
  for (const ReassociationIndices &group : op.getReassociationIndices()) {
    result.emplace_back();
    for (int64_t dim : group)
      llvm::append_range(result.back(), source[dim]);
  }
  return result;
}

static TracedView startAt(Value value) {
  TracedView view;
  view.source = value;
  for (auto [dim, size] :
       llvm::enumerate(cast<RankedTensorType>(value.getType()).getShape())) {
    view.parts.emplace_back();
    if (size != 1)
      view.parts.back().push_back({static_cast<int64_t>(dim),
                                   ShapedType::isDynamic(size) ? isOpen : size,
                                   1});
  }
  return view;
}

bool attn::isView(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
             linalg::TransposeOp>(op);
}

bool TracedView::isWhole() const { return parts == startAt(source).parts; }

FailureOr<TracedView> attn::traceView(Value value, Value source) {
  if (!isa<RankedTensorType>(value.getType()))
    return failure();
  // The operations between, the last first.
  SmallVector<Operation *> ops;
  while (Operation *op = value.getDefiningOp()) {
    if (value == source || isa<ScoredOp>(op))
      break;
    if (!isView(op))
      return failure();
    ops.push_back(op);
    value = op->getOperand(0);
    if (!isa<RankedTensorType>(value.getType()))
      return failure();
  }
  if (source && value != source)
    return failure();
  TracedView view = startAt(value);
  for (Operation *op : llvm::reverse(ops)) {
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
      FailureOr<ViewParts> parts = traceExpansion(expand, view.parts);
      if (failed(parts))
        return failure();
      view.parts = std::move(*parts);
    } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
      view.parts = traceCollapse(collapse, view.parts);
    } else if (auto transpose = dyn_cast<linalg::TransposeOp>(op)) {
      ViewParts parts;
      for (int64_t dim : transpose.getPermutation())
        parts.push_back(view.parts[dim]);
      view.parts = std::move(parts);
    }
  }
  return view;
}

FailureOr<ViewParts> attn::invertView(const TracedView &view,
                                      ArrayRef<int64_t> sizes,
                                      int64_t sourceRank) {
  // With the step in the source, to order the parts of each dimension by.
  struct Placed {
    ViewPart part;
    int64_t step;
  };
  std::vector<std::vector<Placed>> placed(sourceRank);
  for (auto [dim, parts] : llvm::enumerate(view.parts)) {
    int64_t step = 1;
    for (const ViewPart &part : llvm::reverse(parts)) {
      if (step == isOpen)
        return failure();
      placed[part.dim].push_back(
          {{static_cast<int64_t>(dim), part.size, step}, part.step});
      step = part.size == isOpen ? isOpen : step * part.size;
    }
  }
  ViewParts result;
  for (std::vector<Placed> &parts : placed) {
    llvm::sort(parts, [](const Placed &a, const Placed &b) {
      return a.step > b.step;
    });
    result.emplace_back();
    for (const Placed &entry : parts)
      result.back().push_back(entry.part);
  }
  return result;
}
