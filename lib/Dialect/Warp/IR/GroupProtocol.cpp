//===- GroupProtocol.cpp - groups that pass over blocks ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W3 (d) of warp.kernel: what a group passes over is what the others use.
//
//===----------------------------------------------------------------------===//

#include "RoleSteps.h"

#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Dialect/Warp/IR/RingItem.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// What loops use
//===----------------------------------------------------------------------===//

namespace {
/// What a loop over blocks uses.
struct BlockUse {
  llvm::MapVector<Value, int64_t> items;
  int64_t numTurns = 0;
  /// Blocks of one iteration.
  int64_t numBlocks = 0;

  /// As many items of each ring as blocks.
  bool isOnePerBlock() const {
    return llvm::all_of(items, [&](const auto &use) {
      return use.first && use.second == numBlocks;
    });
  }
};

/// The loops of a list.
struct GroupLoops {
  scf::ForOp lower, upper; // which pass over blocks, or null
  SmallVector<const Step *> own;

  bool dependOnGroup() const {
    return lower || upper || llvm::any_of(own, [](const Step *step) {
             auto loop = cast<scf::ForOp>(step->op);
             return dependsOnGroup(loop.getLowerBound()) ||
                    dependsOnGroup(loop.getUpperBound());
           });
  }
  /// One of the loops to which that applies.
  Operation *getPlace() const {
    return lower ? lower : upper ? upper : own.front()->op;
  }
};
} // namespace

static BlockUse getBlockUse(const Step &step) {
  BlockUse use;
  for (const Step &inner : step.body)
    ++use.items[inner.use ? inner.use->ring : Value()];
  step.op->walk([&](TurnOp) { ++use.numTurns; });
  use.numBlocks =
      getConstantIntValue(cast<scf::ForOp>(step.op).getStep()).value_or(0);
  return use;
}

/// A loop beside one that passes over blocks.
static LogicalResult verifyBlockUse(const Step &step,
                                    const BlockUse &expected) {
  BlockUse use = getBlockUse(step);
  bool isSame =
      use.isOnePerBlock() && use.items.size() == expected.items.size() &&
      use.numTurns * expected.numBlocks == expected.numTurns * use.numBlocks &&
      llvm::all_of(use.items, [&](const auto &item) {
        return expected.items.contains(item.first);
      });
  if (isSame)
    return success();
  return step.op->emitOpError(
      "uses other items or turns than the loops beside it: groups that pass "
      "over blocks must use one item of each ring for a block, and as many "
      "turns");
}

static FailureOr<GroupLoops> findLoops(ArrayRef<Step> steps) {
  GroupLoops loops;
  for (const Step &step : steps) {
    auto loop = dyn_cast<scf::ForOp>(step.op);
    if (!loop)
      continue;
    std::optional<PassedEnd> end = getPassedEnd(loop);
    if (!end) {
      loops.own.push_back(&step);
      continue;
    }
    scf::ForOp &passing = *end == PassedEnd::Lower ? loops.lower : loops.upper;
    if (passing)
      return loop.emitOpError("passes over blocks a second time");
    passing = loop;
  }
  return loops;
}

/// Before all others at the lower end, after all others at the upper.
static LogicalResult verifyPlaces(const GroupLoops &loops, ArrayRef<Step> steps,
                                  const BlockUse &expected) {
  for (const Step &step : steps) {
    bool usesRings = step.use ? expected.items.contains(step.use->ring)
                              : isa<scf::ForOp>(step.op);
    if (!usesRings || step.op == loops.lower || step.op == loops.upper)
      continue;
    auto isAfter = [&](scf::ForOp loop) {
      Block *block = loop->getBlock();
      return loop->isBeforeInBlock(block->findAncestorOpInBlock(*step.op));
    };
    if (loops.lower && !isAfter(loops.lower))
      return scf::ForOp(loops.lower)
          .emitOpError("passes over blocks after others, expected it before "
                       "all");
    if (loops.upper && isAfter(loops.upper))
      return scf::ForOp(loops.upper)
          .emitOpError("passes over blocks before others, expected it after "
                       "all");
  }
  return success();
}

/// Turns between a group's own loops and what it passes over, no more than
/// those of a block: by so many it gives items back later than the others, or
/// sooner.
static LogicalResult verifyTurnsBeside(const GroupLoops &loops,
                                       const BlockUse &expected) {
  auto verifyBetween = [&](Operation *from, Operation *to) -> LogicalResult {
    TurnOp last;
    int64_t numBeside = 0;
    for (Operation *op = from; op && op != to; op = op->getNextNode())
      if (auto turn = dyn_cast<TurnOp>(op)) {
        last = turn;
        ++numBeside;
      }
    if (numBeside * expected.numBlocks <= expected.numTurns)
      return success();
    InFlightDiagnostic diag = last.emitOpError("is one of ")
                              << numBeside
                              << " between a group's own blocks and those that "
                                 "it passes over, expected no more than in a "
                                 "block";
    diag.attachNote(loops.own.front()->op->getLoc())
        << "the group's own blocks, with " << expected.numTurns
        << (expected.numTurns == 1 ? " turn" : " turns") << " in "
        << expected.numBlocks
        << (expected.numBlocks == 1 ? " block" : " blocks");
    return diag;
  };
  if (loops.lower && failed(verifyBetween(loops.lower, loops.own.front()->op)))
    return failure();
  return loops.upper ? verifyBetween(loops.own.back()->op, loops.upper)
                     : success();
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

namespace {
/// What is at most what, as far as minima and maxima show it, where one number
/// is known to be at most another.
class Order {
public:
  Order(RingItem less, RingItem more) : less(less), more(more) {}

  bool isAtMost(RingItem a, RingItem b, bool isKnown = true) {
    if (a.base == b.base && a.offset <= b.offset)
      return true;
    // Verifiers see operations that use their own results, too.
    if (numSteps-- == 0)
      return false;
    if (isKnown && a.base == less.base &&
        isAtMost(plus(more, a.offset - less.offset), b, /*isKnown=*/false))
      return true;
    auto left = [&](Value part) {
      return isAtMost(plus(RingItem::of(part), a.offset), b, isKnown);
    };
    auto right = [&](Value part) {
      return isAtMost(a, plus(RingItem::of(part), b.offset), isKnown);
    };
    if (auto min = getDefiningOp<arith::MinSIOp>(b))
      return right(min.getLhs()) && right(min.getRhs());
    if (auto max = getDefiningOp<arith::MaxSIOp>(a))
      return left(max.getLhs()) && left(max.getRhs());
    if (auto min = getDefiningOp<arith::MinSIOp>(a);
        min && (left(min.getLhs()) || left(min.getRhs())))
      return true;
    if (auto max = getDefiningOp<arith::MaxSIOp>(b);
        max && (right(max.getLhs()) || right(max.getRhs())))
      return true;
    return false;
  }

  static RingItem plus(RingItem item, int64_t offset) {
    return {item.base, item.offset + offset};
  }

private:
  template <typename OpTy> static OpTy getDefiningOp(RingItem item) {
    return item.base ? item.base.getDefiningOp<OpTy>() : OpTy();
  }

  RingItem less, more;
  int numSteps = 1000;
};
} // namespace

/// lo <= first < end <= hi if lo < hi, and nothing is passed over otherwise.
static bool isInOrder(const GroupLoops &loops, RingItem first, RingItem end) {
  scf::ForOp lower = loops.lower, upper = loops.upper;
  RingItem lo = lower ? RingItem::of(lower.getLowerBound()) : first;
  RingItem hi = upper ? RingItem::of(upper.getUpperBound()) : end;
  Order some(Order::plus(lo, 1), hi), none(hi, lo);
  return (!lower || (some.isAtMost(lo, first) && none.isAtMost(first, lo))) &&
         (!upper || (some.isAtMost(end, hi) && none.isAtMost(hi, end))) &&
         some.isAtMost(Order::plus(first, 1), end);
}

/// Each of the group's own loops goes on where the one before ended, and ends
/// no sooner than it starts.
static LogicalResult verifyChain(const GroupLoops &loops, RingItem lo,
                                 RingItem hi) {
  for (size_t number = 0; number < loops.own.size(); ++number) {
    auto loop = cast<scf::ForOp>(loops.own[number]->op), last = loop;
    // What is left of several blocks in an iteration the next loop does.
    if (number + 1 < loops.own.size() &&
        getConstantIntValue(loop.getStep()) != 1)
      last = cast<scf::ForOp>(loops.own[++number]->op);
    Operation *next =
        number + 1 < loops.own.size() ? loops.own[number + 1]->op : nullptr;
    if ((last != loop && loop.getUpperBound() != last.getLowerBound()) ||
        (next &&
         cast<scf::ForOp>(next).getLowerBound() != last.getUpperBound()))
      return loop.emitOpError("ends at another block than the next of its "
                              "group's loops starts at");
    if (!dependsOnGroup(loop.getLowerBound()) &&
        !dependsOnGroup(last.getUpperBound()))
      continue;
    if (!Order(lo, hi).isAtMost(RingItem::of(loop.getLowerBound()),
                                RingItem::of(last.getUpperBound())))
      return loop.emitOpError("is not known to end no sooner than it starts, "
                              "expected bounds in order, by minima and maxima");
  }
  return success();
}

/// The own blocks are those between what is passed over. Of as many as items
/// are used beside the loops, the first loop starts later: then it ends no
/// sooner than it starts.
static LogicalResult verifyBounds(const GroupLoops &loops, int64_t numBeside) {
  RingItem start =
      RingItem::of(cast<scf::ForOp>(loops.own.front()->op).getLowerBound());
  Value last = cast<scf::ForOp>(loops.own.back()->op).getUpperBound();
  if (auto max = last.getDefiningOp<arith::MaxSIOp>(); max && numBeside > 0) {
    if (RingItem::of(max.getRhs()) == start)
      last = max.getLhs();
    else if (RingItem::of(max.getLhs()) == start)
      last = max.getRhs();
  }
  RingItem first = Order::plus(start, -numBeside), end = RingItem::of(last);
  scf::ForOp lower = loops.lower, upper = loops.upper;
  auto refuse = [&](scf::ForOp passing, StringRef message) {
    InFlightDiagnostic diag = passing.emitOpError(message);
    diag.attachNote(loops.own.front()->op->getLoc())
        << "the group's own blocks begin here";
    return diag;
  };
  if (lower && !(RingItem::of(lower.getUpperBound()) == first))
    return refuse(lower, "passes over blocks up to another than the first of "
                         "its group");
  if (upper && !(RingItem::of(upper.getLowerBound()) == end))
    return refuse(upper, "passes over blocks from another on than the end of "
                         "its group's");
  if (isInOrder(loops, first, end))
    return verifyChain(loops,
                       lower ? RingItem::of(lower.getLowerBound()) : first,
                       upper ? RingItem::of(upper.getUpperBound()) : end);
  return refuse(lower ? lower : upper,
                "has bounds that are not known to be in order, expected lo <= "
                "first < end <= hi, by minima and maxima, for the blocks [lo, "
                "hi) of all groups and [first, end) of its own");
}

//===----------------------------------------------------------------------===//
// W3 (d)
//===----------------------------------------------------------------------===//

static LogicalResult verifyGroups(const GroupLoops &loops,
                                  ArrayRef<Step> steps) {
  if (loops.own.empty())
    return loops.getPlace()->emitOpError(
        "passes over blocks beside no loop over others");
  for (const Step &inner : loops.own.front()->body)
    if (inner.use && inner.use->isFill)
      return inner.op->emitOpError("fills an item in a loop that groups pass "
                                   "blocks of over");
  BlockUse expected = getBlockUse(*loops.own.front());
  llvm::MapVector<Value, int64_t> beside;
  for (const Step &step : steps) {
    if (step.use)
      ++beside[step.use->ring];
    else if (isa<scf::ForOp>(step.op) && failed(verifyBlockUse(step, expected)))
      return failure();
  }
  if (failed(verifyPlaces(loops, steps, expected)) ||
      failed(verifyTurnsBeside(loops, expected)))
    return failure();
  int64_t numBeside = beside.lookup(expected.items.front().first);
  for (auto [ring, number] : expected.items) {
    if (beside.lookup(ring) != numBeside)
      return loops.getPlace()->emitOpError("stands beside ")
             << numBeside << " and " << beside.lookup(ring)
             << " uses of two rings outside of loops, expected one of each for "
                "a block";
    if (expected.numTurns != 0 && numBeside > 1)
      return loops.getPlace()->emitOpError("stands beside ")
             << numBeside
             << " uses of a ring outside of loops, expected at most one where "
                "blocks take turns";
    if (auto type = dyn_cast<RingType>(ring.getType());
        type && type.getDepth() < 2)
      return loops.getPlace()->emitOpError("needs rings of two slots, got ")
             << type;
  }
  return verifyBounds(loops, numBeside);
}

LogicalResult attn::warp::verifyGroupLoops(ArrayRef<Step> steps) {
  FailureOr<GroupLoops> loops = findLoops(steps);
  if (failed(loops))
    return failure();
  // Who copies goes through all blocks.
  bool isOwn = loops->dependOnGroup() &&
               !loops->getPlace()->getParentOfType<RoleOp>().isCopy();
  if (isOwn && failed(verifyGroups(*loops, steps)))
    return failure();
  for (const Step &step : steps)
    if (failed(verifyGroupLoops(step.body)))
      return failure();
  return success();
}
