//===- Decisions.cpp - integers and truth values of floats -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Decisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace attn;

/// A constant, or one that all elements are.
static bool isInfinity(Value value) {
  if (Operation *op = value.getDefiningOp())
    if (op->getNumOperands() == 1 &&
        isa<FloatType>(op->getOperand(0).getType()) &&
        !isa<FloatType>(value.getType()))
      value = op->getOperand(0);
  APFloat constant(0.0f);
  return matchPattern(value, m_ConstantFloat(&constant)) &&
         constant.isInfinity();
}

/// Hidden scores are found so.
static bool testsForInfinity(arith::CmpFOp op) {
  switch (op.getPredicate()) {
  case arith::CmpFPredicate::OEQ:
  case arith::CmpFPredicate::UEQ:
  case arith::CmpFPredicate::ONE:
  case arith::CmpFPredicate::UNE:
    return isInfinity(op.getLhs()) || isInfinity(op.getRhs());
  default:
    return false;
  }
}

bool attn::isDecision(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return !testsForInfinity(compare);
  // Bits, as an integer.
  if (isa<arith::BitcastOp>(op))
    return isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
  return isa<arith::FPToSIOp, arith::FPToUIOp, math::CeilOp, math::FloorOp,
             math::RoundOp, math::RoundEvenOp, math::TruncOp>(op);
}

DecisionPaths DecisionPaths::find(Region &region) {
  return find(region, attn::isDecision, [](Operation *) { return false; });
}

DecisionPaths DecisionPaths::find(Region &region, Predicate isDecision,
                                  Predicate isElementwise) {
  DecisionPaths paths;
  SmallVector<Operation *> worklist;
  auto addOperands = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        worklist.push_back(producer);
  };
  region.walk([&](Operation *op) {
    if (isDecision(op))
      addOperands(op);
  });
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    bool leadsOn = OpTrait::hasElementwiseMappableTraits(op) ||
                   isa<vector::BroadcastOp, vector::ShapeCastOp>(op) ||
                   isElementwise(op);
    if (leadsOn && paths.operations.insert(op).second)
      addOperands(op);
  }
  return paths;
}
