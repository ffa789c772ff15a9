//===- Turns.cpp - warpgroups one after the other -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Group g has the named barrier 1 + g. It
// comes in when the group before has been through: that group arrives, this
// one waits, 256 threads in all. The last group arrives once for group 0 at
// the start.
//
//===----------------------------------------------------------------------===//

#include "Turns.h"

#include "Atoms/Mbarrier.h"
#include "Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

/// The body between waiting for the own turn and passing it on.
static void lowerTurn(RewriterBase &rewriter, TurnOp turn, int64_t groups) {
  Location loc = turn.getLoc();
  Integers ints(rewriter, loc);
  rewriter.setInsertionPoint(turn);
  Value group = ints.warpgroup();
  NVVM::BarrierOp::create(rewriter, loc, /*res=*/Type(),
                          ints.add(group, firstTurnBarrier),
                          ints.constant(threadsOfTwo),
                          /*reductionOp=*/NVVM::BarrierReductionAttr(),
                          /*reductionPredicate=*/Value());
  Block *body = &turn.getBody().front();
  auto yield = cast<YieldOp>(body->getTerminator());
  SmallVector<Value> results = llvm::to_vector(yield.getValues());
  rewriter.eraseOp(yield);
  rewriter.inlineBlockBefore(body, turn);
  rewriter.setInsertionPoint(turn);
  Value isLast = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                       group, ints.constant(groups - 1));
  Value next = arith::SelectOp::create(rewriter, loc, isLast,
                                       ints.constant(firstTurnBarrier),
                                       ints.add(group, firstTurnBarrier + 1));
  emitArrive(rewriter, loc, next);
  rewriter.replaceOp(turn, results);
}

LogicalResult attn::warp::lowerTurns(RewriterBase &rewriter,
                                     gpu::GPUFuncOp function) {
  SmallVector<TurnOp> turns;
  function.walk([&](TurnOp turn) { turns.push_back(turn); });
  if (turns.empty())
    return success();
  OpBuilder::InsertionGuard guard(rewriter);
  auto role = turns.front()->getParentOfType<RoleOp>();
  if (!role)
    return turns.front().emitOpError("stands outside the roles");
  int64_t groups = role.getNumGroups();
  if (groups > maxGroups)
    return role.emitOpError("expected at most ")
           << maxGroups << " warpgroups that take turns, got " << groups;
  if (groups > 1) {
    rewriter.setInsertionPointToStart(role.getBodyBlock());
    Location loc = role.getLoc();
    Integers ints(rewriter, loc);
    Value isLast =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                              ints.warpgroup(), ints.constant(groups - 1));
    auto branch = scf::IfOp::create(rewriter, loc, isLast,
                                    /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    emitArrive(rewriter, loc, ints.constant(firstTurnBarrier));
  }
  for (TurnOp turn : turns) {
    if (groups > 1) {
      lowerTurn(rewriter, turn, groups);
      continue;
    }
    Block *body = &turn.getBody().front();
    auto yield = cast<YieldOp>(body->getTerminator());
    SmallVector<Value> results = llvm::to_vector(yield.getValues());
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(body, turn);
    rewriter.replaceOp(turn, results);
  }
  return success();
}
