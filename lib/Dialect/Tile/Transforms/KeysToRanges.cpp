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
// per row: their maximum and their minimum, computed in front of the loop.
//
//===----------------------------------------------------------------------===//

#include "SortedComparison.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <limits>

namespace attn::tile {
#define GEN_PASS_DEF_TILEKEYSTORANGES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;
using arith::CmpIPredicate;

static void eraseDeadOps(RewriterBase &rewriter, Block *body) {
  SmallVector<Operation *> ops =
      llvm::to_vector(llvm::make_pointer_range(body->without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
}

//===----------------------------------------------------------------------===//
// Sorted data
//===----------------------------------------------------------------------===//

int64_t attn::tile::boundSortedKeys(RewriterBase &rewriter,
                                    const BlockLoops &loops) {
  SortedComparisons comparisons(rewriter);
  SmallVector<arith::CmpIOp> ops;
  for (scf::ForOp loop : loops.loops)
    llvm::append_range(ops, loop.getBody()->getOps<arith::CmpIOp>());
  int64_t count = 0;
  for (arith::CmpIOp op : ops) {
    FailureOr<SortedComparison> comparison = SortedComparison::match(op, loops);
    if (failed(comparison))
      continue;
    Block *body = op->getBlock();
    comparisons.replace(*comparison, loops.front());
    eraseDeadOps(rewriter, body);
    ++count;
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
  Value keys;  // tile.coords along the keys
  Value limit; // from outside the loop: i32, or one per row
  int64_t shift = 0;
};

/// A mask as a conjunction.
struct Conjunction {
  SmallVector<KeyBound> bounds;
  SmallVector<Value> others;
};
} // namespace

static bool isKeys(Value value) {
  auto coords = value.getDefiningOp<CoordsOp>();
  return coords && coords.getAxis() == 1;
}

/// The scalar or the rows that a side of a comparison is, known before the
/// loops; null if it is neither.
static Value getLimit(OpBuilder &builder, Value value,
                      const BlockLoops &loops) {
  value = stripBroadcast(value);
  if (std::optional<int64_t> number = getIntegerConstant(value)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loops.front());
    return arith::ConstantIntOp::create(builder, value.getLoc(), *number, 32);
  }
  auto type = dyn_cast<VectorType>(value.getType());
  if (!loops.isKnownBefore(value) ||
      (type && (type.getRank() != 2 || type.getDimSize(1) != 1)))
    return {};
  return value;
}

/// key `predicate` limit.
static std::optional<KeyBound> makeBound(Value keys, CmpIPredicate predicate,
                                         Value limit, int64_t shift = 0) {
  switch (predicate) {
  case CmpIPredicate::slt:
    return KeyBound{/*isUpper=*/true, keys, limit, shift};
  case CmpIPredicate::sle:
    return KeyBound{/*isUpper=*/true, keys, limit, shift + 1};
  case CmpIPredicate::sgt:
    return KeyBound{/*isUpper=*/false, keys, limit, shift + 1};
  case CmpIPredicate::sge:
    return KeyBound{/*isUpper=*/false, keys, limit, shift};
  default:
    return std::nullopt;
  }
}

/// A coordinate of the row, perhaps plus or minus numbers that are the same for
/// all rows: does not wrap around, as does no difference of two of them.
static bool isPosition(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto coords = dyn_cast<CoordsOp>(op))
      return coords.getAxis() == 0;
    if (!isa<arith::AddIOp, arith::SubIOp>(op))
      return false;
    Value other = stripBroadcast(op->getOperand(1));
    if (isa<VectorType>(other.getType()) && !getIntegerConstant(other))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

/// Distances beyond which nothing is read from them.
static constexpr int64_t maxDistance = int64_t(1) << 30;

/// row - key, or key - row, against a constant: bounds of the key.
static SmallVector<KeyBound> matchDistance(arith::CmpIOp compare,
                                           const BlockLoops &loops) {
  std::optional<int64_t> constant = getIntegerConstant(compare.getRhs());
  Value distance = stripBroadcast(compare.getLhs());
  CmpIPredicate predicate = compare.getPredicate();
  bool isAbsolute = false;
  if (auto absolute = distance.getDefiningOp<math::AbsIOp>()) {
    isAbsolute = true;
    distance = stripBroadcast(absolute.getOperand());
  }
  auto difference = distance.getDefiningOp<arith::SubIOp>();
  if (!constant || std::abs(*constant) > maxDistance || !difference)
    return {};
  Value rows = stripBroadcast(difference.getLhs());
  Value keys = stripBroadcast(difference.getRhs());
  bool isRowFirst = isKeys(keys);
  if (!isRowFirst)
    std::swap(rows, keys);
  if (!isKeys(keys) || !isPosition(rows) || !loops.isKnownBefore(rows))
    return {};
  SmallVector<KeyBound> bounds;
  // key - row against `limit`; row - key has it the other way round.
  auto add = [&](CmpIPredicate predicate, int64_t limit) {
    std::optional<KeyBound> bound =
        isRowFirst ? makeBound(keys, attn::swapSides(predicate), rows, -limit)
                   : makeBound(keys, predicate, rows, limit);
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
static SmallVector<KeyBound> matchBounds(OpBuilder &builder, Value value,
                                         const BlockLoops &loops) {
  auto compare = value.getDefiningOp<arith::CmpIOp>();
  if (!compare || !getElementTypeOrSelf(compare.getLhs()).isInteger(32))
    return {};
  Value keys = stripBroadcast(compare.getLhs()), limit = compare.getRhs();
  CmpIPredicate predicate = compare.getPredicate();
  if (!isKeys(keys)) {
    keys = stripBroadcast(compare.getRhs());
    limit = compare.getLhs();
    predicate = attn::swapSides(predicate);
  }
  if (!isKeys(keys))
    return matchDistance(compare, loops);
  limit = getLimit(builder, limit, loops);
  std::optional<KeyBound> bound;
  if (limit)
    bound = makeBound(keys, predicate, limit);
  return bound ? SmallVector<KeyBound>{*bound} : SmallVector<KeyBound>{};
}

/// The bounds of a mask, and what else it says.
static Conjunction takeApart(OpBuilder &builder, Value mask,
                             const BlockLoops &loops) {
  Conjunction result;
  auto isOutside = [&](Value value) { return loops.isKnownBefore(value); };
  for (Value conjunct : getConjuncts(mask, isOutside)) {
    SmallVector<KeyBound> bounds =
        matchBounds(builder, stripBroadcast(conjunct), loops);
    if (bounds.empty())
      result.others.push_back(conjunct);
    else
      llvm::append_range(result.bounds, bounds);
  }
  return result;
}

/// The limit that the keys are below, or not below.
static Value emitLimit(OpBuilder &builder, const KeyBound &bound) {
  if (bound.shift == 0)
    return bound.limit;
  Location loc = bound.limit.getLoc();
  Type type = bound.limit.getType();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        builder, loc,
        isa<VectorType>(type)
            ? TypedAttr(DenseElementsAttr::get(
                  cast<VectorType>(type), builder.getI32IntegerAttr(value)))
            : builder.getI32IntegerAttr(value));
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
static Value joinBounds(OpBuilder &outer, OpBuilder &inner,
                        ArrayRef<KeyBound> bounds, VectorType maskType) {
  bool isUpper = bounds.front().isUpper;
  // Those of all rows before those of one: they are scalar instructions.
  Value joined;
  for (bool isOfRows : {false, true})
    for (const KeyBound &bound : bounds) {
      auto type = dyn_cast<VectorType>(bound.limit.getType());
      if (bool(type) != isOfRows)
        continue;
      Value limit = emitLimit(outer, bound);
      if (!joined) {
        joined = limit;
        continue;
      }
      if (type)
        joined = stretchTo(outer, joined, type.getShape());
      Location loc = limit.getLoc();
      joined =
          isUpper
              ? arith::MinSIOp::create(outer, loc, joined, limit).getResult()
              : arith::MaxSIOp::create(outer, loc, joined, limit).getResult();
    }
  Value keys = bounds.front().keys;
  ArrayRef<int64_t> shape =
      cast<VectorType>(isa<VectorType>(joined.getType()) ? Type(maskType)
                                                         : keys.getType())
          .getShape();
  Value test = arith::CmpIOp::create(
      inner, keys.getLoc(), isUpper ? CmpIPredicate::slt : CmpIPredicate::sge,
      stretchTo(inner, keys, shape), stretchTo(inner, joined, shape));
  return stretchTo(inner, test, maskType.getShape());
}

bool attn::tile::joinKeyBounds(RewriterBase &rewriter, const BlockLoops &loops,
                               scf::ForOp loop) {
  assert(llvm::is_contained(loops.loops, loop) && "one of the loops");
  FailureOr<MaskedStep> step = matchMaskedStep(loop);
  if (failed(step))
    return false;
  OpBuilder::InsertionGuard guard(rewriter);
  Conjunction all = takeApart(rewriter, step->getMask(), loops);
  SmallVector<KeyBound> sides[2];
  for (const KeyBound &bound : all.bounds)
    sides[bound.isUpper].push_back(bound);
  bool isAnyJoined = false;
  for (ArrayRef<KeyBound> side : sides)
    isAnyJoined |= side.size() > 1;
  if (!isAnyJoined)
    return false;
  OpBuilder outer(loops.front()), inner(step->select);
  auto type = cast<VectorType>(step->getMask().getType());
  SmallVector<Value> parts;
  for (ArrayRef<KeyBound> side : sides)
    if (!side.empty())
      parts.push_back(joinBounds(outer, inner, side, type));
  for (Value other : all.others)
    parts.push_back(stretchTo(inner, other, type.getShape()));
  Value mask = parts.front();
  for (Value part : ArrayRef<Value>(parts).drop_front())
    mask = arith::AndIOp::create(inner, part.getLoc(), mask, part);
  rewriter.modifyOpInPlace(step->select,
                           [&] { step->select->setOperand(0, mask); });
  eraseDeadOps(rewriter, loop.getBody());
  return true;
}

namespace {
struct TileKeysToRanges final
    : attn::SchedulePass<
          attn::tile::impl::TileKeysToRangesBase<TileKeysToRanges>,
          func::FuncOp, attn::CleanUp::CSE> {
  using Base::Base;

  void transform(RewriterBase &rewriter, func::FuncOp func) override {
    int64_t numSorted = 0, numJoined = 0;
    for (scf::ForOp first : findLoopsOverBlocks(func)) {
      std::string reason;
      FailureOr<BlockLoops> loops = matchKeyLoops(first->getBlock(), reason);
      if (failed(loops) || loops->front() != first)
        continue;
      numSorted += boundSortedKeys(rewriter, *loops);
      for (scf::ForOp loop : loops->loops)
        numJoined += joinKeyBounds(rewriter, *loops, loop);
    }
    if (numSorted + numJoined == 0)
      return missed("no mask compares sorted data of a key, or has two bounds "
                    "of keys on one side");
    passed() << remark::metric("comparisons", numSorted)
             << remark::metric("masks", numJoined);
  }
};
} // namespace
