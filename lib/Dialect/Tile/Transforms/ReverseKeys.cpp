//===- ReverseKeys.cpp - key blocks from the last to the first ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over the key blocks [b0, b1), [b1, b2), … [b', b) become loops over
// visits in the other order,
//
//   [b0, b0 + b - b'), …, [b0 + b - b1, b)     n = b0 + b - 1 - visit
//
// again each from where the one before ends. Where there is no block at all, or
// a visit after the last is prepared, n is b0 and no less.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/ScoreTrend.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEREVERSEKEYS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
/// The blocks [lo, hi) that the tile goes through, and the part of them that a
/// part of it does.
struct VisitedRange {
  VisitedRange(Value first, Value end) : lo(first), hi(end) {
    if (auto group = first.getDefiningOp<GroupBoundsOp>()) {
      lowest = group;
      lo = group.getLo();
    }
    if (auto group = end.getDefiningOp<GroupBoundsOp>()) {
      highest = group;
      hi = group.getHi();
    }
  }

  /// The first visit in the other order, and the one after the last.
  std::pair<Value, Value> reverse(RewriterBase &rewriter, Location loc,
                                  Value sum) {
    GroupBoundsOp group = lowest ? lowest : highest;
    if (!group)
      return {lo, hi};
    auto mirrored = cast<GroupBoundsOp>(rewriter.clone(*group));
    Operation *yield = mirrored.getOwn().front().getTerminator();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(yield);
    SmallVector<Value> own;
    for (Value bound : llvm::reverse(yield->getOperands()))
      own.push_back(rewriter.createOrFold<arith::SubIOp>(loc, sum, bound));
    yield->setOperands(own);
    return {highest ? mirrored.getFirst() : lo,
            lowest ? mirrored.getEnd() : hi};
  }

  Value lo, hi;
  GroupBoundsOp lowest, highest; // which bounds, or null
};
} // namespace

/// A copy of `loop` over other visits.
static scf::ForOp addLoop(RewriterBase &rewriter, scf::ForOp loop,
                          Value lowerBound, Value upperBound, Value first,
                          Value last, ValueRange state) {
  auto copy = cast<scf::ForOp>(rewriter.clone(*loop));
  copy.setLowerBound(lowerBound);
  copy.setUpperBound(upperBound);
  copy.getInitArgsMutable().assign(state);
  // Rows may have seen no key in the blocks that now come before.
  if (FailureOr<ScoresOp> scores = findMaskedScores(copy); succeeded(scores))
    if (OnlineSoftmaxOp softmax = findSoftmax(*scores))
      softmax.setGuard(true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(copy.getBody());
  Location loc = loop.getLoc();
  Value visit = copy.getInductionVar();
  auto distance = arith::SubIOp::create(rewriter, loc, last, visit);
  auto block = arith::MaxSIOp::create(rewriter, loc, distance, first);
  rewriter.replaceAllUsesExcept(visit, block, distance);
  return copy;
}

LogicalResult attn::tile::reverseKeyBlocks(RewriterBase &rewriter,
                                           KernelOp kernel,
                                           std::string &reason) {
  FailureOr<BlockLoops> chain = matchKeyLoops(kernel.getBody(), reason);
  if (failed(chain))
    return failure();
  ArrayRef<scf::ForOp> loops = chain->loops;
  if (!llvm::all_of(loops, countsKeyBlocks)) {
    reason = "the loops count visits of key blocks in an order of their own";
    return failure();
  }
  if (!llvm::all_of(loops, [](scf::ForOp loop) {
        return readScoreTrend(loop) == ScoreTrend::Grows;
      })) {
    reason = "nothing that is added to the scores grows with the key";
    return failure();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(chain->back());
  Location loc = chain->back().getLoc();
  VisitedRange range(chain->getLowerBound(), chain->getUpperBound());
  Value sum = rewriter.createOrFold<arith::AddIOp>(loc, range.hi, range.lo);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value last = rewriter.createOrFold<arith::SubIOp>(loc, sum, one);
  auto [first, end] = range.reverse(rewriter, loc, sum);
  // All bounds before the loops.
  SmallVector<Value> bounds = {first};
  for (scf::ForOp loop : llvm::reverse(loops.drop_front()))
    bounds.push_back(
        rewriter.createOrFold<arith::SubIOp>(loc, sum, loop.getLowerBound()));
  bounds.push_back(end);
  SmallVector<Value> state(chain->getInits());
  for (auto [number, loop] : llvm::enumerate(llvm::reverse(loops))) {
    scf::ForOp copy = addLoop(rewriter, loop, bounds[number],
                              bounds[number + 1], range.lo, last, state);
    state = llvm::to_vector_of<Value>(copy.getResults());
  }
  rewriter.replaceAllUsesWith(chain->getResults(), state);
  for (scf::ForOp loop : llvm::reverse(loops))
    rewriter.eraseOp(loop);
  return success();
}

namespace {
struct TileReverseKeys final
    : attn::SchedulePass<attn::tile::impl::TileReverseKeysBase<TileReverseKeys>,
                         KernelOp, TileForm::Ranged, attn::CleanUp::CSE> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    if (failed(reverseKeyBlocks(rewriter, kernel, reason)))
      return missed(reason);
    passed() << "key blocks are visited from the last to the first";
  }
};
} // namespace
