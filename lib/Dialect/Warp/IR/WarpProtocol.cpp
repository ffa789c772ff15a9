//===- WarpProtocol.cpp - the rules of slots and rings --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W2, W3 and W4 of warp.kernel; W3 for the form where all warps do everything
// (RoleProtocol.cpp has it for roles, PendingProtocol.cpp has W1). What cannot
// be read off the program (an item number that is not base + constant) is not
// refused.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"
#include "attn/Dialect/Warp/IR/RingItem.h"
#include "attn/Dialect/Warp/IR/Turns.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// W2: released once, in the block that awaited, and not read afterwards
//===----------------------------------------------------------------------===//

ReleaseOp attn::warp::getOnlyRelease(AwaitOp await) {
  ReleaseOp release;
  for (OpOperand *use : getUsesThroughTurns(await.getSlot())) {
    auto other = dyn_cast<ReleaseOp>(use->getOwner());
    if (!other)
      continue;
    if (release) {
      // Users come last first.
      InFlightDiagnostic diag =
          release.emitOpError("releases a slot that is already released");
      diag.attachNote(other.getLoc()) << "first release is here";
      return {};
    }
    release = other;
  }
  if (!release) {
    await.emitOpError("gives a slot that is never released");
    return {};
  }
  if (getHomeBlock(release) != getHomeBlock(await)) {
    InFlightDiagnostic diag =
        release.emitOpError("stands in another block than its await");
    diag.attachNote(await.getLoc()) << "awaited here";
    return {};
  }
  return release;
}

/// A pending value is waited for before the slot that it reads is released.
static LogicalResult verifyReadersDone(Block *home, ReleaseOp release,
                                       MmaAsyncOp reader) {
  WaitOp wait = getOnlyWait(reader);
  if (!wait)
    return failure();
  if (runsBefore(home, wait, release))
    return success();
  InFlightDiagnostic diag = release.emitOpError(
      "releases a slot that a product in flight still reads");
  diag.attachNote(reader.getLoc()) << "issued here";
  diag.attachNote(wait.getLoc()) << "waited for here";
  return failure();
}

static LogicalResult verifyRelease(AwaitOp await) {
  ReleaseOp release = getOnlyRelease(await);
  if (!release)
    return failure();
  Block *home = getHomeBlock(await);
  for (OpOperand *use : getUsesThroughTurns(await.getSlot())) {
    Operation *user = use->getOwner();
    if (user == release)
      continue;
    if (user->hasTrait<OpTrait::IsTerminator>())
      return user->emitOpError("passes on an awaited slot, which may not leave "
                               "its block");
    if (runsBefore(home, release, user)) {
      InFlightDiagnostic diag =
          user->emitOpError("reads a slot that is already released");
      diag.attachNote(release.getLoc()) << "released here";
      return failure();
    }
    auto reader = dyn_cast<MmaAsyncOp>(user);
    if (reader && failed(verifyReadersDone(home, release, reader)))
      return failure();
  }
  return success();
}

/// What a pending value reads is not copied to.
static LogicalResult verifyNotCopiedTo(AllocOp alloc) {
  for (Operation *user : alloc.getSlot().getUsers()) {
    auto reader = dyn_cast<MmaAsyncOp>(user);
    if (!reader)
      continue;
    WaitOp wait = getOnlyWait(reader);
    if (!wait)
      return failure();
    Block *home = getHomeBlock(reader);
    for (Operation *other : alloc.getSlot().getUsers()) {
      if (!isa<CopyOp, StoreFragOp>(other) ||
          !runsBefore(home, reader, other) || !runsBefore(home, other, wait))
        continue;
      InFlightDiagnostic diag = other->emitOpError(
          "writes a slot that a product in flight still reads");
      diag.attachNote(reader.getLoc()) << "issued here";
      return failure();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// W3: filled before awaited, not overwritten before released
//===----------------------------------------------------------------------===//

static LogicalResult verifyFilled(RingOp ring) {
  Operation *await = nullptr, *copy = nullptr;
  for (Operation *user : ring.getRing().getUsers()) {
    if (isa<AwaitOp>(user))
      await = user;
    if (isa<CopyAsyncOp>(user))
      copy = user;
  }
  if (await && !copy) {
    InFlightDiagnostic diag = await->emitOpError("waits for a ring that no "
                                                 "warp.copy_async fills");
    diag.attachNote(ring.getLoc()) << "the ring";
    return failure();
  }
  return success();
}

/// The induction variable if `block` is the body of a loop with step 1.
static Value getUnitInduction(Block *block) {
  auto loop = dyn_cast_or_null<scf::ForOp>(block->getParentOp());
  if (!loop || !matchPattern(loop.getStep(), m_One()))
    return {};
  return loop.getInductionVar();
}

/// Whether all warps meet at `op`.
static bool isBarrier(Operation &op) {
  return isa<AwaitOp, CopyOp, StoreFragOp>(op);
}

/// A barrier strictly between two operations of a block; null means its ends.
static bool hasBarrierBetween(Block *block, Operation *from, Operation *to) {
  Block::iterator it = from ? std::next(from->getIterator()) : block->begin();
  Block::iterator end = to ? to->getIterator() : block->end();
  return std::any_of(it, end, isBarrier);
}

/// An item awaited in a block that also copies into the ring must have been
/// copied before: earlier in the block or in an earlier iteration.
static LogicalResult verifyCopiedFirst(AwaitOp await,
                                       ArrayRef<CopyAsyncOp> copies) {
  RingItem item = RingItem::of(await.getItem());
  Value induction = getUnitInduction(await->getBlock());
  bool inLoop = induction && item.base == induction;
  CopyAsyncOp late;
  for (CopyAsyncOp copy : copies) {
    RingItem copied = RingItem::of(copy.getItem());
    if (copied.base != item.base)
      continue;
    bool sooner = inLoop && copied.offset > item.offset;
    if (sooner || (copied == item && copy->isBeforeInBlock(await)))
      return success();
    if (inLoop || copied == item)
      late = copy;
  }
  if (!late)
    return success();
  InFlightDiagnostic diag =
      await.emitOpError("waits for an item before it is copied");
  diag.attachNote(late.getLoc()) << "copied here";
  return failure();
}

/// In a loop over items: a copy of item i takes the slot of item i - depth.
/// That one is awaited `iterations` later than the copy (0: the same), and
/// between its release and the copy all warps must meet.
static LogicalResult verifyNotOverwritten(CopyAsyncOp copy, AwaitOp await,
                                          ReleaseOp release) {
  Block *block = copy->getBlock();
  Value induction = getUnitInduction(block);
  RingItem copied = RingItem::of(copy.getItem());
  RingItem awaited = RingItem::of(await.getItem());
  if (!induction || copied.base != induction || awaited.base != induction)
    return success();
  int64_t depth = copy.getRing().getType().getDepth();
  int64_t iterations = copied.offset - depth - awaited.offset;
  bool released =
      iterations < 0 || (iterations == 0 && release->isBeforeInBlock(copy));
  bool met = iterations == 0
                 ? released && hasBarrierBetween(block, release, copy)
                 : hasBarrierBetween(block, release, nullptr) ||
                       hasBarrierBetween(block, nullptr, copy);
  if (iterations < -1 || (released && met))
    return success();
  InFlightDiagnostic diag =
      released ? copy.emitOpError("overwrites a released slot that other warps "
                                  "may still read: no warp.await or warp.copy "
                                  "in between")
               : copy.emitOpError("overwrites a slot that is not yet released");
  diag.attachNote(release.getLoc()) << "released here";
  return failure();
}

static LogicalResult verifyRing(RingOp ring) {
  if (failed(verifyFilled(ring)))
    return failure();
  SmallVector<AwaitOp> awaits;
  SmallVector<CopyAsyncOp> copies;
  for (Operation *user : ring.getRing().getUsers()) {
    if (auto await = dyn_cast<AwaitOp>(user))
      awaits.push_back(await);
    else if (auto copy = dyn_cast<CopyAsyncOp>(user))
      copies.push_back(copy);
  }
  for (AwaitOp await : awaits) {
    SmallVector<CopyAsyncOp> beside =
        llvm::filter_to_vector(copies, [&](CopyAsyncOp copy) {
          return copy->getBlock() == await->getBlock();
        });
    if (failed(verifyCopiedFirst(await, beside)))
      return failure();
    ReleaseOp release = getOnlyRelease(await);
    for (CopyAsyncOp copy : beside)
      if (failed(verifyNotOverwritten(copy, await, release)))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// W4: placed memory fits
//===----------------------------------------------------------------------===//

namespace {
/// A placed slot or ring: bytes [begin, end).
struct Placement {
  Operation *op;
  int64_t begin, end;
};
} // namespace

static LogicalResult collectPlacements(KernelOp kernel,
                                       SmallVectorImpl<Placement> &placements) {
  for (Operation &op : *kernel.getBodyBlock()) {
    std::optional<int64_t> offset;
    int64_t bytes;
    if (auto alloc = dyn_cast<AllocOp>(op)) {
      offset = alloc.getOffset();
      bytes = alloc.getSlot().getType().getLayout().bytes();
    } else if (auto ring = dyn_cast<RingOp>(op)) {
      offset = ring.getOffset();
      RingType type = ring.getRing().getType();
      bytes = type.getDepth() * type.getSlotType().getLayout().bytes();
    } else {
      continue;
    }
    if (!offset) {
      InFlightDiagnostic diag =
          op.emitOpError("has no place in a kernel whose memory is placed");
      diag.attachNote(kernel.getLoc()) << "the kernel";
      return failure();
    }
    placements.push_back({&op, *offset, *offset + bytes});
  }
  return success();
}

static LogicalResult verifyPlaced(KernelOp kernel) {
  std::optional<int64_t> shared = kernel.getSharedBytes();
  if (!shared)
    return success();
  int64_t barriers = kernel.getBarrierBytes();
  SmallVector<Placement> placements;
  if (failed(collectPlacements(kernel, placements)))
    return failure();
  llvm::sort(placements, [](const Placement &a, const Placement &b) {
    return a.begin < b.begin;
  });
  for (auto [number, place] : llvm::enumerate(placements)) {
    if (place.end > *shared - barriers)
      return place.op->emitOpError("ends at byte ")
             << place.end << " of a kernel with " << *shared
             << " bytes of shared memory"
             << (barriers ? ", of which the last " + std::to_string(barriers) +
                                " are for barriers"
                          : "");
    if (number == 0 || placements[number - 1].end <= place.begin)
      continue;
    InFlightDiagnostic diag = place.op->emitOpError("overlaps memory up to "
                                                    "byte ")
                              << placements[number - 1].end
                              << ", starts at byte " << place.begin;
    diag.attachNote(placements[number - 1].op->getLoc()) << "placed here";
    return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//

LogicalResult attn::warp::verifyProtocol(KernelOp kernel) {
  if (failed(verifyRoles(kernel)) || failed(verifyPending(kernel)) ||
      failed(verifyVotes(kernel)) || failed(verifyTests(kernel)) ||
      failed(verifyStagedStores(kernel)))
    return failure();
  WalkResult walk = kernel.walk([](AwaitOp await) {
    return failed(verifyRelease(await)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  for (AllocOp alloc : kernel.getBodyBlock()->getOps<AllocOp>())
    if (failed(verifyNotCopiedTo(alloc)))
      return failure();
  if (kernel.hasRoles()) {
    if (failed(verifyRoleRings(kernel)))
      return failure();
  } else {
    for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>())
      if (failed(verifyRing(ring)))
        return failure();
  }
  return verifyPlaced(kernel);
}
