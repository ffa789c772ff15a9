//===- InsertTurns.cpp - groups issue products one after the other --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products that are in flight together in the body of a loop (Q K^T of one
// block and P V of the one before) are issued in one `warp.turn`. While the
// products of one warpgroup run, the others compute their softmax: without
// turns all groups tend to do the same at the same time. Numbers of each key
// that the body reads from global memory it reads before its turn, and they
// arrive while it waits for that: a bias of each key at d = 64 (8192 tokens, an
// H200) takes 0.72 of the time with tiles of 256 x 64, 0.85 with 192 x 96.
//
// A role that exchanges tiles (one program for all gradients, dS) takes none:
// its groups wait for each other's tiles already, and at d = 64 and 128 an H100
// is 1.00 to 1.03 times as fast without turns. Nor does one with a ring of one
// slot that a turn awaits: gradients of d = 256 take 0.94 to 0.98 of the time
// without turns (an H200, 1024 to 16384 queries).
//
//===----------------------------------------------------------------------===//

#include "FreeRegisters.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Dialect/Warp/IR/Turns.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPINSERTTURNS
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

namespace {
/// Operations of a block, from the first issue to the last: those of the turn,
/// and those that move before it.
struct TurnRange {
  SmallVector<Operation *> inside, before;
};
} // namespace

static WaitOp getWait(MmaAsyncOp issue) {
  for (Operation *user : issue->getUsers())
    if (auto wait = dyn_cast<WaitOp>(user))
      return wait;
  return {};
}

/// The last issue that is in flight together with `first`.
static MmaAsyncOp getLastTogether(MmaAsyncOp first) {
  WaitOp wait = getWait(first);
  MmaAsyncOp last;
  for (Operation *op = first; op && op != wait; op = op->getNextNode())
    if (auto issue = dyn_cast<MmaAsyncOp>(op))
      last = issue;
  return last;
}

/// What stands between two issues: other issues and awaits belong to the turn,
/// what does not depend on them can stand in front.
static FailureOr<TurnRange> matchRange(MmaAsyncOp first, MmaAsyncOp last) {
  TurnRange range;
  for (Operation *op = first; op != last->getNextNode();
       op = op->getNextNode()) {
    if (isa<MmaAsyncOp, AwaitOp>(op)) {
      range.inside.push_back(op);
      continue;
    }
    bool depends = llvm::any_of(op->getOperands(), [&](Value operand) {
      return llvm::is_contained(range.inside, operand.getDefiningOp());
    });
    if (!isPure(op) || op->getNumRegions() != 0 || depends)
      return failure();
    range.before.push_back(op);
  }
  return range;
}

/// What makes `value` in a block, in order, if it may stand before `place`.
static bool collectMakers(Value value, Operation *place,
                          SetVector<Operation *> &makers) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != place->getBlock() ||
      op->isBeforeInBlock(place) || makers.contains(op))
    return true;
  if (op->getNumRegions() != 0 || !(isPure(op) || isa<GatherOp>(op)) ||
      !llvm::all_of(op->getOperands(), [&](Value operand) {
        return collectMakers(operand, place, makers);
      }))
    return false;
  makers.insert(op);
  return true;
}

/// Rows of few numbers that the body reads from captured tensors, which nobody
/// writes, stand before a turn.
static void readAhead(RewriterBase &rewriter, Operation *turn) {
  constexpr int64_t manyRegisters = 32;
  Block *body = turn->getBlock();
  for (auto gather : llvm::to_vector(body->getOps<GatherOp>())) {
    FragType type = gather.getResult().getType();
    SetVector<Operation *> makers;
    if (type.getShape().front() != 1 || countRegisters(type) >= manyRegisters ||
        !collectMakers(gather.getResult(), turn, makers))
      continue;
    for (Operation *maker : makers)
      rewriter.moveOpBefore(maker, turn);
  }
}

static void buildTurn(RewriterBase &rewriter, const TurnRange &range) {
  for (Operation *op : range.before)
    rewriter.moveOpBefore(op, range.inside.front());
  readAhead(rewriter, range.inside.front());
  moveToTurn(rewriter, range.inside);
}

/// The products of a body that are in flight together, group by group.
static void matchBody(scf::ForOp loop, SmallVector<TurnRange> &ranges) {
  Operation *end = nullptr; // of the group before
  for (auto first : loop.getBody()->getOps<MmaAsyncOp>()) {
    if (end && !end->isBeforeInBlock(first))
      continue;
    MmaAsyncOp last = getLastTogether(first);
    if (last == first)
      continue;
    end = last;
    FailureOr<TurnRange> range = matchRange(first, last);
    if (succeeded(range))
      ranges.push_back(*range);
  }
}

/// Whether a tile that the turn awaits is loaded when all groups have left the
/// one before: those behind in the turn, too.
static bool waitsForOthers(const TurnRange &range) {
  return llvm::any_of(range.inside, [](Operation *op) {
    auto await = dyn_cast<AwaitOp>(op);
    return await && await.getRing().getType().getDepth() == 1;
  });
}

FailureOr<int64_t> attn::warp::insertTurns(RewriterBase &rewriter,
                                           KernelOp kernel,
                                           std::string &reason) {
  auto takesTurns = [](RoleOp role) {
    return !role.isCopy() && role.getNumGroups() > 1;
  };
  SmallVector<RoleOp> roles =
      llvm::filter_to_vector(kernel.getRoles(), takesTurns);
  if (roles.size() != 1) {
    reason = roles.empty() ? "there is no role of two or more groups"
                           : "several roles have two or more groups";
    return failure();
  }
  for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>())
    if (getFiller(ring.getRing()) == roles.front().getSymName() &&
        drains(roles.front(), ring.getRing())) {
      reason = "its groups exchange tiles, and wait for each other for these";
      return failure();
    }
  SmallVector<TurnRange> ranges;
  SmallVector<scf::ForOp> passed;
  bool isOnePerBlock = true;
  roles.front().walk([&](scf::ForOp loop) {
    if (getPassedEnd(loop)) {
      passed.push_back(loop);
      return;
    }
    size_t others = ranges.size();
    matchBody(loop, ranges);
    if (!loop.getBody()->getOps<AwaitOp>().empty())
      isOnePerBlock &= int64_t(ranges.size() - others) ==
                       getConstantIntValue(loop.getStep());
  });
  if (!passed.empty() && !isOnePerBlock) {
    reason = "groups that go through different blocks would take different "
             "numbers of turns";
    return failure();
  }
  if (ranges.empty()) {
    reason = "no two products are in flight together in a loop";
    return failure();
  }
  if (llvm::any_of(ranges, waitsForOthers)) {
    reason = "in its turn a group would wait for a ring of one slot, which the "
             "others have to leave";
    return failure();
  }
  for (const TurnRange &range : ranges)
    buildTurn(rewriter, range);
  // As many turns as the others.
  for (scf::ForOp loop : passed) {
    rewriter.setInsertionPointToStart(loop.getBody());
    auto turn = TurnOp::create(rewriter, loop.getLoc(), TypeRange());
    rewriter.createBlock(&turn.getBody());
    YieldOp::create(rewriter, loop.getLoc());
  }
  return int64_t(ranges.size());
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct WarpInsertTurns final
    : attn::SchedulePass<attn::warp::impl::WarpInsertTurnsBase<WarpInsertTurns>,
                         KernelOp, WarpForm::Async> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("turns", insertTurns(rewriter, kernel, reason), reason);
  }
};
} // namespace
