//===- PullbackSlope.cpp - pullbacks that are a factor --------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PullbackSlope.h"

#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

// The first arguments of a pullback: dy, x.
static constexpr unsigned adjointArgument = 0, scoreArgument = 1;

namespace {
/// What the values of a pullback are in dy.
class AdjointDependence {
public:
  explicit AdjointDependence(Block &pullback) {
    multiples.insert(pullback.getArgument(adjointArgument));
    ofScore.insert(pullback.getArgument(scoreArgument));
    for (Operation &op : pullback.without_terminator())
      add(op);
  }

  bool isMultiple(Value value) const { return multiples.contains(value); }
  bool isOfScore(Value value) const { return ofScore.contains(value); }

private:
  void add(Operation &op);
  bool keepsMultiples(Operation &op) const;
  bool isMultipleOrZero(Value value) const {
    return isMultiple(value) || matchPattern(value, m_AnyZeroFloat());
  }

  // Of dy by a factor without it; neither that nor free of dy; of x.
  llvm::DenseSet<Value> multiples, others, ofScore;
};
} // namespace

/// Whether an operation, some of whose operands are multiples of dy, gives one.
bool AdjointDependence::keepsMultiples(Operation &op) const {
  auto operand = [&](unsigned number) { return op.getOperand(number); };
  if (isa<arith::NegFOp>(op))
    return true;
  if (isa<arith::MulFOp>(op))
    return !isMultiple(operand(0)) || !isMultiple(operand(1));
  if (isa<arith::DivFOp>(op))
    return !isMultiple(operand(1));
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return isMultipleOrZero(operand(0)) && isMultipleOrZero(operand(1));
  if (isa<arith::SelectOp>(op))
    return isMultipleOrZero(operand(1)) && isMultipleOrZero(operand(2));
  return false;
}

void AdjointDependence::add(Operation &op) {
  auto anyIn = [&](const llvm::DenseSet<Value> &values) {
    return llvm::any_of(op.getOperands(), [&](Value operand) {
      return values.contains(operand);
    });
  };
  auto insert = [&](llvm::DenseSet<Value> &values) {
    values.insert(op.result_begin(), op.result_end());
  };
  if (anyIn(ofScore))
    insert(ofScore);
  if (anyIn(others) || (anyIn(multiples) && !keepsMultiples(op)))
    insert(others);
  else if (anyIn(multiples))
    insert(multiples);
}

bool attn::multipliesBySlope(AttentionBackwardOp op) {
  if (!op.hasPullback() || isSoftcap(op.getScore()))
    return false;
  Block &pullback = op.getPullback().front();
  AdjointDependence dependence(pullback);
  Value result = pullback.getTerminator()->getOperand(0);
  return dependence.isMultiple(result) && dependence.isOfScore(result);
}
