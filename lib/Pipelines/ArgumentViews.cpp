//===- ArgumentViews.cpp - arguments in other dimensions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/ArgumentViews.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;

using Parts = std::vector<ViewPart>;

//===----------------------------------------------------------------------===//
// What a value shows
//===----------------------------------------------------------------------===//

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

/// Whether an operation gives the elements of its first operand, all of them.
static bool isView(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp,
             linalg::TransposeOp>(op);
}

bool TracedView::isWhole() const { return parts == startAt(source).parts; }

FailureOr<TracedView> attn::traceView(Value value) {
  if (!isa<RankedTensorType>(value.getType()))
    return failure();
  // The operations between, the last first.
  SmallVector<Operation *> ops;
  while (Operation *op = value.getDefiningOp()) {
    if (isa<ScoredOp>(op))
      break;
    if (!isView(op))
      return failure();
    ops.push_back(op);
    value = op->getOperand(0);
    if (!isa<RankedTensorType>(value.getType()))
      return failure();
  }
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

//===----------------------------------------------------------------------===//
// The function without views
//===----------------------------------------------------------------------===//

static const ViewPart *openPart(const Parts &parts) {
  for (const ViewPart &part : parts)
    if (part.size == isOpen)
      return &part;
  return nullptr;
}

static int64_t countOpen(const Parts &parts) {
  return llvm::count_if(
      parts, [](const ViewPart &part) { return part.size == isOpen; });
}

static int64_t knownSize(const Parts &parts) {
  int64_t size = 1;
  for (const ViewPart &part : parts)
    size *= part.size == isOpen ? 1 : part.size;
  return size;
}

/// The size of a dimension that counts through `parts`, from those of `seen`,
/// which shows the same source in `dims`.
static FailureOr<Value> sizeOf(OpBuilder &builder, Location loc,
                               const Parts &parts, Value seen,
                               const ViewParts &dims) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  const ViewPart *open = openPart(parts);
  if (!open)
    return constant(knownSize(parts));
  if (countOpen(parts) > 1)
    return failure();
  for (auto [number, dim] : llvm::enumerate(dims)) {
    const ViewPart *other = openPart(dim);
    if (!other || other->dim != open->dim || countOpen(dim) > 1)
      continue;
    // What is open stands outermost: its size times its step is the source's.
    int64_t factor = knownSize(parts) * other->step;
    int64_t divisor = knownSize(dim) * open->step;
    Value size = tensor::DimOp::create(builder, loc, seen, number);
    if (factor != divisor) {
      size = arith::MulIOp::create(builder, loc, size, constant(factor));
      size = arith::DivUIOp::create(builder, loc, size, constant(divisor));
    }
    return size;
  }
  return failure();
}

namespace {
/// One function, made to take and to return what its attention does.
class Absorption {
public:
  Absorption(func::FuncOp function, ScoredOp attention)
      : function(function), attention(attention) {}

  LogicalResult run();

private:
  LogicalResult absorbOperand(Value operand);
  LogicalResult absorbResults();
  LogicalResult replaceSizes(Value value, Value seen, const ViewParts &dims);
  void eraseDead();

  func::FuncOp function;
  ScoredOp attention;
};
} // namespace

/// Sizes of `value` and of what is made of it, from those of `seen`.
LogicalResult Absorption::replaceSizes(Value value, Value seen,
                                       const ViewParts &dims) {
  SmallVector<tensor::DimOp> found;
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Value view = worklist.pop_back_val();
    for (Operation *user : view.getUsers()) {
      if (isView(user) && user->getOperand(0) == view)
        worklist.push_back(user->getResult(0));
      else if (auto dim = dyn_cast<tensor::DimOp>(user))
        found.push_back(dim);
    }
  }
  for (tensor::DimOp dim : found) {
    std::optional<int64_t> index = dim.getConstantIndex();
    FailureOr<TracedView> view = traceView(dim.getSource());
    bool isKnown = index && succeeded(view) && *index >= 0 &&
                   *index < static_cast<int64_t>(view->parts.size());
    if (!isKnown)
      return dim.emitOpError("of a reshaped argument is not understood");
    OpBuilder builder(dim);
    FailureOr<Value> size =
        sizeOf(builder, dim.getLoc(), view->parts[*index], seen, dims);
    if (failed(size))
      return dim.emitOpError("of a reshaped argument is not understood");
    dim.replaceAllUsesWith(*size);
    dim.erase();
  }
  return success();
}

LogicalResult Absorption::absorbOperand(Value operand) {
  FailureOr<TracedView> view = traceView(operand);
  if (failed(view))
    return attention->emitError("query, key and value must be arguments of the "
                                "function, or reshapes or transposes of them");
  auto argument = dyn_cast<BlockArgument>(view->source);
  if (!argument || operand == argument)
    return success();
  Block &entry = function.getBody().front();
  BlockArgument seen = entry.insertArgument(
      argument.getArgNumber() + 1, operand.getType(), argument.getLoc());
  if (failed(replaceSizes(argument, seen, view->parts)))
    return failure();
  // Another operand may be the same view, made by other operations.
  for (OpOperand &use : attention->getOpOperands()) {
    FailureOr<TracedView> other = traceView(use.get());
    if (succeeded(other) && other->source == argument) {
      if (other->parts != view->parts || use.get().getType() != seen.getType())
        return attention->emitError("an argument is seen in two ways");
      use.set(seen);
    }
  }
  eraseDead();
  if (!argument.use_empty())
    return (*argument.user_begin())
        ->emitOpError("reads an argument that is also query, key or value in "
                      "another shape");
  entry.eraseArgument(argument.getArgNumber());
  return success();
}

LogicalResult Absorption::absorbResults() {
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    FailureOr<TracedView> view = traceView(operand.get());
    if (succeeded(view) && view->source.getDefiningOp() == attention)
      operand.set(view->source);
  }
  eraseDead();
  return success();
}

void Absorption::eraseDead() {
  Block &entry = function.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

LogicalResult Absorption::run() {
  // Those before the sink have the dimensions of query, or a part of them.
  Value sink = attention.getSink();
  unsigned others = attention.getDropoutKey().size() +
                    attention.getCaptures().size() + (sink ? 1 : 0);
  for (unsigned i = 0, e = attention->getNumOperands() - others; i < e; ++i)
    if (failed(absorbOperand(attention->getOperand(i))))
      return failure();
  // Where it is no view of an argument, the next room says so.
  if (sink && succeeded(traceView(sink)) && failed(absorbOperand(sink)))
    return failure();
  if (failed(absorbResults()))
    return failure();
  Block &entry = function.getBody().front();
  function.setType(FunctionType::get(function.getContext(),
                                     entry.getArgumentTypes(),
                                     entry.getTerminator()->getOperandTypes()));
  return success();
}

LogicalResult attn::absorbArgumentViews(func::FuncOp function) {
  ScoredOp attention;
  function.walk([&](ScoredOp op) { attention = op; });
  return Absorption(function, attention).run();
}
