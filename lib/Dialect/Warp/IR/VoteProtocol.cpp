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
  return isa<CopyOp, CopyAsyncOp, StoreFragOp, AwaitOp, ReleaseOp, ProductOp,
             WaitOp, TurnOp>(op);
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

/// The values that `use` hands its value on to; nothing where it decides
/// whether operations run and is not the condition of an scf.if.
static std::optional<SmallVector<Value>> handOn(OpOperand &use) {
  Operation *user = use.getOwner();
  auto throughLoop = [](scf::ForOp loop, BlockArgument argument) {
    return SmallVector<Value>{argument, loop.getTiedLoopResult(argument)};
  };
  if (auto loop = dyn_cast<scf::ForOp>(user))
    if (BlockArgument argument = loop.getTiedLoopRegionIterArg(&use))
      return throughLoop(loop, argument);
  if (isa<scf::YieldOp>(user)) {
    Operation *parent = user->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return throughLoop(loop, loop.getRegionIterArg(use.getOperandNumber()));
    if (isa<scf::IfOp>(parent))
      return SmallVector<Value>{parent->getResult(use.getOperandNumber())};
  }
  if (user->getNumRegions() != 0 && !isa<scf::IfOp>(user))
    return std::nullopt;
  return SmallVector<Value>(user->getResults());
}

static LogicalResult verifyVote(AnyOp vote) {
  SetVector<Value> different;
  different.insert(vote.getResult());
  for (size_t number = 0; number < different.size(); ++number)
    for (OpOperand &use : different[number].getUses()) {
      Operation *user = use.getOwner();
      std::optional<SmallVector<Value>> next = handOn(use);
      if ((!next || isa<scf::IfOp>(user)) && failed(verifyBranch(user, vote)))
        return failure();
      if (!next)
        return user->emitOpError("depends on a vote of the warps, only "
                                 "scf.if may");
      for (Value value : *next)
        if (value.getType().isIntOrIndexOrFloat())
          different.insert(value);
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
