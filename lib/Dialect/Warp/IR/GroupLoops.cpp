//===- GroupLoops.cpp - loops that differ from group to group ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/GroupLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn::warp;

bool attn::warp::dependsOnGroup(Value value) {
  SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      if (isa<RoleOp>(argument.getOwner()->getParentOp()))
        return true;
      continue;
    }
    Operation *op = values[i].getDefiningOp();
    if (isa<GroupBoundsOp>(op))
      return true;
    if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
      values.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Whether items are taken and given back, and nothing else done.
static bool onlyPassesOver(Block *body) {
  return !body->getOps<AwaitOp>().empty() &&
         llvm::all_of(body->without_terminator(), [](Operation &op) {
           if (auto turn = dyn_cast<TurnOp>(op))
             return turn.getBodyBlock()->without_terminator().empty();
           return isa<AwaitOp, ReleaseOp>(op) ||
                  (op.getNumRegions() == 0 && isPure(&op));
         });
}

std::optional<PassedEnd> attn::warp::getPassedEnd(scf::ForOp loop) {
  if (!onlyPassesOver(loop.getBody()))
    return std::nullopt;
  bool isFromOwn = dependsOnGroup(loop.getLowerBound());
  if (isFromOwn == dependsOnGroup(loop.getUpperBound()))
    return std::nullopt;
  return isFromOwn ? PassedEnd::Upper : PassedEnd::Lower;
}
