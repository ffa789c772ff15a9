//===- Pullback.cpp - the pullback of a score region -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Pullback.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Derivatives.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace attn;

namespace {
class Pullback {
public:
  Pullback(RewriterBase &b, ScoredOp op, Region &to)
      : b(b), op(op),
        backward(dyn_cast<AttentionBackwardOp>(op.getOperation())), to(to) {}
  LogicalResult build();

private:
  void cloneScore();
  void findActive();
  LogicalResult goBack(Operation *op);
  void add(Value value, Value adjoint);
  bool hasGradient(Value capture);

  RewriterBase &b;
  ScoredOp op;
  AttentionBackwardOp backward; // or null: then captures have no gradients
  Region &to;
  Block *block = nullptr;
  SmallVector<Operation *> ops;          // of the score, in their order
  Value yielded;                         // by the score
  llvm::DenseSet<Value> active;          // floats that have an adjoint
  llvm::DenseMap<Value, Value> adjoints; // none: 0
};
} // namespace

/// Whether this block argument is a capture whose gradient is wanted.
bool Pullback::hasGradient(Value capture) {
  unsigned number = cast<BlockArgument>(capture).getArgNumber();
  unsigned first = AttentionBackwardOp::kPullbackArguments;
  return backward && number >= first &&
         backward.getGradientNumber(number - first);
}

/// The code of the score, over (dy, x, b, h, i, j, captures).
void Pullback::cloneScore() {
  Block &score = op.getScore().front();
  SmallVector<Type> types = {b.getF32Type()};
  llvm::append_range(types, score.getArgumentTypes());
  SmallVector<Location> locs = {op->getLoc()};
  for (BlockArgument argument : score.getArguments())
    locs.push_back(argument.getLoc());
  block = b.createBlock(&to, {}, types, locs);
  IRMapping mapping;
  mapping.map(score.getArguments(), block->getArguments().drop_front());
  for (Operation &nested : score.without_terminator())
    ops.push_back(b.clone(nested, mapping));
  yielded = mapping.lookup(cast<YieldOp>(score.getTerminator()).getValue());
}

void Pullback::findActive() {
  active.insert(block->getArgument(1));
  for (BlockArgument argument : block->getArguments())
    if (isa<FloatType>(argument.getType()) && hasGradient(argument))
      active.insert(argument);
  for (Operation *op : ops) {
    auto load = dyn_cast<CaptureLoadOp>(op);
    bool isActive = load ? hasGradient(load.getBuffer())
                         : llvm::any_of(op->getOperands(), [&](Value operand) {
                             return active.contains(operand);
                           });
    for (Value result : op->getResults())
      if (isActive && isa<FloatType>(result.getType()))
        active.insert(result);
  }
}

/// One more use of a value.
void Pullback::add(Value value, Value adjoint) {
  if (!adjoint || !active.contains(value))
    return;
  Value &sum = adjoints[value];
  sum =
      sum ? arith::AddFOp::create(b, adjoint.getLoc(), sum, adjoint).getResult()
          : adjoint;
}

/// From the adjoints of the results to those of the operands.
LogicalResult Pullback::goBack(Operation *op) {
  auto results = llvm::map_to_vector(
      op->getResults(), [&](Value result) { return adjoints.lookup(result); });
  if (llvm::all_of(results, [](Value adjoint) { return !adjoint; }))
    return success();
  if (auto load = dyn_cast<CaptureLoadOp>(op)) {
    CaptureAddOp::create(b, op->getLoc(), results.front(), load.getBuffer(),
                         load.getIndices());
    return success();
  }
  FailureOr<SmallVector<Value>> operands = buildAdjoints(b, op, results);
  if (failed(operands))
    return op->emitOpError("in a score region has no known derivative: wanted "
                           "operations that attn-differentiate lists");
  for (auto [operand, adjoint] : llvm::zip_equal(op->getOperands(), *operands))
    add(operand, adjoint);
  return success();
}

LogicalResult Pullback::build() {
  cloneScore();
  findActive();
  add(yielded, block->getArgument(0));
  for (Operation *op : llvm::reverse(ops))
    if (failed(goBack(op)))
      return failure();
  for (BlockArgument argument : block->getArguments().drop_front(
           AttentionBackwardOp::kPullbackArguments))
    if (Value adjoint = adjoints.lookup(argument))
      CaptureAddOp::create(b, op->getLoc(), adjoint, argument, ValueRange());
  Value dx = adjoints.lookup(block->getArgument(1));
  if (!dx)
    dx = arith::ConstantOp::create(b, op->getLoc(), b.getF32FloatAttr(0));
  YieldOp::create(b, op->getLoc(), dx);

  // Much of the score is not needed, nor are adjoints of what has none.
  SmallVector<Operation *> all =
      llvm::to_vector(llvm::make_pointer_range(block->without_terminator()));
  for (Operation *dead : llvm::reverse(all))
    if (isOpTriviallyDead(dead))
      b.eraseOp(dead);
  if (dx == block->getArgument(0) && llvm::hasSingleElement(*block))
    b.eraseBlock(block);
  return success();
}

LogicalResult attn::buildPullback(RewriterBase &rewriter,
                                  AttentionBackwardOp op) {
  if (!op.hasScore())
    return success();
  OpBuilder::InsertionGuard guard(rewriter);
  return Pullback(rewriter, op, op.getPullback()).build();
}

LogicalResult attn::buildPushforward(RewriterBase &rewriter,
                                     AttentionJvpOp op) {
  if (!op.hasScore())
    return success();
  OpBuilder::InsertionGuard guard(rewriter);
  return Pullback(rewriter, op, op.getPushforward()).build();
}
