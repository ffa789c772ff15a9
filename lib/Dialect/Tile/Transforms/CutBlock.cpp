//===- CutBlock.cpp - the block that the end of the keys cuts -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a mask hides keys by their number only, the same for all rows, as the
// end of the keys does, the blocks are [lo, full), which it does not touch, and
// [full, hi), with
//
//   full = max(min(floor(x / size), …, hi), lo)
//   hi   = max(min(ceil(x / size), …), lo)
//
// so that hi - full is 0 or 1. Block hi - 1 is visited first, under the mask
// whether it is cut or not, and then the others down to lo.
//
//===----------------------------------------------------------------------===//

#include "CutBlock.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/ScoreTrend.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

scf::ForOp attn::tile::addMirroredLoop(RewriterBase &rewriter, scf::ForOp loop,
                                       Value lowerBound, Value upperBound,
                                       Value first, Value last,
                                       ValueRange state) {
  auto copy = cast<scf::ForOp>(rewriter.clone(*loop));
  copy.setLowerBound(lowerBound);
  copy.setUpperBound(upperBound);
  copy.getInitArgsMutable().assign(state);
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

/// The values that `value` is the smallest of, apart from its maximum with
/// `lo`.
static void findSmallest(Value value, Value lo, SetVector<Value> &values) {
  if (auto op = value.getDefiningOp<arith::MaxSIOp>();
      op && llvm::is_contained(op->getOperands(), lo)) {
    findSmallest(op.getLhs() == lo ? op.getRhs() : op.getLhs(), lo, values);
    return;
  }
  if (auto op = value.getDefiningOp<arith::MinSIOp>()) {
    findSmallest(op.getLhs(), lo, values);
    findSmallest(op.getRhs(), lo, values);
    return;
  }
  values.insert(value);
}

/// True if `value` is at least one of `ends` less one.
static bool isNextTo(Value value, const SetVector<Value> &ends) {
  if (ends.contains(value))
    return true;
  auto floor = value.getDefiningOp<arith::FloorDivSIOp>();
  std::optional<int64_t> number = getIntegerConstant(value);
  return llvm::any_of(ends, [&](Value end) {
    if (std::optional<int64_t> endNumber = getIntegerConstant(end))
      return number && *number >= *endNumber - 1;
    auto ceil = end.getDefiningOp<arith::CeilDivSIOp>();
    return ceil && floor && ceil.getLhs() == floor.getLhs() &&
           ceil.getRhs() == floor.getRhs();
  });
}

/// True if there is at most one block from `full` to `hi`.
static bool isOneBlockAtMost(Value lo, Value full, Value hi) {
  SetVector<Value> ends, values;
  ends.insert(hi);
  findSmallest(hi, lo, ends);
  findSmallest(full, lo, values);
  return llvm::all_of(values,
                      [&](Value value) { return isNextTo(value, ends); });
}

/// True if no key is hidden in the step of `loop`.
static bool hidesNothing(scf::ForOp loop) {
  return llvm::all_of(loop.getBody()->getOps<ScoresOp>(), [](ScoresOp scores) {
    return !scores.hasMask() && !scores.getBelow();
  });
}

/// How many operations a step of `loop` has.
static size_t countOps(scf::ForOp loop) {
  size_t count = 0;
  loop->walk([&](Operation *) { ++count; });
  return count;
}

/// True if the last loop of `chain` alone hides keys, in one block at most, and
/// leaves out nothing that another one does.
static bool endsInCutBlock(const BlockLoops &chain, GroupBoundsOp group) {
  auto whole = ArrayRef(chain.loops).drop_back();
  scf::ForOp cut = chain.back();
  Value lo = chain.getLowerBound(), hi = chain.getUpperBound();
  Value full = cut.getLowerBound();
  if (group) {
    if (lo != group.getLo() || lo != group.getOwnBounds().front() ||
        !llvm::equal(ArrayRef(chain.getBounds()).drop_front(),
                     group.getResults().drop_front()))
      return false;
    full = group.getBounds().drop_back().back();
    hi = group.getHi();
  }
  return !whole.empty() && llvm::all_of(whole, hidesNothing) &&
         !hidesNothing(cut) && llvm::all_of(chain.loops, countsKeyBlocks) &&
         llvm::all_of(whole,
                      [&](scf::ForOp loop) {
                        return countOps(loop) <= countOps(cut);
                      }) &&
         isOneBlockAtMost(lo, full, hi);
}

/// Of `bounds`, those in the other order, where the last of the blocks is
/// visited first whether it is cut or not.
static SmallVector<Value> mirrorBounds(RewriterBase &rewriter, Location loc,
                                       Value sum, Value second,
                                       ValueRange bounds) {
  Value lo = bounds.front(), hi = bounds.back();
  SmallVector<Value> mirrored = {
      lo, rewriter.createOrFold<arith::MinSIOp>(loc, second, hi)};
  for (Value bound : llvm::reverse(bounds.drop_front().drop_back(2))) {
    Value distance = rewriter.createOrFold<arith::SubIOp>(loc, sum, bound);
    mirrored.push_back(
        rewriter.createOrFold<arith::MaxSIOp>(loc, distance, mirrored[1]));
  }
  mirrored.push_back(hi);
  return mirrored;
}

bool attn::tile::bringCutBlockFirst(RewriterBase &rewriter,
                                    const BlockLoops &chain) {
  Value hi = chain.getUpperBound();
  auto group = hi.getDefiningOp<GroupBoundsOp>();
  if (!endsInCutBlock(chain, group) ||
      llvm::any_of(chain.loops, [](scf::ForOp loop) {
        return readScoreTrend(loop) == ScoreTrend::Falls;
      }))
    return false;
  if (group)
    hi = group.getHi();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(chain.back());
  Location loc = chain.back().getLoc();
  Value lo = chain.getLowerBound();
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value second = rewriter.createOrFold<arith::AddIOp>(loc, lo, one);
  Value sum = rewriter.createOrFold<arith::AddIOp>(loc, hi, lo);
  Value last = rewriter.createOrFold<arith::SubIOp>(loc, sum, one);
  SmallVector<Value> bounds = mirrorBounds(
      rewriter, loc, sum, second,
      group ? ValueRange(group.getBounds()) : ValueRange(chain.getBounds()));
  if (group) {
    auto mirrored =
        GroupBoundsOp::create(rewriter, loc, bounds, group.getRows());
    rewriter.cloneRegionBefore(group.getOwn(), mirrored.getOwn(),
                               mirrored.getOwn().begin());
    Operation *yield = mirrored.getOwn().front().getTerminator();
    OpBuilder::InsertionGuard inRegion(rewriter);
    rewriter.setInsertionPoint(yield);
    yield->setOperands(
        mirrorBounds(rewriter, loc, sum, second, yield->getOperands()));
    bounds = llvm::to_vector_of<Value>(mirrored.getResults());
    bounds.front() = lo;
  }
  SmallVector<Value> state(chain.getInits());
  SmallVector<scf::ForOp> loops(llvm::reverse(chain.loops));
  for (auto [number, loop] : llvm::enumerate(loops)) {
    scf::ForOp copy = addMirroredLoop(rewriter, loop, bounds[number],
                                      bounds[number + 1], lo, last, state);
    state = llvm::to_vector_of<Value>(copy.getResults());
  }
  rewriter.replaceAllUsesWith(chain.getResults(), state);
  for (scf::ForOp loop : loops)
    rewriter.eraseOp(loop);
  return true;
}

/// True if `end` is `start` + 1 or less.
static bool isNextAtMost(Value start, Value end) {
  if (auto min = end.getDefiningOp<arith::MinSIOp>())
    return isNextAtMost(start, min.getLhs()) ||
           isNextAtMost(start, min.getRhs());
  std::optional<int64_t> number = getIntegerConstant(start);
  if (std::optional<int64_t> endNumber = getIntegerConstant(end))
    return number && *endNumber <= *number + 1;
  auto sum = end.getDefiningOp<arith::AddIOp>();
  return sum && sum.getLhs() == start && getIntegerConstant(sum.getRhs()) == 1;
}

bool attn::tile::isOverOneBlockAtMost(scf::ForOp loop) {
  Value lo = loop.getLowerBound(), hi = loop.getUpperBound();
  auto group = hi.getDefiningOp<GroupBoundsOp>();
  if (!group)
    return isNextAtMost(lo, hi);
  unsigned number = cast<OpResult>(hi).getResultNumber();
  return isNextAtMost(lo, group.getBounds()[number]) &&
         isNextAtMost(lo, group.getOwnBounds()[number]) &&
         lo == group.getLo() && lo == group.getOwnBounds().front();
}
