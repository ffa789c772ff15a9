//===- Buffer.cpp - copies ahead of their use -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chain of loops covers the blocks [lo, hi) of the keys, each loop [a, b)
// with step 1 where the one before ends. Every body copies the same tiles, ring
// 0, ring 1, … in the order of use. Item n of a ring is the tile of block n.
//
// A copy into ring r may start when all warps have passed the release of what
// its slot held before, that is after an await that follows the release. The
// schedules, D the depth, n the block of the iteration:
//
//   own       after the await of ring r: item n + D - 1. One tile of every
//   ring
//             is in flight while another is used; needs D >= 2.
//   early     after the first await that follows the release, that of the next
//             ring: item n + D (for the last ring the next iteration's first
//             await: item n + D - 1 seen from there). An await stands as early
//             as it can, right after the release of the ring before. This
//             works with D = 1, where each copy runs beside the use of the
//             other tile.
//   together  the awaits of all rings first, one after the other, then all
//             copies of item n + D - 1: one meeting of the warps per iteration;
//             needs D >= 2.
//
// The prologue issues what the iterations lo - D … lo - 1 would have issued, as
// far as it exists, in the same order: so the count of copies between a copy
// and its await is the same in every iteration (PendingCopies.h).
//
//===----------------------------------------------------------------------===//

#include "LoopChain.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPBUFFER
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

namespace {
/// A copy of item n + distance, seen from iteration n.
struct CopyAhead {
  size_t ring;
  int64_t distance;
};
/// The copies after the await of each ring.
using CopiesAhead = SmallVector<SmallVector<CopyAhead>>;
} // namespace

static CopiesAhead scheduleCopies(BufferSchedule schedule, size_t numRings,
                                  int64_t depth) {
  CopiesAhead copies(numRings);
  for (size_t ring = 0; ring < numRings; ++ring) {
    if (schedule == BufferSchedule::Own)
      copies[ring].push_back({ring, depth - 1});
    else if (schedule == BufferSchedule::Together)
      copies.back().push_back({ring, depth - 1});
    else if (ring == 0)
      copies[ring].push_back({numRings - 1, depth - 1});
    else
      copies[ring].push_back({ring - 1, depth});
  }
  return copies;
}

//===----------------------------------------------------------------------===//
// Build
//===----------------------------------------------------------------------===//

namespace {
class ChainBuffering {
public:
  ChainBuffering(RewriterBase &rewriter, LoopChain &chain, int64_t depth,
                 BufferSchedule schedule)
      : rewriter(rewriter), chain(chain), depth(depth), schedule(schedule),
        copies(scheduleCopies(schedule, chain.tiles.size(), depth)) {}

  void run();

private:
  Value createRing(AllocOp alloc, int64_t ringDepth);
  Value createItem(Location loc, Value base, int64_t distance);
  void createCopy(size_t tile, size_t loop, Value base, int64_t distance);
  void createPrologue();
  void bufferEntry(EntryTile &entry);
  void bufferBody(size_t loop);
  void awaitTile(size_t tile, size_t loop);

  RewriterBase &rewriter;
  LoopChain &chain;
  int64_t depth;
  BufferSchedule schedule;
  CopiesAhead copies;
  SmallVector<Value> rings;
};
} // namespace

Value ChainBuffering::createRing(AllocOp alloc, int64_t ringDepth) {
  SlotType slot = alloc.getSlot().getType();
  rewriter.setInsertionPoint(alloc);
  return RingOp::create(rewriter, alloc.getLoc(),
                        RingType::get(slot.getContext(), ringDepth,
                                      slot.getShape(), slot.getElementType(),
                                      slot.getPanelBytes()));
}

Value ChainBuffering::createItem(Location loc, Value base, int64_t distance) {
  if (distance == 0)
    return base;
  Value constant = arith::ConstantIndexOp::create(rewriter, loc, distance);
  return arith::AddIOp::create(rewriter, loc, base, constant);
}

/// Starts the copy of item base + distance, if there is such a block. `loop` is
/// where the computation of the box is taken from.
void ChainBuffering::createCopy(size_t tile, size_t loop, Value base,
                                int64_t distance) {
  CopyOp copy = chain.tiles[tile].copies[loop];
  Location loc = copy.getLoc();
  Value item = createItem(loc, base, distance);
  // The block of the iteration itself exists.
  bool isOwnBlock =
      distance == 0 && base == chain.loops[loop].getInductionVar();
  Value exists;
  if (!isOwnBlock)
    exists = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt,
                                   item, chain.getUpperBound());
  IRMapping mapping;
  mapping.map(chain.loops[loop].getInductionVar(), item);
  for (Operation *op : chain.tiles[tile].slices[loop])
    rewriter.clone(*op, mapping);
  auto indices = llvm::map_to_vector(copy.getIndices(), [&](Value index) {
    return mapping.lookupOrDefault(index);
  });
  CopyAsyncOp::create(rewriter, loc, copy.getView(), indices, rings[tile], item,
                      exists, CopyAtom::CpAsync, copy.getBoxes());
}

void ChainBuffering::createPrologue() {
  rewriter.setInsertionPoint(chain.loops.front());
  for (int64_t iteration = -depth; iteration < 0; ++iteration)
    for (ArrayRef<CopyAhead> behindAwait : copies)
      for (CopyAhead copy : behindAwait)
        if (iteration + copy.distance >= 0)
          createCopy(copy.ring, 0, chain.getLowerBound(),
                     iteration + copy.distance);
}

/// Awaits the tile at the insertion point, starts the copies that belong there
/// and releases it after its last reader.
void ChainBuffering::awaitTile(size_t tile, size_t loop) {
  BufferedTile &buffered = chain.tiles[tile];
  Location loc = buffered.copies[loop].getLoc();
  Value induction = chain.loops[loop].getInductionVar();
  Value slot =
      AwaitOp::create(rewriter, loc, buffered.alloc.getSlot().getType(),
                      rings[tile], induction);
  for (CopyAhead copy : copies[tile])
    createCopy(copy.ring, loop, induction, copy.distance);
  rewriter.replaceUsesWithIf(
      buffered.alloc.getSlot(), slot, [&](OpOperand &use) {
        return chain.loops[loop]->isProperAncestor(use.getOwner()) &&
               !isa<CopyOp>(use.getOwner());
      });
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfter(buffered.lastReaders[loop]);
  ReleaseOp::create(rewriter, loc, slot);
}

void ChainBuffering::bufferBody(size_t loop) {
  for (size_t tile = 0; tile < chain.tiles.size(); ++tile) {
    if (tile == 0 || schedule == BufferSchedule::Own)
      rewriter.setInsertionPoint(chain.tiles[tile].copies[loop]);
    else if (schedule == BufferSchedule::Early)
      // After the release of the tile before, which stands there.
      rewriter.setInsertionPointAfter(
          chain.tiles[tile - 1].lastReaders[loop]->getNextNode());
    awaitTile(tile, loop);
  }
}

/// The copy starts where it stood; its reader waits after the prologue.
void ChainBuffering::bufferEntry(EntryTile &entry) {
  Value ring = createRing(entry.alloc, 1);
  Location loc = entry.copy.getLoc();
  rewriter.setInsertionPoint(entry.copy);
  Value first = arith::ConstantIndexOp::create(rewriter, loc, 0);
  CopyAsyncOp::create(
      rewriter, loc, entry.copy.getView(), entry.copy.getIndices(), ring, first,
      /*condition=*/Value(), CopyAtom::CpAsync, entry.copy.getBoxes());
  rewriter.eraseOp(entry.copy);

  scf::ForOp firstLoop = chain.loops.front();
  rewriter.setInsertionPoint(firstLoop);
  auto await = AwaitOp::create(rewriter, loc, entry.alloc.getSlot().getType(),
                               ring, first);
  Operation *last = await;
  for (LoadFragOp load : entry.loads) {
    rewriter.moveOpAfter(load, last);
    last = load;
  }
  for (Operation *user : entry.alloc.getSlot().getUsers()) {
    Operation *reader = firstLoop->getBlock()->findAncestorOpInBlock(*user);
    if (last->isBeforeInBlock(reader))
      last = reader;
  }
  rewriter.replaceAllUsesWith(entry.alloc.getSlot(), await.getSlot());
  rewriter.setInsertionPointAfter(last);
  ReleaseOp::create(rewriter, loc, await.getSlot());
  rewriter.eraseOp(entry.alloc);
}

void ChainBuffering::run() {
  for (BufferedTile &tile : chain.tiles)
    rings.push_back(createRing(tile.alloc, depth));
  createPrologue();
  for (EntryTile &entry : chain.entries)
    bufferEntry(entry);
  for (size_t loop = 0; loop < chain.loops.size(); ++loop)
    bufferBody(loop);
  for (BufferedTile &tile : chain.tiles) {
    for (CopyOp copy : tile.copies)
      rewriter.eraseOp(copy);
    rewriter.eraseOp(tile.alloc);
  }
}

/// `early` moves awaits up to the release before: the readers must keep the
/// order of the rings.
static bool canAwaitEarly(LoopChain &chain) {
  for (size_t tile = 1; tile < chain.tiles.size(); ++tile)
    for (size_t loop = 0; loop < chain.loops.size(); ++loop) {
      Operation *before = chain.tiles[tile - 1].lastReaders[loop];
      Operation *copy = chain.tiles[tile].copies[loop];
      if (!before->isBeforeInBlock(copy))
        return false;
    }
  return true;
}

/// Where each await of a step is a meeting of the warps, more of them cost more
/// than copies gain that start a little later.
static constexpr size_t mostOwnRings = 2;

FailureOr<int64_t> attn::warp::bufferLoops(RewriterBase &rewriter,
                                           KernelOp kernel, int64_t depth,
                                           BufferSchedule schedule,
                                           std::string &reason) {
  assert(depth >= 0 && "slots, or 0 for the stages of the kernel");
  FailureOr<LoopChain> chain = matchLoopChain(kernel, reason);
  if (failed(chain))
    return failure();
  depth = getRingDepth(kernel, depth);
  if (schedule == BufferSchedule::Auto)
    schedule = depth == 1                            ? BufferSchedule::Early
               : chain->tiles.size() <= mostOwnRings ? BufferSchedule::Own
                                                     : BufferSchedule::Together;
  bool needsTwo = schedule != BufferSchedule::Early || chain->tiles.size() == 1;
  if (depth == 1 && needsTwo) {
    reason = "the schedule needs a depth of at least 2";
    return failure();
  }
  if (schedule == BufferSchedule::Early && !canAwaitEarly(*chain)) {
    reason = "a tile is copied before the one before is used up";
    return failure();
  }
  ChainBuffering(rewriter, *chain, depth, schedule).run();
  return int64_t(chain->tiles.size());
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct WarpBuffer final
    : attn::SchedulePass<attn::warp::impl::WarpBufferBase<WarpBuffer>, KernelOp,
                         WarpForm::Resident> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("rings", bufferLoops(rewriter, kernel, depth, schedule, reason),
           reason);
  }
};
} // namespace
