//===- ListBlocks.cpp - loops over lists of blocks ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops count visits: `warp-buffer` and its like number what they copy by
// them. A visit after the last one, which a copy ahead may ask for, reads the
// entry after the list: a block after all others. So does, where the list is
// empty, the visit before the first one, which `tile-overlap-products`
// asks for. It comes to that only where nobody makes use of it that the block
// is idle.
//
//===----------------------------------------------------------------------===//

#include "CellBounds.h"
#include "DeadOps.h"
#include "EmptyBlocks.h"
#include "MaskProgram.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/BlockMap.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILELISTBLOCKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// An i32 in memory as an index.
static Value loadIndex(OpBuilder &b, Location loc, Value memory,
                       ValueRange indices) {
  Value value = memref::LoadOp::create(b, loc, memory, indices);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

/// The block of a visit, from the list.
static void mapVisits(RewriterBase &rewriter, scf::ForOp segment,
                      const BlockMap &map, Value numVisits) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(segment.getBody());
  Location loc = segment.getLoc();
  Value visit = segment.getInductionVar();
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  auto first = arith::MaxSIOp::create(rewriter, loc, visit, zero);
  auto entry = arith::MinSIOp::create(rewriter, loc, first, numVisits);
  Value block =
      loadIndex(rewriter, loc, map.lists, map.indicesOf(rewriter, entry));
  rewriter.replaceAllUsesExcept(visit, block, first);
}

/// Leaves of the mask what the limits say.
static void limitKeys(RewriterBase &rewriter, ScoresOp op,
                      ArrayRef<Value> limits) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op->getParentOp());
  Value below;
  for (Value limit : limits)
    below = below ? arith::MinSIOp::create(rewriter, op.getLoc(), below, limit)
                        .getResult()
                  : limit;
  rewriter.modifyOpInPlace(op, [&] {
    op.getBelowMutable().clear();
    if (below)
      op.getBelowMutable().assign(below);
  });
  if (op.hasMask())
    rewriter.eraseBlock(&op.getMask().front());
}

/// Whether bounds on both sides are known of the blocks of a tile. A tile of
/// keys has all its queries in there (their sequence, a window), for many keys
/// few: to evaluate the mask for all pairs would take longer than to visit some
/// blocks in vain.
static bool hasRange(const VisitSet &set) {
  return llvm::all_of(set.visited, [](const BlockInterval &interval) {
    return !interval.lowerBounds().empty() && !interval.upperBounds().empty();
  });
}

FailureOr<scf::ForOp> attn::tile::listBlocks(RewriterBase &rewriter,
                                             scf::ForOp loop,
                                             std::string &reason) {
  auto grid = loop->getParentOfType<KernelOp>();
  FailureOr<ScoresOp> scores = findMaskedScores(loop);
  if (!grid || failed(scores)) {
    reason = "not one tile.scores that hides keys in a kernel";
    return failure();
  }
  MaskProblem problem = readMask(*scores, loop);
  std::optional<MaskPositions> queries =
      MaskPositions::match(scores->getQueries());
  std::optional<MaskPositions> keys = MaskPositions::match(scores->getKeys());
  if (!queries || !keys) {
    reason = "the scores are not those of a block of queries and of keys";
    return failure();
  }
  bool isTransposed = queries->axis == 1;
  MaskCell block = {queries->count, keys->count};
  VisitSet set = computeVisitSet(problem.problem);
  if (!problem.hasOpaque &&
      !isLooselyBounded(rewriter, *scores, block, set, isTransposed)) {
    reason = "bounds of rows and keys say which blocks the mask leaves";
    return failure();
  }
  if (isTransposed && hasRange(set) && !CellBounds(rewriter, *scores, block)) {
    reason = "bounds of rows and keys leave ranges of queries";
    return failure();
  }
  FailureOr<BlockMap> map =
      buildBlockMap(rewriter, grid, loop, *scores, reason);
  if (failed(map))
    return failure();
  if (map->limits) {
    limitKeys(rewriter, *scores, *map->limits);
    eraseDeadOps(rewriter, grid.getBody());
  }
  separateEmptyBlocks(rewriter, grid, loop, *map);

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  Location loc = loop.getLoc();
  auto count = [&](int64_t number) {
    Value which = arith::ConstantIndexOp::create(rewriter, loc, number);
    return loadIndex(rewriter, loc, map->counts,
                     map->indicesOf(rewriter, which));
  };
  Value numMasked = count(0);
  Value numVisits = arith::AddIOp::create(rewriter, loc, numMasked, count(1));
  auto masked = cast<scf::ForOp>(rewriter.clone(*loop));
  masked.setUpperBound(numMasked);
  auto unmasked = cast<scf::ForOp>(rewriter.clone(*loop));
  unmasked.setLowerBound(numMasked);
  unmasked.setUpperBound(numVisits);
  unmasked.getInitArgsMutable().assign(masked.getResults());
  dropMask(rewriter, unmasked);
  mapVisits(rewriter, masked, *map, numVisits);
  mapVisits(rewriter, unmasked, *map, numVisits);
  rewriter.replaceOp(loop, unmasked.getResults());
  return unmasked;
}

namespace {
struct TileListBlocks final
    : attn::SchedulePass<attn::tile::impl::TileListBlocksBase<TileListBlocks>,
                         scf::ForOp, TileForm::Stepped, attn::CleanUp::CSE> {
  using Base::Base;

  bool isWanted(scf::ForOp loop) override { return isLoopOverBlocks(loop); }

  void transform(RewriterBase &rewriter, scf::ForOp loop) override {
    std::string reason;
    if (failed(listBlocks(rewriter, loop, reason)))
      return missed(reason);
    passed() << "the mask is evaluated once per block";
  }
};
} // namespace
