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
// CutBlock.cpp has the other case, a mask of the last block alone.
//
//===----------------------------------------------------------------------===//

#include "CutBlock.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
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

/// What the bounds of a chain stand for where all rows are meant.
static GroupBoundsOp findGroupBounds(ArrayRef<Value> bounds) {
  for (Value bound : bounds)
    if (auto group = bound.getDefiningOp<GroupBoundsOp>())
      return group;
  return {};
}

namespace {
/// The blocks [lo, hi) that the tile goes through, mirrored.
class Mirror {
public:
  Mirror(RewriterBase &rewriter, Location loc, Value lo, Value hi)
      : rewriter(rewriter), loc(loc), lo(lo), hi(hi),
        sum(rewriter.createOrFold<arith::AddIOp>(loc, hi, lo)) {}

  Value getSum() const { return sum; }
  /// Of bounds, those in the other order.
  SmallVector<Value> reverse(ValueRange bounds) {
    SmallVector<Value> reversed;
    for (Value bound : llvm::reverse(bounds))
      reversed.push_back(bound == lo   ? hi
                         : bound == hi ? lo
                                       : rewriter.createOrFold<arith::SubIOp>(
                                             loc, sum, bound));
    return reversed;
  }
  /// A chain's whose bounds `group` gives, but for ends that all parts have.
  SmallVector<Value> reverse(ArrayRef<Value> bounds, GroupBoundsOp group);

private:
  RewriterBase &rewriter;
  Location loc;
  Value lo, hi, sum;
};
} // namespace

SmallVector<Value> Mirror::reverse(ArrayRef<Value> bounds,
                                   GroupBoundsOp group) {
  auto mirrored = GroupBoundsOp::create(
      rewriter, loc, reverse(group.getBounds()), group.getRows());
  rewriter.cloneRegionBefore(group.getOwn(), mirrored.getOwn(),
                             mirrored.getOwn().begin());
  Operation *yield = mirrored.getOwn().front().getTerminator();
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(yield);
    yield->setOperands(reverse(yield->getOperands()));
  }
  SmallVector<Value> reversed(mirrored.getResults());
  if (bounds.front() == lo)
    reversed.back() = hi;
  if (bounds.back() == hi)
    reversed.front() = lo;
  return reversed;
}

/// True if the score function in `loop` does more than multiply by a constant.
static bool hasScoreFunction(scf::ForOp loop) {
  return llvm::any_of(loop.getBody()->getOps<ScoresOp>(), [](ScoresOp scores) {
    return scores.hasScore() &&
           llvm::count_if(scores.getScore().front().without_terminator(),
                          [](Operation &op) {
                            return !op.hasTrait<OpTrait::ConstantLike>();
                          }) > 1;
  });
}

/// True if `tile-overlap-products` will compute a first step before the loops
/// of `chain`, so that a loop over the first block alone is none, and if one
/// copy of the step less is worth the other order. (Without a score function
/// kernels with the bounds in that order were 1 to 3 % slower for 64 dimensions
/// and 0.5 % for 256; with one they are as fast, or up to 10 % faster.)
static bool sparesStep(KernelOp kernel, const BlockLoops &chain) {
  return kernel.getPlan().getPasses().runs(OptionalPass::OverlapProducts) &&
         hasScoreFunction(chain.back()) &&
         llvm::all_of(chain.loops, [](scf::ForOp loop) {
           auto products = loop.getBody()->getOps<vector::ContractionOp>();
           return findSoftmax(loop) &&
                  llvm::none_of(products, [](vector::ContractionOp product) {
                    return product.getLhsType().getElementType().isF32();
                  });
         });
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
  if (sparesStep(kernel, *chain) && bringCutBlockFirst(rewriter, *chain))
    return success();
  if (!llvm::all_of(loops, [](scf::ForOp loop) {
        return readScoreTrend(loop) == ScoreTrend::Grows;
      })) {
    reason = "nothing that is added to the scores grows with the key";
    return failure();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(chain->back());
  Location loc = chain->back().getLoc();
  SmallVector<Value> visited = chain->getBounds();
  GroupBoundsOp group = findGroupBounds(visited);
  Value lo = group ? group.getLo() : visited.front();
  Value hi = group ? group.getHi() : visited.back();
  Mirror mirror(rewriter, loc, lo, hi);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value last = rewriter.createOrFold<arith::SubIOp>(loc, mirror.getSum(), one);
  // All bounds before the loops.
  SmallVector<Value> bounds =
      group ? mirror.reverse(visited, group) : mirror.reverse(visited);
  SmallVector<Value> state(chain->getInits());
  for (auto [number, loop] : llvm::enumerate(llvm::reverse(loops))) {
    scf::ForOp copy = addMirroredLoop(rewriter, loop, bounds[number],
                                      bounds[number + 1], lo, last, state);
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
