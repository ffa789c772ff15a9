//===- KeysToRanges.cpp - masks as bounds of the keys ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First comparisons of sorted data become bounds (SortedComparison.h), then
// all bounds of a mask that hold together become one lower and one upper bound
// per row: their maximum and their minimum. Before that comparisons of 64 bits
// with positions are narrowed, in all kernels.
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"
#include "QuotientComparison.h"
#include "SortedComparison.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <limits>

namespace attn::tile {
#define GEN_PASS_DEF_TILEKEYSTORANGES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;
using arith::CmpIPredicate;

//===----------------------------------------------------------------------===//
// Sorted data
//===----------------------------------------------------------------------===//

int64_t attn::tile::boundSortedKeys(RewriterBase &rewriter,
                                    const BlockLoops &loops) {
  int64_t count = 0;
  auto replaceIn = [&](ScoresOp scores, Region &region) {
    if (region.empty())
      return;
    ValueAxes axes(scores, region, &loops);
    SmallVector<arith::CmpIOp> ops(region.getOps<arith::CmpIOp>());
    for (arith::CmpIOp op : ops) {
      FailureOr<SortedComparison> comparison =
          SortedComparison::match(op, scores, axes);
      if (failed(comparison))
        continue;
      comparison->replace(rewriter);
      scores.setRanged(true);
      ++count;
    }
    eraseDeadOps(rewriter, &region.front());
  };
  for (scf::ForOp loop : loops.loops)
    for (auto scores : loop.getBody()->getOps<ScoresOp>())
      for (Region &region : scores->getRegions())
        replaceIn(scores, region);
  return count;
}

//===----------------------------------------------------------------------===//
// Quotients and distances
//===----------------------------------------------------------------------===//

/// Replaces what `replace` can of the comparisons of a mask; returns how many.
static int64_t replaceComparisons(
    RewriterBase &rewriter, ScoresOp scores,
    function_ref<LogicalResult(arith::CmpIOp, const ValueAxes &)> replace) {
  if (!scores.hasMask())
    return 0;
  int64_t count = 0;
  ValueAxes axes(scores, scores.getMask());
  SmallVector<arith::CmpIOp> ops(scores.getMask().getOps<arith::CmpIOp>());
  for (arith::CmpIOp op : ops)
    count += succeeded(replace(op, axes));
  if (count > 0) {
    eraseDeadOps(rewriter, &scores.getMask().front());
    scores.setRanged(true);
  }
  return count;
}

int64_t attn::tile::boundQuotients(RewriterBase &rewriter, ScoresOp scores) {
  return replaceComparisons(
      rewriter, scores,
      [&](arith::CmpIOp op, const ValueAxes &axes) -> LogicalResult {
        FailureOr<QuotientComparison> comparison =
            QuotientComparison::match(op, scores, axes);
        if (succeeded(comparison))
          comparison->replace(rewriter);
        return comparison;
      });
}

int64_t attn::tile::splitDistances(RewriterBase &rewriter, ScoresOp scores) {
  return replaceComparisons(rewriter, scores,
                            [&](arith::CmpIOp op, const ValueAxes &axes) {
                              return splitDistance(rewriter, op, scores, axes);
                            });
}

int64_t attn::tile::narrowComparisons(RewriterBase &rewriter, ScoresOp scores) {
  int64_t count = 0;
  for (Region &region : scores->getRegions()) {
    if (region.empty())
      continue;
    ValueAxes axes(scores, region);
    int64_t before = count;
    for (auto op : llvm::to_vector(region.getOps<arith::CmpIOp>()))
      count += succeeded(narrowComparison(rewriter, op, scores, axes));
    if (count > before)
      eraseDeadOps(rewriter, &region.front());
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Bounds that hold together
//===----------------------------------------------------------------------===//

namespace {
/// key < limit + shift, or key >= limit + shift.
struct KeyBound {
  bool isUpper;
  Value limit; // the same for all keys
  int64_t shift = 0;
};

/// The bounds that the mask of one `tile.scores` sets to the keys.
class MaskBounds {
public:
  MaskBounds(ScoresOp op, const BlockLoops &loops);

  /// Makes one of all of one side; false where there is nothing to join.
  bool join(RewriterBase &rewriter);

private:
  bool isPosition(Value value);
  SmallVector<KeyBound> matchDistance(arith::CmpIOp compare);
  SmallVector<KeyBound> match(Value value);
  Value emit(OpBuilder &builder, ArrayRef<KeyBound> bounds) const;

  ScoresOp op;
  Operation *yield;
  Value rows, key; // coordinates; the argument
  ValueAxes axes;
  IntegerSizes sizes = getMaskIntegerSizes();
  SmallVector<KeyBound> sides[2]; // lower and upper ones
  SmallVector<Value> others;      // what else the mask says
};
} // namespace

MaskBounds::MaskBounds(ScoresOp op, const BlockLoops &loops)
    : op(op), yield(op.getMask().front().getTerminator()),
      rows(op.getQueries()), key(op.getMask().getArguments().back()),
      axes(op, op.getMask(), &loops) {
  auto isWhole = [&](Value value) { return axes.isPerRow(value); };
  for (Value conjunct : getConjuncts(op, isWhole)) {
    SmallVector<KeyBound> bounds = match(conjunct);
    for (const KeyBound &bound : bounds)
      sides[bound.isUpper].push_back(bound);
    if (bounds.empty())
      others.push_back(conjunct);
  }
  if (op.getBelow())
    sides[true].push_back({true, op.getBelow()});
}

/// key `predicate` limit.
static std::optional<KeyBound> makeBound(CmpIPredicate predicate, Value limit,
                                         int64_t shift = 0) {
  switch (predicate) {
  case CmpIPredicate::slt:
    return KeyBound{/*isUpper=*/true, limit, shift};
  case CmpIPredicate::sle:
    return KeyBound{/*isUpper=*/true, limit, shift + 1};
  case CmpIPredicate::sgt:
    return KeyBound{/*isUpper=*/false, limit, shift + 1};
  case CmpIPredicate::sge:
    return KeyBound{/*isUpper=*/false, limit, shift};
  default:
    return std::nullopt;
  }
}

/// A coordinate of the row, perhaps plus or minus numbers that are the same for
/// all rows, that does not wrap around.
bool MaskBounds::isPosition(Value value) {
  while (Operation *sum = value.getDefiningOp()) {
    if (!isa<arith::AddIOp, arith::SubIOp>(sum) || sizes.mayWrap(sum) ||
        !axes.isUniform(sum->getOperand(1)))
      return false;
    value = sum->getOperand(0);
  }
  return ScoresOp::resolve(value) == rows;
}

/// Distances beyond which nothing is read from them.
static constexpr int64_t maxDistance = int64_t(1) << 30;

/// row - key, or key - row, against a constant: bounds of the key.
SmallVector<KeyBound> MaskBounds::matchDistance(arith::CmpIOp compare) {
  std::optional<int64_t> constant = getIntegerConstant(compare.getRhs());
  Value distance = compare.getLhs();
  CmpIPredicate predicate = compare.getPredicate();
  bool isAbsolute = false;
  if (auto absolute = distance.getDefiningOp<math::AbsIOp>()) {
    isAbsolute = true;
    distance = absolute.getOperand();
  }
  auto difference = distance.getDefiningOp<arith::SubIOp>();
  if (!constant || std::abs(*constant) > maxDistance || !difference ||
      sizes.mayWrap(difference))
    return {};
  bool isRowFirst = difference.getRhs() == key;
  Value row = isRowFirst ? difference.getLhs() : difference.getRhs();
  if ((!isRowFirst && difference.getLhs() != key) || !isPosition(row) ||
      !axes.isPerRow(row))
    return {};
  SmallVector<KeyBound> bounds;
  // key - row against `limit`; row - key has it the other way round.
  auto add = [&](CmpIPredicate predicate, int64_t limit) {
    std::optional<KeyBound> bound =
        isRowFirst ? makeBound(attn::swapSides(predicate), row, -limit)
                   : makeBound(predicate, row, limit);
    if (bound)
      bounds.push_back(*bound);
  };
  bool isStrict =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::ult;
  bool isBelow = isStrict || predicate == CmpIPredicate::sle ||
                 predicate == CmpIPredicate::ule;
  bool isUnsigned = CmpIPredicate::ult <= predicate;
  int64_t most = isStrict ? *constant - 1 : *constant;
  if (!isAbsolute && !isUnsigned) {
    add(predicate, *constant);
  } else if (isBelow && *constant >= 0) {
    // Without a sign, a negative number is above the others.
    add(CmpIPredicate::sge, isAbsolute ? -most : 0);
    add(CmpIPredicate::sle, most);
  }
  return bounds;
}

/// The bounds that a comparison sets; none if it is something else.
SmallVector<KeyBound> MaskBounds::match(Value value) {
  auto compare = value.getDefiningOp<arith::CmpIOp>();
  if (!compare || !compare.getLhs().getType().isInteger(32))
    return {};
  Value limit = compare.getRhs();
  CmpIPredicate predicate = compare.getPredicate();
  if (limit == key) {
    limit = compare.getLhs();
    predicate = attn::swapSides(predicate);
  } else if (compare.getLhs() != key) {
    return matchDistance(compare);
  }
  std::optional<KeyBound> bound;
  if (axes.isPerRow(limit))
    bound = makeBound(predicate, limit);
  return bound ? SmallVector<KeyBound>{*bound} : SmallVector<KeyBound>{};
}

/// The limit that the keys are below, or not below.
static Value emitLimit(OpBuilder &builder, Location loc,
                       const KeyBound &bound) {
  if (bound.shift == 0)
    return bound.limit;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  // Sums saturate: no key is the greatest number, a limit that every key is
  // below, or none.
  Value limit = bound.limit;
  if (bound.shift > 0)
    limit = arith::MinSIOp::create(
        builder, loc, limit,
        number(std::numeric_limits<int32_t>::max() - bound.shift));
  else
    limit = arith::MaxSIOp::create(
        builder, loc, limit,
        number(std::numeric_limits<int32_t>::min() - bound.shift));
  return arith::AddIOp::create(builder, loc, limit, number(bound.shift));
}

/// One test for all bounds of one side.
Value MaskBounds::emit(OpBuilder &builder, ArrayRef<KeyBound> bounds) const {
  Location loc = yield->getLoc();
  bool isUpper = bounds.front().isUpper;
  // Those of all rows before those of one: they are scalar instructions.
  Value joined;
  for (bool isUniform : {true, false})
    for (const KeyBound &bound : bounds) {
      if (axes.isUniform(bound.limit) != isUniform)
        continue;
      Value limit = emitLimit(builder, loc, bound);
      if (!joined)
        joined = limit;
      else if (isUpper)
        joined = arith::MinSIOp::create(builder, loc, joined, limit);
      else
        joined = arith::MaxSIOp::create(builder, loc, joined, limit);
    }
  return arith::CmpIOp::create(
      builder, loc, isUpper ? CmpIPredicate::slt : CmpIPredicate::sge, key,
      joined);
}

bool MaskBounds::join(RewriterBase &rewriter) {
  if (llvm::all_of(sides, [](const auto &side) { return side.size() <= 1; }))
    return false;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(yield);
  SmallVector<Value> parts;
  for (ArrayRef<KeyBound> side : sides)
    if (!side.empty())
      parts.push_back(emit(rewriter, side));
  llvm::append_range(parts, others);
  Value mask = parts.front();
  for (Value part : ArrayRef<Value>(parts).drop_front())
    mask = arith::AndIOp::create(rewriter, part.getLoc(), mask, part);
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(0, mask); });
  rewriter.modifyOpInPlace(op, [&] {
    op.getBelowMutable().clear();
    op.setRanged(true);
  });
  eraseDeadOps(rewriter, yield->getBlock());
  return true;
}

bool attn::tile::joinKeyBounds(RewriterBase &rewriter, const BlockLoops &loops,
                               scf::ForOp loop) {
  assert(llvm::is_contained(loops.loops, loop) && "one of the loops");
  FailureOr<ScoresOp> op = findMaskedScores(loop);
  if (failed(op) || !op->hasMask() || loops.isKnownBefore(op->getKeys()) ||
      (op->getBelow() && !loops.isKnownBefore(op->getBelow())))
    return false;
  return MaskBounds(*op, loops).join(rewriter);
}

namespace {
struct TileKeysToRanges final
    : attn::SchedulePass<
          attn::tile::impl::TileKeysToRangesBase<TileKeysToRanges>,
          func::FuncOp, TileForm::Grouped, attn::CleanUp::CSE> {
  using Base::Base;

  void transform(RewriterBase &rewriter, func::FuncOp func) override {
    int64_t numCompared = 0, numJoined = 0;
    func.walk([&](ScoresOp scores) {
      numCompared += narrowComparisons(rewriter, scores);
    });
    for (scf::ForOp first : findLoopsOverBlocks(func)) {
      std::string reason;
      FailureOr<BlockLoops> loops = matchKeyLoops(first->getBlock(), reason);
      if (failed(loops) || loops->front() != first)
        continue;
      numCompared += boundSortedKeys(rewriter, *loops);
      for (scf::ForOp loop : loops->loops)
        for (auto scores : loop.getBody()->getOps<ScoresOp>())
          numCompared += boundQuotients(rewriter, scores);
      for (scf::ForOp loop : loops->loops)
        numJoined += joinKeyBounds(rewriter, *loops, loop);
      // Those that bounds of keys were not read from.
      for (scf::ForOp loop : loops->loops)
        for (auto scores : loop.getBody()->getOps<ScoresOp>())
          numCompared += splitDistances(rewriter, scores);
    }
    if (numCompared + numJoined == 0)
      return missed("no mask compares sorted data or a quotient of a key, a "
                    "distance or 64 bits, or has two bounds of keys on one "
                    "side");
    passed() << remark::metric("comparisons", numCompared)
             << remark::metric("masks", numJoined);
  }
};
} // namespace
