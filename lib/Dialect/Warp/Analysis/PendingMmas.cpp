//===- PendingMmas.cpp - which products are in flight ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/PendingMmas.h"

#include "attn/Dialect/Warp/IR/Turns.h"

using namespace mlir;
using namespace attn::warp;

MmaAsyncOp attn::warp::getIssue(WaitOp wait) {
  return getSourceThroughTurns(wait.getPending()).getDefiningOp<MmaAsyncOp>();
}

/// The products issued in a block and its turns, in order.
static void collectIssues(Block *block, SmallVectorImpl<MmaAsyncOp> &issues) {
  for (Operation &op : *block) {
    if (auto issue = dyn_cast<MmaAsyncOp>(op))
      issues.push_back(issue);
    else if (auto turn = dyn_cast<TurnOp>(op))
      collectIssues(turn.getBodyBlock(), issues);
  }
}

static bool isWaitedBefore(MmaAsyncOp issue, Block *home, WaitOp wait) {
  return llvm::any_of(getUsesThroughTurns(issue.getResult()),
                      [&](OpOperand *use) {
                        return isa<WaitOp>(use->getOwner()) &&
                               runsBefore(home, use->getOwner(), wait);
                      });
}

SmallVector<MmaAsyncOp> attn::warp::getInFlight(WaitOp wait) {
  Block *home = getHomeBlock(wait);
  SmallVector<MmaAsyncOp> issues;
  collectIssues(home, issues);
  llvm::erase_if(issues, [&](MmaAsyncOp issue) {
    return !runsBefore(home, issue, wait) || isWaitedBefore(issue, home, wait);
  });
  return issues;
}

int64_t attn::warp::countYoungerMmas(WaitOp wait) {
  SmallVector<MmaAsyncOp> inFlight = getInFlight(wait);
  auto own = llvm::find(inFlight, getIssue(wait));
  return std::distance(own, inFlight.end()) - 1;
}
