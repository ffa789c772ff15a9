//===- VoteProtocol.cpp - the rule of what warps do apart -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W3 of warp.kernel: scalars are the same in all warps, but for those that come
// from warp.any. Where such a scalar decides whether operations run, no
// operation may need the other warps.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::warp;

/// What all warps (or the 4 of a group) do together, or count on.
static bool isTogether(Operation *op) {
  if (auto store = dyn_cast<StoreOp>(op))
    return bool(store.getStaging());
  return isa<CopyOp, CopyAsyncOp, AwaitOp, ReleaseOp, MmaOp, MmaAsyncOp, WaitOp,
             TurnOp>(op);
}

static LogicalResult verifyBranch(Operation *branch, AnyOp vote) {
  Operation *found = nullptr;
  branch->walk([&](Operation *op) {
    if (op != branch && isTogether(op))
      found = op;
  });
  if (!found)
    return success();
  InFlightDiagnostic diag = found->emitOpError(
      "stands where some warps may not come, as they vote for themselves");
  diag.attachNote(vote.getLoc()) << "the vote";
  return failure();
}

static LogicalResult verifyVote(AnyOp vote) {
  SetVector<Value> different;
  different.insert(vote.getResult());
  for (size_t number = 0; number < different.size(); ++number)
    for (Operation *user : different[number].getUsers()) {
      if (user->getNumRegions() != 0) {
        if (failed(verifyBranch(user, vote)))
          return failure();
        if (!isa<scf::IfOp>(user))
          return user->emitOpError("depends on a vote of the warps, only "
                                   "scf.if may");
      }
      for (Value result : user->getResults())
        if (result.getType().isIntOrIndexOrFloat())
          different.insert(result);
    }
  return success();
}

LogicalResult attn::warp::verifyVotes(KernelOp kernel) {
  WalkResult walk = kernel.walk([](AnyOp vote) {
    return failed(verifyVote(vote)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
