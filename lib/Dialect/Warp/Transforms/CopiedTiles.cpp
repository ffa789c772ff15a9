//===- CopiedTiles.cpp - copies and who reads them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopiedTiles.h"

#include "attn/Dialect/Warp/IR/Atoms.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::warp;

static constexpr int64_t maxBlockWarps = 32;

namespace {
/// Finds the copies of a kernel; says what is in the way.
class CopyMatcher {
public:
  CopyMatcher(KernelOp kernel, std::string &reason)
      : kernel(kernel), reason(reason) {}

  FailureOr<SmallVector<CopiedTile>> match();

private:
  LogicalResult give(const Twine &text) {
    reason = text.str();
    return failure();
  }
  LogicalResult matchCopy(CopyOp copy, CopiedTile &tile);
  LogicalResult matchReaders(CopiedTile &tile);

  KernelOp kernel;
  std::string &reason;
};
} // namespace

/// The copy of the same slot that follows in the same block, if any.
static CopyOp getNextCopy(CopyOp copy) {
  CopyOp next;
  for (Operation *user : copy.getSlot().getUsers()) {
    auto other = dyn_cast<CopyOp>(user);
    if (!other || other == copy || other->getBlock() != copy->getBlock() ||
        !copy->isBeforeInBlock(other))
      continue;
    if (!next || other->isBeforeInBlock(next))
      next = other;
  }
  return next;
}

LogicalResult CopyMatcher::matchReaders(CopiedTile &tile) {
  Block *block = tile.copy->getBlock();
  CopyOp next = getNextCopy(tile.copy);
  for (Operation *user : tile.alloc.getSlot().getUsers()) {
    Operation *reader = block->findAncestorOpInBlock(*user);
    if (isa<CopyOp>(user) || !reader || !tile.copy->isBeforeInBlock(reader) ||
        (next && !reader->isBeforeInBlock(next)))
      continue;
    tile.readers.push_back(user);
    tile.isLocal &= reader == user;
    if (!tile.first || reader->isBeforeInBlock(tile.first)) {
      tile.first = reader;
      auto mma = dyn_cast<MmaOp>(user);
      tile.isTransposed =
          mma && mma.getTransposeB() && mma.getB() == tile.alloc.getSlot();
    }
    if (!tile.last || tile.last->isBeforeInBlock(reader))
      tile.last = reader;
  }
  if (!tile.first)
    return give("a copied tile is not read in the block that copies it");
  return success();
}

LogicalResult CopyMatcher::matchCopy(CopyOp copy, CopiedTile &tile) {
  tile.copy = copy;
  tile.alloc = copy.getSlot().getDefiningOp<AllocOp>();
  if (!tile.alloc)
    return give("a slot is no warp.alloc");
  if (std::string obstacle =
          findTMAObstacle(cast<MemRefType>(copy.getView().getType()),
                          copy.getSlot().getType(), copy.getRowsPerBox());
      !obstacle.empty())
    return give(obstacle);
  Operation *parent = copy->getParentOp();
  while (isa<scf::ForOp, scf::WhileOp>(parent))
    parent = parent->getParentOp();
  if (parent != kernel)
    return give("a copy stands under something else than loops");
  if (failed(matchReaders(tile)))
    return failure();
  return success();
}

FailureOr<SmallVector<CopiedTile>> CopyMatcher::match() {
  assert(!kernel.hasRoles() && kernel.getBodyBlock()->getOps<RingOp>().empty());
  if (kernel.getWarps() % 4 != 0 ||
      kernel.getWarps() + attn::producerWarps > maxBlockWarps) {
    reason = "the warps do not form groups of 4, or leave no room for another";
    return failure();
  }
  SmallVector<CopyOp> copies;
  kernel.walk<WalkOrder::PreOrder>(
      [&](CopyOp copy) { copies.push_back(copy); });
  if (copies.empty()) {
    reason = "no tile is copied";
    return failure();
  }
  SmallVector<CopiedTile> tiles;
  size_t numReads = 0;
  SetVector<Operation *> allocs;
  for (CopyOp copy : copies) {
    if (failed(matchCopy(copy, tiles.emplace_back())))
      return failure();
    numReads += tiles.back().readers.size();
    allocs.insert(tiles.back().alloc);
  }
  size_t numUses = 0;
  for (Operation *alloc : allocs)
    numUses += llvm::range_size(alloc->getUses());
  if (numUses != numReads + copies.size()) {
    reason = "a slot is read where it was not copied";
    return failure();
  }
  return tiles;
}

FailureOr<SmallVector<CopiedTile>>
attn::warp::matchCopiedTiles(KernelOp kernel, std::string &reason) {
  return CopyMatcher(kernel, reason).match();
}
