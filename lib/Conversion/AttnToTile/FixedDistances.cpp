//===- FixedDistances.cpp - reads along a diagonal ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FixedDistances.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;

static Value stripBroadcast(Value value) {
  auto stretched = value.getDefiningOp<vector::BroadcastOp>();
  return stretched ? stretched.getSource() : value;
}

/// Whether `op` subtracts positions of one kind from those of the other.
static bool isDistance(Operation *op, const BlockPositions &now) {
  if (!isa<arith::SubIOp>(op))
    return false;
  Value lhs = stripBroadcast(op->getOperand(0)),
        rhs = stripBroadcast(op->getOperand(1));
  return (lhs == now.queries && rhs == now.keys) ||
         (lhs == now.keys && rhs == now.queries);
}

/// Captures, which nobody writes.
static bool readsArgument(Operation *op) {
  auto gather = dyn_cast<tile::GatherOp>(op);
  return gather && isa<BlockArgument>(gather.getView());
}

/// The operations in `loop` whose results are the same in each turn, in order.
static llvm::SetVector<Operation *> findFixed(scf::ForOp loop,
                                              const BlockPositions &now) {
  llvm::SetVector<Operation *> fixed;
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isFixed = llvm::all_of(op.getOperands(), [&](Value operand) {
      return loop.isDefinedOutsideOfLoop(operand) ||
             fixed.contains(operand.getDefiningOp());
    });
    bool isMovable =
        (isPure(&op) && op.getNumRegions() == 0) || readsArgument(&op);
    if (isDistance(&op, now) || (isFixed && isMovable))
      fixed.insert(&op);
  }
  return fixed;
}

/// Moves `op`, and what it needs of `fixed`, before the loop.
static void moveBefore(RewriterBase &rewriter, scf::ForOp loop, Operation *op,
                       const llvm::SetVector<Operation *> &fixed,
                       const BlockPositions &now, const BlockPositions &first) {
  if (op->getBlock() != loop.getBody())
    return;
  if (isDistance(op, now)) {
    rewriter.setInsertionPoint(loop);
    rewriter.modifyOpInPlace(op, [&] {
      for (OpOperand &operand : op->getOpOperands()) {
        bool isQuery = stripBroadcast(operand.get()) == now.queries;
        operand.set(rewriter.createOrFold<vector::BroadcastOp>(
            op->getLoc(), operand.get().getType(),
            isQuery ? first.queries : first.keys));
      }
    });
  }
  for (Value operand : op->getOperands())
    if (Operation *needed = operand.getDefiningOp())
      if (fixed.contains(needed))
        moveBefore(rewriter, loop, needed, fixed, now, first);
  rewriter.moveOpBefore(op, loop);
}

int64_t attn::readFixedDistances(RewriterBase &rewriter, scf::ForOp loop,
                                 const BlockPositions &now,
                                 const BlockPositions &first,
                                 int64_t maxGathers) {
  OpBuilder::InsertionGuard guard(rewriter);
  llvm::SetVector<Operation *> fixed = findFixed(loop, now);
  // One that another needs is not kept.
  auto isKept = [&](Operation *op) {
    return isa<tile::GatherOp>(op) &&
           llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return !fixed.contains(user); });
  };
  SmallVector<Operation *> gathers =
      llvm::filter_to_vector(fixed.getArrayRef(), isKept);
  if (gathers.size() > size_t(maxGathers))
    gathers.resize(maxGathers);
  for (Operation *gather : gathers)
    moveBefore(rewriter, loop, gather, fixed, now, first);
  return gathers.size();
}
