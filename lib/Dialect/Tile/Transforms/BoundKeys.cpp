//===- BoundKeys.cpp - masks as bounds of the keys ------------------------===//
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

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include <limits>

namespace attn::tile {
#define GEN_PASS_DEF_TILEBOUNDKEYS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
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

int64_t attn::tile::boundSortedKeys(RewriterBase &rewriter, Operation *root) {
  SortedComparisons comparisons(rewriter);
  SmallVector<arith::CmpIOp> ops;
  root->walk([&](arith::CmpIOp op) { ops.push_back(op); });
  int64_t count = 0;
  for (arith::CmpIOp op : ops) {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    if (!loop)
      continue;
    FailureOr<SortedComparison> comparison = SortedComparison::match(op, loop);
    if (failed(comparison))
      continue;
    comparisons.replace(*comparison, getChainHead(loop));
    eraseDeadOps(rewriter, loop.getBody());
    ++count;
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Bounds that hold together
//===----------------------------------------------------------------------===//

namespace {
/// key < limit, or key >= limit.
struct KeyBound {
  bool isUpper;
  /// The least number with which it fails, or holds, is limit + 1.
  bool addsOne;
  Value keys;  // tile.coords along the keys
  Value limit; // from outside the loop: i32, or one per row
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

/// The scalar or the rows that a side of a comparison is, from outside the
/// loop; null if it is neither.
static Value getLimit(OpBuilder &builder, Value value, scf::ForOp loop) {
  value = stripBroadcast(value);
  if (std::optional<int64_t> number = getIntegerConstant(value)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(getChainHead(loop));
    return arith::ConstantIntOp::create(builder, value.getLoc(), *number, 32);
  }
  auto type = dyn_cast<VectorType>(value.getType());
  if (!isKnownBefore(value, loop) ||
      (type && (type.getRank() != 2 || type.getDimSize(1) != 1)))
    return {};
  return value;
}

static std::optional<KeyBound> matchBound(OpBuilder &builder, Value value,
                                          scf::ForOp loop) {
  auto compare = value.getDefiningOp<arith::CmpIOp>();
  if (!compare || !getElementTypeOrSelf(compare.getLhs()).isInteger(32))
    return std::nullopt;
  Value lhs = stripBroadcast(compare.getLhs());
  Value rhs = stripBroadcast(compare.getRhs());
  bool isSwapped = !isKeys(lhs);
  Value keys = isSwapped ? rhs : lhs;
  if (!isKeys(keys))
    return std::nullopt;
  bool isUpper, addsOne;
  switch (compare.getPredicate()) {
  case CmpIPredicate::slt: // key < limit; limit < key
    isUpper = true;
    addsOne = isSwapped;
    break;
  case CmpIPredicate::sle:
    isUpper = true;
    addsOne = !isSwapped;
    break;
  case CmpIPredicate::sgt:
    isUpper = false;
    addsOne = !isSwapped;
    break;
  case CmpIPredicate::sge:
    isUpper = false;
    addsOne = isSwapped;
    break;
  default:
    return std::nullopt;
  }
  Value limit =
      getLimit(builder, isSwapped ? compare.getLhs() : compare.getRhs(), loop);
  if (!limit)
    return std::nullopt;
  return KeyBound{isUpper != isSwapped, addsOne, keys, limit};
}

/// `value` and its operands hold together.
static void collect(OpBuilder &builder, Value value, scf::ForOp loop,
                    Conjunction &result) {
  Value source = stripBroadcast(value);
  if (auto both = source.getDefiningOp<arith::AndIOp>();
      both && !loop.isDefinedOutsideOfLoop(source)) {
    collect(builder, both.getLhs(), loop, result);
    collect(builder, both.getRhs(), loop, result);
  } else if (std::optional<KeyBound> bound =
                 matchBound(builder, source, loop)) {
    result.bounds.push_back(*bound);
  } else {
    result.others.push_back(value);
  }
}

/// The limit that the keys are below, or not below.
static Value emitLimit(OpBuilder &builder, const KeyBound &bound) {
  if (!bound.addsOne)
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
  // No key is the greatest number: a limit that every key is below, or none.
  Value most = number(std::numeric_limits<int32_t>::max() - 1);
  Value limit = arith::MinSIOp::create(builder, loc, bound.limit, most);
  return arith::AddIOp::create(builder, loc, limit, number(1));
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

bool attn::tile::joinKeyBounds(RewriterBase &rewriter, scf::ForOp loop) {
  FailureOr<MaskedStep> step = matchMaskedStep(loop);
  if (failed(step))
    return false;
  OpBuilder::InsertionGuard guard(rewriter);
  Conjunction all;
  collect(rewriter, step->getMask(), loop, all);
  SmallVector<KeyBound> sides[2];
  for (const KeyBound &bound : all.bounds)
    sides[bound.isUpper].push_back(bound);
  bool isAnyJoined = false;
  for (ArrayRef<KeyBound> side : sides)
    isAnyJoined |= side.size() > 1;
  if (!isAnyJoined)
    return false;
  OpBuilder outer(getChainHead(loop)), inner(step->select);
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
struct TileBoundKeys final
    : attn::tile::impl::TileBoundKeysBase<TileBoundKeys> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    remark::RemarkOpts opts =
        remark::RemarkOpts::name("bound-keys").category(getArgument());
    int64_t numSorted = boundSortedKeys(rewriter, getOperation());
    int64_t numJoined = 0;
    getOperation()->walk(
        [&](scf::ForOp loop) { numJoined += joinKeyBounds(rewriter, loop); });
    if (numSorted + numJoined == 0) {
      remark::missed(getOperation().getLoc(), opts)
          << "no mask compares sorted data of a key, or has two bounds of keys "
             "on one side";
      return;
    }
    remark::passed(getOperation().getLoc(), opts)
        << remark::metric("comparisons", numSorted)
        << remark::metric("masks", numJoined);
    DominanceInfo dominance(getOperation());
    eliminateCommonSubExpressions(rewriter, dominance, getOperation());
  }
};
} // namespace
