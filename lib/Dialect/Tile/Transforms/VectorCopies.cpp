//===- VectorCopies.cpp - what a score function says, beside it -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorCopies.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static bool isCopy(Value scalar, Value vector, ScoresOp scores);

static bool isCopy(Operation *scalar, Operation *vector, ScoresOp scores) {
  return scalar->getName() == vector->getName() &&
         scalar->getNumOperands() == vector->getNumOperands() &&
         scalar->getNumResults() == 1 && vector->getNumResults() == 1 &&
         scalar->getAttrDictionary() == vector->getAttrDictionary() &&
         llvm::all_of(
             llvm::zip_equal(scalar->getOperands(), vector->getOperands()),
             [&](auto pair) {
               auto [one, all] = pair;
               return isCopy(one, all, scores);
             });
}

/// Whether `vector` is for all pairs what `scalar` is for one.
static bool isCopy(Value scalar, Value vector, ScoresOp scores) {
  while (auto broadcast = vector.getDefiningOp<vector::BroadcastOp>())
    vector = broadcast.getSource();
  Region &region = scores.getScore();
  if (!region.isAncestor(scalar.getParentRegion()))
    return scalar == vector;
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    // The operands of the operation, in order.
    std::array<Value, 5> operands = {scores.getScores(), scores.getBatch(),
                                     scores.getHead(), scores.getQueries(),
                                     scores.getKeys()};
    return operands[argument.getArgNumber()] == vector;
  }
  Attribute one, all;
  if (matchPattern(scalar, m_Constant(&one))) {
    if (!matchPattern(vector, m_Constant(&all)))
      return false;
    auto splat = dyn_cast<SplatElementsAttr>(all);
    return one == (splat ? splat.getSplatValue<Attribute>() : all);
  }
  Operation *op = vector.getDefiningOp();
  return op && isCopy(scalar.getDefiningOp(), op, scores);
}

SmallVector<Operation *, 2> tile::findVectorCopies(Operation *op,
                                                   ScoresOp scores) {
  SmallVector<Operation *, 2> copies;
  for (Operation &other : *scores->getBlock())
    if (isCopy(op, &other, scores))
      copies.push_back(&other);
  return copies;
}
