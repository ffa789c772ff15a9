//===- PendingCopies.cpp - how many copies may be in flight ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/PendingCopies.h"

#include "attn/Dialect/Warp/IR/RingItem.h"
#include "attn/Support/BlockLoops.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// Walks backwards from an await to the copies of its item.
class BackwardScan {
public:
  BackwardScan(Value ring, int64_t depth) : ring(ring), depth(depth) {}

  /// Copies met between the end of `block`, or the front of `before`, and the
  /// copy of `item`, on the way with the fewest. Nothing if some way meets no
  /// such copy.
  std::optional<int64_t> scan(Block *block, Operation *before, RingItem item,
                              int64_t turns);

private:
  std::optional<int64_t> scanFront(Block *block, RingItem item, int64_t turns);
  std::optional<int64_t> scanBehind(scf::ForOp loop, RingItem item,
                                    int64_t turns);

  Value ring;
  int64_t depth;
};
} // namespace

/// The smaller of two ways; both must arrive.
static std::optional<int64_t> join(std::optional<int64_t> a,
                                   std::optional<int64_t> b) {
  if (!a || !b)
    return std::nullopt;
  return std::min(*a, *b);
}

static std::optional<int64_t> plus(std::optional<int64_t> a, int64_t b) {
  return a ? std::optional<int64_t>(*a + b) : std::nullopt;
}

/// After a loop of a chain, looking for an item counted from its end.
std::optional<int64_t> BackwardScan::scanBehind(scf::ForOp loop, RingItem item,
                                                int64_t turns) {
  RingItem inLast = {loop.getInductionVar(), item.offset + 1};
  RingItem inFront = RingItem::of(loop.getLowerBound());
  inFront.offset += item.offset;
  return join(scan(loop.getBody(), nullptr, inLast, turns),
              scan(loop->getBlock(), loop, inFront, turns));
}

/// At the front of a block: the previous iteration or the front of the loop.
std::optional<int64_t> BackwardScan::scanFront(Block *block, RingItem item,
                                               int64_t turns) {
  auto loop = dyn_cast_or_null<scf::ForOp>(block->getParentOp());
  if (!loop || !hasUnitStep(loop) || item.base != loop.getInductionVar())
    return std::nullopt;
  RingItem inFront = RingItem::of(loop.getLowerBound());
  inFront.offset += item.offset;
  std::optional<int64_t> front = scan(loop->getBlock(), loop, inFront, turns);
  // An item of a ring is copied at most `depth` items ahead, so the way through
  // more iterations finds nothing new.
  if (turns == depth + 1)
    return front;
  RingItem inPrevious = {item.base, item.offset + 1};
  return join(front, scan(block, nullptr, inPrevious, turns + 1));
}

std::optional<int64_t> BackwardScan::scan(Block *block, Operation *before,
                                          RingItem item, int64_t turns) {
  int64_t count = 0;
  Block::iterator it = before ? before->getIterator() : block->end();
  while (it != block->begin()) {
    Operation &op = *--it;
    if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
      if (copy.getRing() == ring && RingItem::of(copy.getItem()) == item)
        return count;
      ++count;
      continue;
    }
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop || !hasUnitStep(loop))
      continue;
    // The loop of a chain: our item is counted from its upper bound.
    RingItem end = RingItem::of(loop.getUpperBound());
    if (end.base != item.base)
      continue;
    return plus(
        scanBehind(loop, {item.base, item.offset - end.offset}, /*turns=*/0),
        count);
  }
  return plus(scanFront(block, item, turns), count);
}

FailureOr<int64_t> attn::warp::countYoungerCopies(AwaitOp await) {
  if (llvm::none_of(await.getRing().getUsers(),
                    [](Operation *user) { return isa<CopyAsyncOp>(user); }))
    return failure();
  BackwardScan scan(await.getRing(), await.getRing().getType().getDepth());
  std::optional<int64_t> count = scan.scan(
      await->getBlock(), await, RingItem::of(await.getItem()), /*turns=*/0);
  return count.value_or(0);
}
