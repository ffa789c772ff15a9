//===- PendingProtocol.cpp - the rule of pending values -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W1 of warp.kernel: waited for once, in the block that issued.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"
#include "attn/Dialect/Warp/IR/Turns.h"

using namespace mlir;
using namespace attn::warp;

WaitOp attn::warp::getOnlyWait(MmaAsyncOp issue) {
  WaitOp wait;
  for (OpOperand *use : getUsesThroughTurns(issue.getResult())) {
    auto other = dyn_cast<WaitOp>(use->getOwner());
    if (!other) {
      use->getOwner()->emitOpError("passes on a pending value, only a turn "
                                   "may");
      return {};
    }
    if (wait) {
      // Users come last first.
      InFlightDiagnostic diag =
          wait.emitOpError("waits for a value that was already waited for");
      diag.attachNote(other.getLoc()) << "first wait is here";
      return {};
    }
    wait = other;
  }
  if (!wait) {
    issue.emitOpError("gives a pending value that is never waited for");
    return {};
  }
  if (getHomeBlock(wait) == getHomeBlock(issue))
    return wait;
  InFlightDiagnostic diag =
      wait.emitOpError("stands in another block than what it waits for");
  diag.attachNote(issue.getLoc()) << "issued here";
  return {};
}

LogicalResult attn::warp::verifyPending(KernelOp kernel) {
  WalkResult walk = kernel.walk([](Operation *op) {
    if (auto issue = dyn_cast<MmaAsyncOp>(op))
      return getOnlyWait(issue) ? WalkResult::advance()
                                : WalkResult::interrupt();
    auto wait = dyn_cast<WaitOp>(op);
    if (!wait ||
        getSourceThroughTurns(wait.getPending()).getDefiningOp<MmaAsyncOp>())
      return WalkResult::advance();
    wait.emitOpError("waits for a value that no warp.mma_async gave");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}
