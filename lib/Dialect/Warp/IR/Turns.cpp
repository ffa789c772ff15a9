//===- Turns.cpp - values that a turn passes on ---------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Turns.h"

using namespace mlir;
using namespace attn::warp;

Block *attn::warp::getHomeBlock(Operation *op) {
  Block *block = op->getBlock();
  while (auto turn = dyn_cast_or_null<TurnOp>(block->getParentOp()))
    block = turn->getBlock();
  return block;
}

Operation *attn::warp::getAncestorIn(Block *home, Operation *op) {
  return home->findAncestorOpInBlock(*op);
}

bool attn::warp::runsBefore(Block *home, Operation *a, Operation *b) {
  Operation *first = getAncestorIn(home, a), *second = getAncestorIn(home, b);
  if (!first || !second)
    return false;
  if (first != second)
    return first->isBeforeInBlock(second);
  auto turn = dyn_cast<TurnOp>(first);
  return turn && a != b && runsBefore(turn.getBodyBlock(), a, b);
}

SmallVector<OpOperand *> attn::warp::getUsesThroughTurns(Value value) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : value.getUses()) {
    auto turn = isa<YieldOp>(use.getOwner())
                    ? dyn_cast<TurnOp>(use.getOwner()->getParentOp())
                    : TurnOp();
    if (!turn)
      uses.push_back(&use);
    else
      llvm::append_range(
          uses, getUsesThroughTurns(turn.getResult(use.getOperandNumber())));
  }
  return uses;
}

Value attn::warp::getSourceThroughTurns(Value value) {
  while (auto turn = value.getDefiningOp<TurnOp>())
    value =
        turn.getYield().getValues()[cast<OpResult>(value).getResultNumber()];
  return value;
}

void attn::warp::moveToTurn(RewriterBase &rewriter, ArrayRef<Operation *> ops) {
  SmallVector<Value> yielded;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !llvm::is_contained(ops, user);
          }))
        yielded.push_back(result);
  rewriter.setInsertionPoint(ops.front());
  Location loc = ops.front()->getLoc();
  auto turn = TurnOp::create(rewriter, loc, TypeRange(ValueRange(yielded)));
  Block *body = rewriter.createBlock(&turn.getBody());
  for (Operation *op : ops)
    rewriter.moveOpBefore(op, body, body->end());
  rewriter.setInsertionPointToEnd(body);
  YieldOp::create(rewriter, loc, yielded);
  for (auto [value, result] : llvm::zip_equal(yielded, turn.getResults()))
    rewriter.replaceUsesWithIf(value, result, [&](OpOperand &use) {
      return !turn->isAncestor(use.getOwner());
    });
}
