//===- ArgumentViews.cpp - arguments in other dimensions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/ArgumentViews.h"

#include "attn/Dialect/Attn/Analysis/TracedView.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;

using Parts = std::vector<ViewPart>;

/// The size of a part that takes what others leave.
static constexpr int64_t isOpen = -1;

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
