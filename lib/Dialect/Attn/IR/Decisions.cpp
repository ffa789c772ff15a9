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
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace attn;

bool attn::isDecision(Operation *op) {
  // Bits, as an integer.
  if (isa<arith::BitcastOp>(op))
    return isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
  return isa<arith::CmpFOp, arith::FPToSIOp, arith::FPToUIOp, math::CeilOp,
             math::FloorOp, math::RoundOp, math::RoundEvenOp, math::TruncOp>(
      op);
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
