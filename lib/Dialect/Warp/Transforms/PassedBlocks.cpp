//===- PassedBlocks.cpp - items that other groups use -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups that go through fewer blocks than the tile (`warp.group_bounds`) take
// the items of the others from the rings and give them back, in loops before
// their own blocks and after them.
//
//===----------------------------------------------------------------------===//

#include "PassedBlocks.h"

#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn::warp;

/// A loop that takes an item of each ring and gives it back.
static void passOver(RewriterBase &rewriter, Location loc,
                     ArrayRef<Value> rings, Value from, Value to) {
  OpBuilder::InsertionGuard guard(rewriter);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  auto loop = scf::ForOp::create(rewriter, loc, from, to, one);
  rewriter.setInsertionPointToStart(loop.getBody());
  for (Value ring : rings) {
    // `warp-specialize` numbers the items.
    Value number = arith::ConstantIndexOp::create(rewriter, loc, 0);
    SlotType slot = cast<RingType>(ring.getType()).getSlotType();
    auto await = AwaitOp::create(rewriter, loc, slot, ring, number);
    ReleaseOp::create(rewriter, loc, await.getSlot());
  }
}

/// The rings of which every loop over blocks uses an item for each block, if
/// all of them have room for the item that the producer is ahead.
static FailureOr<SetVector<Value>> getRingsOfBlocks(Block *block) {
  SetVector<Value> rings;
  for (auto loop : block->getOps<scf::ForOp>()) {
    llvm::MapVector<Value, int64_t> numUses;
    for (auto await : loop.getBody()->getOps<AwaitOp>())
      ++numUses[await.getRing()];
    if (numUses.empty())
      continue;
    if (rings.empty())
      for (auto [ring, number] : numUses)
        rings.insert(ring);
    std::optional<int64_t> blocks = getConstantIntValue(loop.getStep());
    bool isSame = numUses.size() == rings.size() &&
                  llvm::all_of(numUses, [&](const auto &use) {
                    return rings.contains(use.first) && use.second == blocks &&
                           cast<RingType>(use.first.getType()).getDepth() > 1;
                  });
    if (!isSame)
      return failure();
  }
  if (rings.empty())
    return failure();
  return rings;
}

void attn::warp::passOverBlocks(RewriterBase &rewriter, RoleOp consumer,
                                std::string &reason) {
  SmallVector<GroupBoundsOp> all;
  consumer.walk([&](GroupBoundsOp bounds) { all.push_back(bounds); });
  for (GroupBoundsOp bounds : all) {
    Block *block = bounds->getBlock();
    FailureOr<SetVector<Value>> rings = getRingsOfBlocks(block);
    auto giveUp = [&](StringRef why) {
      reason = ("all groups go through all blocks: " + why).str();
      rewriter.replaceOp(bounds, bounds.getBounds());
    };
    if (failed(rings) || all.size() > 1) {
      giveUp(failed(rings) ? "a ring has one slot, or loops use other rings"
                           : "more than one chain of loops has own bounds");
      continue;
    }
    Operation *first = nullptr, *last = nullptr;
    for (Operation &op : *block)
      op.walk([&](Operation *inner) {
        auto release = dyn_cast<ReleaseOp>(inner);
        Operation *use = release ? release.getSlot().getDefiningOp() : inner;
        auto await = dyn_cast_or_null<AwaitOp>(use);
        if (!await || !rings->contains(await.getRing()))
          return;
        // Before the number that copy and await have in common.
        Operation *number = await.getItem().getDefiningOp();
        if (!last && number)
          first = block->findAncestorOpInBlock(*number);
        last = &op;
      });
    // There is no place before a number that is not computed here.
    if (!first) {
      giveUp("the number of the first item is computed elsewhere");
      continue;
    }
    Value ownFirst = bounds.getResults().front();
    if (bounds.getOwnBounds().front() != bounds.getLo() &&
        !ownFirst.use_empty()) {
      rewriter.setInsertionPoint(first);
      passOver(rewriter, bounds.getLoc(), rings->getArrayRef(), bounds.getLo(),
               ownFirst);
    }
    Value ownEnd = bounds.getResults().back();
    if (bounds.getOwnBounds().back() != bounds.getHi() && !ownEnd.use_empty()) {
      rewriter.setInsertionPointAfter(last);
      passOver(rewriter, bounds.getLoc(), rings->getArrayRef(), ownEnd,
               bounds.getHi());
    }
  }
}

/// The block after the first, if the loops start there because the first one is
/// begun before them, and that is known before `bounds`.
static Value getSecond(GroupBoundsOp bounds) {
  Block *block = bounds->getBlock();
  for (auto loop : block->getOps<scf::ForOp>()) {
    auto inside = loop.getBody()->getOps<AwaitOp>();
    if (inside.empty() || getPassedEnd(loop))
      continue;
    auto isBeside = [&](AwaitOp await) {
      return await.getRing() == (*inside.begin()).getRing();
    };
    Value start = loop.getLowerBound();
    Operation *def = start.getDefiningOp();
    bool isBefore =
        !def || def->getBlock() != block || def->isBeforeInBlock(bounds);
    return isBefore && llvm::count_if(block->getOps<AwaitOp>(), isBeside) == 1
               ? start
               : Value();
  }
  return {};
}

/// The bounds of the loops that a group goes through, in order and within [lo,
/// hi).
static SmallVector<Value> limit(OpBuilder &builder, GroupBoundsOp bounds,
                                ValueRange own) {
  Location loc = bounds.getLoc();
  Value lo = bounds.getLo(), hi = bounds.getHi();
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  auto min = [&](Value a, Value b) {
    return builder.createOrFold<arith::MinSIOp>(loc, a, b);
  };
  auto max = [&](Value a, Value b) {
    return builder.createOrFold<arith::MaxSIOp>(loc, a, b);
  };
  Value first = lo, end = hi;
  if (own.front() != lo) {
    Value last = max(arith::SubIOp::create(builder, loc, hi, one), lo);
    first = min(max(own.front(), lo), last);
  }
  if (own.back() != hi) {
    Value second = getSecond(bounds);
    if (!second)
      second = builder.createOrFold<arith::AddIOp>(loc, first, one);
    end = min(max(own.back(), second), hi);
  }
  SmallVector<Value> limited = {first};
  for (Value bound : own.drop_front().drop_back())
    limited.push_back(min(max(bound, limited.back()), end));
  limited.push_back(end);
  return limited;
}

void attn::warp::expandGroupBounds(RewriterBase &rewriter, RoleOp consumer) {
  OpBuilder::InsertionGuard guard(rewriter);
  consumer.walk([&](GroupBoundsOp bounds) {
    rewriter.setInsertionPoint(bounds);
    Location loc = bounds.getLoc();
    // In 32 bits, in which what follows from it then fits, too.
    Value rows =
        arith::ConstantIntOp::create(rewriter, loc, bounds.getRows(), 32);
    Value group = arith::IndexCastOp::create(
        rewriter, loc, rewriter.getI32Type(), consumer.getGroup());
    Value row = arith::IndexCastOp::create(
        rewriter, loc, rewriter.getIndexType(),
        arith::MulIOp::create(rewriter, loc, group, rows));
    Operation *own = bounds.getOwn().front().getTerminator();
    rewriter.inlineBlockBefore(&bounds.getOwn().front(), bounds, row);
    SmallVector<Value> limited = limit(rewriter, bounds, own->getOperands());
    rewriter.eraseOp(own);
    rewriter.replaceOp(bounds, limited);
  });
}
