//===- ValueAxes.cpp - where values of scores change ----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ValueAxes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

ValueAxes::ValueAxes(ScoresOp op, Region &region, const BlockLoops *loops)
    : loops(loops), all(axesOf(op.getScores())) {
  for (Operation &inner : region.front().without_terminator()) {
    unsigned axes = 0;
    for (Value operand : inner.getOperands())
      axes |= of(operand);
    // What may trap stays where it is.
    if (loops && !isSpeculatable(&inner) && !isa<GatherOp, SearchOp>(inner))
      axes |= Columns;
    known[inner.getResult(0)] = axes;
  }
}

unsigned ValueAxes::axesOf(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return !type ? 0
               : (type.getDimSize(0) != 1 ? Rows : 0u) |
                     (type.getDimSize(1) != 1 ? Columns : 0u);
}

unsigned ValueAxes::of(Value value) const {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  value = ScoresOp::resolve(value);
  bool isLate = loops && !loops->isKnownBefore(value);
  return axesOf(value) | (isLate ? Columns : 0u);
}
