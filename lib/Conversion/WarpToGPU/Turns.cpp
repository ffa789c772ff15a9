//===- Turns.cpp - warpgroups one after the other -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Group g of the block has the named barrier 1 + g. It comes in when the group
// of its role before it has been through: that group arrives, this one waits,
// 256 threads in all. The last group of a role arrives once for the first at
// the start.
//
//===----------------------------------------------------------------------===//

#include "Turns.h"

#include "Atoms/Mbarrier.h"
#include "Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Two groups meet at a barrier.
static constexpr int64_t threadsOfTwo = 2 * 4 * layout::warpSize;

static void emitArrive(OpBuilder &builder, Location loc, Value barrier) {
  Integers ints(builder, loc);
  // Not nvvm.barrier.arrive: it has no translation to LLVM IR of its own.
  emitStatement(builder, loc, "bar.arrive $0, $1;",
                {barrier, ints.constant(threadsOfTwo)});
}

/// The body comes before the turn, which has no results then.
static void inlineBody(RewriterBase &rewriter, TurnOp turn) {
  Block *body = turn.getBodyBlock();
  YieldOp yield = turn.getYield();
  rewriter.replaceAllUsesWith(turn.getResults(), yield.getValues());
  rewriter.eraseOp(yield);
  rewriter.inlineBlockBefore(body, turn);
  rewriter.setInsertionPoint(turn);
}

namespace {
/// The groups of a role, by their numbers in the block.
struct Groups {
  int64_t first, last;

  static Groups of(RoleOp role) {
    int64_t first = role.getFirstWarp() / layout::warpsPerGroup;
    return {first, first + role.getNumGroups() - 1};
  }
};
} // namespace

static Value isLastGroup(OpBuilder &builder, Location loc, Value group,
                         const Groups &groups) {
  Integers ints(builder, loc);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, group,
                               ints.constant(groups.last));
}

/// The body between waiting for the own turn and passing it on.
static void lowerTurn(RewriterBase &rewriter, TurnOp turn,
                      const Groups &groups) {
  Location loc = turn.getLoc();
  Integers ints(rewriter, loc);
  rewriter.setInsertionPoint(turn);
  Value group = ints.blockWarpgroup();
  NVVM::BarrierOp::create(rewriter, loc, /*res=*/Type(),
                          ints.add(group, firstTurnBarrier),
                          ints.constant(threadsOfTwo),
                          /*reductionOp=*/NVVM::BarrierReductionAttr(),
                          /*reductionPredicate=*/Value());
  inlineBody(rewriter, turn);
  Value next = arith::SelectOp::create(
      rewriter, loc, isLastGroup(rewriter, loc, group, groups),
      ints.constant(firstTurnBarrier + groups.first),
      ints.add(group, firstTurnBarrier + 1));
  emitArrive(rewriter, loc, next);
  rewriter.eraseOp(turn);
}

/// The last group says to the first that it may come in.
static void startTurns(RewriterBase &rewriter, RoleOp role,
                       const Groups &groups) {
  rewriter.setInsertionPointToStart(role.getBodyBlock());
  Location loc = role.getLoc();
  Integers ints(rewriter, loc);
  Value isLast = isLastGroup(rewriter, loc, ints.blockWarpgroup(), groups);
  auto branch = scf::IfOp::create(rewriter, loc, isLast,
                                  /*withElseRegion=*/false);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  emitArrive(rewriter, loc, ints.constant(firstTurnBarrier + groups.first));
}

LogicalResult attn::warp::lowerTurns(RewriterBase &rewriter,
                                     gpu::GPUFuncOp function) {
  llvm::MapVector<Operation *, SmallVector<TurnOp>> turns;
  WalkResult walk = function.walk([&](TurnOp turn) {
    auto role = turn->getParentOfType<RoleOp>();
    if (!role) {
      turn.emitOpError("stands outside the roles");
      return WalkResult::interrupt();
    }
    turns[role].push_back(turn);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  for (auto &[op, turnsOfRole] : turns) {
    auto role = cast<RoleOp>(op);
    Groups groups = Groups::of(role);
    if (groups.last >= maxGroups)
      return role.emitOpError("expected at most ")
             << maxGroups << " warpgroups up to the last that takes turns, got "
             << groups.last + 1;
    bool isAlone = groups.first == groups.last;
    if (!isAlone)
      startTurns(rewriter, role, groups);
    for (TurnOp turn : turnsOfRole) {
      if (!isAlone) {
        lowerTurn(rewriter, turn, groups);
        continue;
      }
      inlineBody(rewriter, turn);
      rewriter.eraseOp(turn);
    }
  }
  return success();
}
