//===- RoleProtocol.cpp - the rules of roles ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W3 of warp.kernel, for kernels with roles. Why what is checked excludes
// deadlock and lost items.
//
// Write down for each role, in order of execution, the items that it fills and
// those that it awaits; loops keep their place. Required is:
//
// (a) What two roles have in common, the items of rings that one fills and the
//     other drains, is the same list in both: same rings, in loops with the
//     same bounds. So the n-th item that is awaited is the n-th that is filled.
//     All lists together are in one order: there is a list L of which that of
//     each role is a part (RoleOrder.cpp). Two roles alone always have one.
// (b) In each role the items of a ring are numbered 0, 1, 2, … in that order.
// (c) Between the await of an item and its release stand, in a ring of depth D,
//     at most D - 1 other awaits of that ring, none in a loop that does not
//     hold the release too. A release in the turn of a later await does not
//     count as before it.
// (e) What a role fills for itself, all of its warps a part each, it fills
//     before it awaits it, perhaps iterations before, and outside of turns; in
//     the end it has awaited all of it. An iteration of a loop fills, awaits
//     and releases equally many items of the ring. Where an item is filled at
//     most D - 1 others are filled and not released.
//
// Suppose that warps are stuck, and let one of those least far in L stand at
// entry p.
//
// - It awaits an item. No warp of the role that fills it is before p; those
//   past p have done their part. If one is at p itself, look at that one
//   instead. If it is of the same role, p is after the fill, by (e).
//
// - It fills an item, and waits for the release of the item D before it in its
//   ring by a warp that drains it. That warp is not before p, so has done all
//   that its list has before p; by (c), or (e), the release is among that.
//
// Hence it goes on.
//
// Turns. A warp may also wait at p for the turn of another group of its role,
// which is then inside that turn, at an await q after p, or not yet at it and
// so before p. In the first case nobody waits for what the groups at p have
// still to do up to q: a role that takes turns fills nothing in them, and by
// (c) released before the turn what an entry up to q needs. Leave these groups
// out and take the least far of the others.
//
// Bounds of loops may depend on the group's number. Where [lo, hi) are all
// blocks and [first, end) those of a group, loops that only take items and give
// them back pass over [lo, first) and [end, hi). They have no counterpart; the
// loops over own blocks are compared as if first were lo and end were hi, as
// they are for a group that passes over nothing. (d) Passing over uses the
// items of all rings of these loops, one of each for a block, and the bounds
// are known to be in order, so that every group uses as many; each ring has two
// slots, and none is filled by the role itself. It changes the order of the
// items of different rings within one block, where nobody waits for such a
// group: the item two before in a ring is of an earlier block. Leave it out,
// too, up to the entry that it waits for. Where blocks take turns, an item of
// each ring at most is used outside of the loops, and no more turns than those
// of a block stand between the own blocks and the others. So such a group gives
// an item back one turn after the others used it, at the latest; they wait for
// the item two further on two turns later, when all have left the turn between.
//
// Where own loops follow each other at a block that depends on the group, they
// count as one loop over all blocks, in each role: every loop does the same
// with the items of a block, and the bounds are known to be in order.
//
// A `warp.send` is a fill in this, a `warp.receive` an await with its release.
// Loops of two roles run equally often if their bounds are the same values, or
// (`scf.while`) their conditions: what is sent is the same as what is
// taken, and carried values are if they start so and every iteration keeps it.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"
#include "RoleSteps.h"
#include "attn/Dialect/Warp/IR/LoopValues.h"
#include "attn/Dialect/Warp/IR/RingItem.h"
#include "attn/Dialect/Warp/IR/Turns.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// W3 (b): items are numbered in order
//===----------------------------------------------------------------------===//

/// The rings that a list uses, each with its first use.
static void collectFirstUses(ArrayRef<Step> steps,
                             llvm::MapVector<Value, Operation *> &uses) {
  for (const Step &step : steps) {
    if (step.use)
      uses.insert({step.use->ring, step.op});
    collectFirstUses(step.body, uses);
  }
}

/// The value that `loop` carries and `use`, in its body, counts from.
static BlockArgument getCounter(Operation *loop, Operation *use) {
  Value base = RingItem::of(getItemUse(use)->item).base;
  while (base) {
    std::optional<CarriedValue> carried = getCarriedValue(base);
    if (!carried)
      return {};
    if (carried->loop == loop)
      return cast<BlockArgument>(base);
    base = RingItem::of(carried->init).base;
  }
  return {};
}

static LogicalResult refuseNumber(Operation *use) {
  return use->emitOpError("is out of order: the items of a ring are numbered "
                          "0, 1, 2, … as they are used, carried through loops");
}

static LogicalResult verifyNumbers(ArrayRef<Step> steps,
                                   DenseMap<Value, RingItem> &next) {
  for (const Step &step : steps) {
    if (step.use) {
      RingItem &expected = next[step.use->ring];
      if (!(RingItem::of(step.use->item) == expected))
        return refuseNumber(step.op);
      ++expected.offset;
      continue;
    }
    llvm::MapVector<Value, Operation *> uses;
    collectFirstUses(step.body, uses);
    // A role that fills a ring for itself may be ahead of its own awaits, which
    // the loop counts.
    struct Counter {
      BlockArgument argument;
      int64_t ahead;
    };
    DenseMap<Value, Counter> counters;
    for (auto [ring, use] : uses) {
      BlockArgument counter = getCounter(step.op, use);
      if (!counter)
        return refuseNumber(use);
      RingItem first = RingItem::of(getCarriedValue(counter)->init);
      if (first.base != next[ring].base)
        return refuseNumber(use);
      counters[ring] = {counter, next[ring].offset - first.offset};
      next[ring] = {counter, counters[ring].ahead};
    }
    if (failed(verifyNumbers(step.body, next)))
      return failure();
    for (auto [ring, use] : uses) {
      auto [counter, ahead] = counters[ring];
      RingItem last = RingItem::of(getCarriedValue(counter)->yielded);
      last.offset += ahead;
      if (!(last == next[ring]))
        return refuseNumber(use);
      next[ring] = {getLastValue(counter), ahead};
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// W3 (c): an item is released before its slot is needed
//===----------------------------------------------------------------------===//

/// Whether the item of `other` is held where `await` stands, or may be as
/// another group takes that turn.
static bool isHeldAt(AwaitOp other, AwaitOp await) {
  Block *home = getHomeBlock(other);
  if (other == await || !runsBefore(home, other, await))
    return false;
  Operation *release = getAncestorIn(home, getOnlyRelease(other));
  Operation *here = getAncestorIn(home, await);
  return release == here || !release->isBeforeInBlock(here);
}

/// Whether the item of `other` is held through a loop that `await` stands in,
/// so that any number of items may come before its release.
static bool isHeldThrough(AwaitOp other, AwaitOp await) {
  Block *home = getHomeBlock(other);
  return getHomeBlock(await) != home &&
         getAncestorIn(home, await) !=
             getAncestorIn(home, getOnlyRelease(other));
}

static LogicalResult refuseHeldThrough(AwaitOp other, AwaitOp await) {
  InFlightDiagnostic diag =
      await.emitOpError("waits for an item while another is held through the "
                        "loop around it");
  diag.attachNote(other.getLoc()) << "awaited here";
  diag.attachNote(getOnlyRelease(other).getLoc()) << "released here";
  return failure();
}

static LogicalResult verifyHeld(RingOp ring) {
  int64_t depth = ring.getRing().getType().getDepth();
  SmallVector<AwaitOp> awaits;
  for (Operation *user : ring.getRing().getUsers())
    if (auto await = dyn_cast<AwaitOp>(user))
      awaits.push_back(await);
  std::reverse(awaits.begin(), awaits.end()); // users come last first
  for (AwaitOp await : awaits) {
    int64_t numLater = 0;
    for (AwaitOp later : awaits) {
      if (!isHeldAt(await, later))
        continue;
      if (isHeldThrough(await, later))
        return refuseHeldThrough(await, later);
      if (++numLater < depth)
        continue;
      InFlightDiagnostic diag = later.emitOpError("is later by ")
                                << numLater
                                << " than an item that is still held, the "
                                   "ring has "
                                << depth << (depth == 1 ? " slot" : " slots");
      diag.attachNote(await.getLoc()) << "awaited here";
      diag.attachNote(getOnlyRelease(await).getLoc()) << "released here";
      return failure();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// W3 (e): what a role fills for itself
//===----------------------------------------------------------------------===//

namespace {
/// What a role has done with the items of a ring that it fills for itself.
class OwnItems {
public:
  explicit OwnItems(RingOp ring) : ring(ring.getRing()) {}

  LogicalResult verify(Block *block);
  /// Nothing is left at the end of the role.
  LogicalResult verifyEnd() const;

private:
  LogicalResult verifyFill(Operation *fill);
  LogicalResult verifyLoop(LoopLikeOpInterface loop);

  TypedValue<RingType> ring;
  /// Not released, the oldest first.
  SmallVector<Operation *> held;
  int64_t numFilled = 0, numAwaited = 0, numReleased = 0;
};
} // namespace

LogicalResult OwnItems::verifyFill(Operation *fill) {
  int64_t depth = ring.getType().getDepth();
  int64_t numHeld = held.size();
  if (numHeld >= depth) {
    InFlightDiagnostic diag = fill->emitOpError("is later by ")
                              << depth
                              << " than an item that is still held, the ring "
                                 "has "
                              << depth << (depth == 1 ? " slot" : " slots");
    diag.attachNote(held[numHeld - depth]->getLoc()) << "filled here";
    return failure();
  }
  held.push_back(fill);
  ++numFilled;
  return success();
}

LogicalResult OwnItems::verifyLoop(LoopLikeOpInterface loop) {
  int64_t filled = numFilled, awaited = numAwaited, released = numReleased;
  for (Region *region : loop.getLoopRegions())
    for (Block &block : *region)
      if (failed(verify(&block)))
        return failure();
  filled = numFilled - filled;
  awaited = numAwaited - awaited;
  released = numReleased - released;
  if (filled == awaited && awaited == released)
    return success();
  return loop.emitOpError("fills ")
         << filled << (filled == 1 ? " item" : " items")
         << " of a ring of its own role in an iteration, "
         << "awaits " << awaited << " and releases " << released
         << ", expected as many";
}

LogicalResult OwnItems::verify(Block *block) {
  for (Operation &op : *block) {
    if (auto release = dyn_cast<ReleaseOp>(op)) {
      auto await =
          getSourceThroughTurns(release.getSlot()).getDefiningOp<AwaitOp>();
      if (!await || await.getRing() != ring || held.empty())
        continue;
      held.erase(held.begin());
      ++numReleased;
      continue;
    }
    std::optional<ItemUse> use = getItemUse(&op);
    if (use && use->ring == ring) {
      if (use->isFill ? failed(verifyFill(&op)) : numAwaited == numFilled)
        return use->isFill ? failure()
                           : op.emitOpError("waits for an item that its own "
                                            "role has not filled before");
      numAwaited += !use->isFill;
      continue;
    }
    if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
      if (failed(verifyLoop(loop)))
        return failure();
    } else if (auto turn = dyn_cast<TurnOp>(op)) {
      if (failed(verify(turn.getBodyBlock())))
        return failure();
    }
  }
  return success();
}

LogicalResult OwnItems::verifyEnd() const {
  if (numFilled == numAwaited)
    return success();
  return held.back()->emitOpError(
      "fills an item that its own role does not await");
}

LogicalResult attn::warp::verifyRoleRings(KernelOp kernel) {
  std::vector<RoleSteps> roles;
  for (RoleOp role : kernel.getRoles()) {
    RoleSteps &list = roles.emplace_back(RoleSteps{role, {}});
    if (failed(listSteps(role.getBodyBlock(), list.steps)) ||
        failed(verifyGroupLoops(list.steps)))
      return failure();
  }
  if (failed(verifyOrder(kernel, roles)))
    return failure();
  for (const RoleSteps &list : roles)
    for (bool isFill : {true, false}) {
      DenseMap<Value, RingItem> next;
      std::vector<Step> steps = filterSteps(
          list.steps, [&](const ItemUse &use) { return use.isFill == isFill; });
      if (failed(verifyNumbers(steps, next)))
        return failure();
    }
  for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>()) {
    RoleOp filler = kernel.getRole(getFiller(ring.getRing()));
    OwnItems own(ring);
    if (drains(filler, ring.getRing()) &&
        (failed(own.verify(filler.getBodyBlock())) || failed(own.verifyEnd())))
      return failure();
    if (failed(verifyHeld(ring)))
      return failure();
  }
  return success();
}
