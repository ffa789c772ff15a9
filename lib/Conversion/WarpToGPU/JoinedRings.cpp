//===- JoinedRings.cpp - rings whose items come together --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JoinedRings.h"

#include "attn/Dialect/Warp/IR/Turns.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// The blocks that use a ring, through turns, and the item's number in each.
using UsedItems = llvm::SmallMapVector<Block *, Value, 4>;

struct RingUses {
  RingOp ring;
  SmallVector<Operation *> fills, awaits;
  UsedItems filled, awaited;
};
} // namespace

static bool add(UsedItems &items, Operation *op, Value item) {
  return items.insert({getHomeBlock(op), item}).second;
}

static SmallVector<Operation *> getReleases(AwaitOp await) {
  SmallVector<Operation *> releases;
  for (OpOperand *use : getUsesThroughTurns(await.getSlot()))
    if (isa<ReleaseOp>(use->getOwner()))
      releases.push_back(use->getOwner());
  return releases;
}

static bool isReleasedAtHome(AwaitOp await) {
  return llvm::all_of(getReleases(await), [&](Operation *release) {
    return getHomeBlock(release) == getHomeBlock(await);
  });
}

/// How a ring is used, if the rules allow it to be joined with others.
static std::optional<RingUses> matchUses(RingOp ring) {
  RingUses uses = {ring, {}, {}, {}, {}};
  for (Operation *user : ring.getRing().getUsers()) {
    if (auto copy = dyn_cast<CopyAsyncOp>(user)) {
      if (copy.getCondition() || !add(uses.filled, copy, copy.getItem()))
        return std::nullopt;
      uses.fills.push_back(copy);
    } else if (auto await = dyn_cast<AwaitOp>(user)) {
      if (!isReleasedAtHome(await) ||
          !add(uses.awaited, await, await.getItem()))
        return std::nullopt;
      uses.awaits.push_back(await);
    } else if (!isa<TestOp>(user)) {
      return std::nullopt;
    }
  }
  return uses;
}

static bool haveSameItems(const UsedItems &a, const UsedItems &b) {
  return a.size() == b.size() && llvm::all_of(a, [&](const auto &use) {
           auto *found = b.find(use.first);
           return found != b.end() && found->second == use.second;
         });
}

static bool comeTogether(const RingUses &a, const RingUses &b) {
  RingOp first = a.ring, second = b.ring;
  return first.getRing().getType().getDepth() ==
             second.getRing().getType().getDepth() &&
         getFiller(first.getRing()) == getFiller(second.getRing()) &&
         getDrainers(first.getRing()) == getDrainers(second.getRing()) &&
         haveSameItems(a.filled, b.filled) &&
         haveSameItems(a.awaited, b.awaited);
}

static bool usesItems(Operation *op) {
  WalkResult walk = op->walk([](Operation *inner) {
    return isa<CopyAsyncOp, SendOp, StoreFragOp, AwaitOp, ReceiveOp>(inner)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

/// Whether the fills of a group in each block follow each other.
static bool fillTogether(ArrayRef<const RingUses *> group) {
  llvm::DenseSet<Operation *> fills;
  for (const RingUses *uses : group)
    fills.insert(uses->fills.begin(), uses->fills.end());
  for (Operation *fill : group.front()->fills) {
    size_t numLeft = group.size();
    bool isInside = false;
    for (Operation &op : *fill->getBlock()) {
      if (fills.contains(&op)) {
        isInside = true;
        --numLeft;
      } else if (isInside && numLeft != 0 && usesItems(&op)) {
        return false;
      }
    }
  }
  return true;
}

JoinedRings attn::warp::findJoinedRings(KernelOp kernel) {
  SmallVector<RingUses, 8> all;
  for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>())
    if (std::optional<RingUses> uses = matchUses(ring))
      all.push_back(std::move(*uses));
  JoinedRings joined;
  llvm::DenseSet<Operation *> members, uses, releases;
  for (auto [number, first] : llvm::enumerate(all)) {
    if (members.contains(first.ring))
      continue;
    SmallVector<const RingUses *> group = {&first};
    for (const RingUses &other : ArrayRef(all).drop_front(number + 1)) {
      if (members.contains(other.ring) || !comeTogether(first, other))
        continue;
      group.push_back(&other);
      if (!fillTogether(group))
        group.pop_back();
    }
    if (group.size() == 1)
      continue;
    SmallVector<RingOp> rings;
    for (const RingUses *user : group) {
      rings.push_back(user->ring);
      members.insert(user->ring);
      uses.insert(user->fills.begin(), user->fills.end());
      uses.insert(user->awaits.begin(), user->awaits.end());
      for (Operation *await : user->awaits)
        releases.insert_range(getReleases(cast<AwaitOp>(await)));
    }
    // The first in each block waits, the last release there arrives.
    llvm::DenseSet<Block *> waited;
    llvm::DenseMap<Block *, Operation *> last;
    kernel.walk([&](Operation *op) {
      if (uses.contains(op) && !waited.insert(getHomeBlock(op)).second)
        joined.followers.insert(op);
      if (releases.contains(op))
        last[getHomeBlock(op)] = op;
    });
    for (Operation *release : releases)
      joined.arrivals[release] = last.at(getHomeBlock(release));
    uses.clear();
    releases.clear();
    joined.groups.push_back(std::move(rings));
  }
  return joined;
}
