//===- SortedComparison.cpp - sorted data of keys as bounds ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SortedComparison.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;
using arith::CmpIPredicate;

/// In front of all keys; behind them, whose numbers are smaller.
static constexpr int64_t least = std::numeric_limits<int32_t>::min(),
                         greatest = std::numeric_limits<int32_t>::max();

Value attn::tile::stripBroadcast(Value value) {
  while (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  return value;
}

SmallVector<Value> attn::tile::getConjuncts(Value mask,
                                            function_ref<bool(Value)> isWhole) {
  SmallVector<Value> conjuncts, worklist = {mask};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Value source = stripBroadcast(value);
    if (!seen.insert(source).second)
      continue;
    auto both = source.getDefiningOp<arith::AndIOp>();
    if (both && !isWhole(source))
      worklist.append({both.getRhs(), both.getLhs()});
    else
      conjuncts.push_back(value);
  }
  return conjuncts;
}

Value attn::tile::stretchTo(OpBuilder &builder, Value value,
                            ArrayRef<int64_t> shape) {
  auto type = VectorType::get(shape, getElementTypeOrSelf(value));
  if (value.getType() == type)
    return value;
  return vector::BroadcastOp::create(builder, value.getLoc(), type, value);
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// The sorted data at the key that `value` is.
static LogicalResult matchData(Value value, const BlockLoops &loops,
                               SortedComparison &result) {
  Operation *op = stripBroadcast(value).getDefiningOp();
  if (auto search = dyn_cast_or_null<SearchOp>(op)) {
    result.isSearch = true;
    result.view = search.getView();
    result.leading = llvm::to_vector(search.getIndices());
    result.keys = search.getValue();
  } else if (auto gather = dyn_cast_or_null<GatherOp>(op)) {
    if (!gather.getSorted() || gather.getIndices().empty() ||
        !getElementTypeOrSelf(gather.getResult()).isInteger(32))
      return failure();
    result.isSearch = false;
    result.view = gather.getView();
    result.leading = llvm::to_vector(gather.getIndices().drop_back());
    result.keys = gather.getIndices().back();
  } else {
    return failure();
  }
  auto coords = result.keys.getDefiningOp<CoordsOp>();
  if (!coords || coords.getAxis() != 1 || !loops.isKnownBefore(result.view))
    return failure();
  return success(llvm::all_of(result.leading, [&](Value index) {
    return index.getType().isInteger(32) && loops.isKnownBefore(index);
  }));
}

/// Rows of one column, or a scalar, from outside the loop.
static bool isLimit(Value value, const BlockLoops &loops) {
  if (!loops.isKnownBefore(value))
    return false;
  auto type = dyn_cast<VectorType>(value.getType());
  return !type || (type.getRank() == 2 && type.getDimSize(1) == 1);
}

FailureOr<SortedComparison> SortedComparison::match(arith::CmpIOp op,
                                                    const BlockLoops &loops) {
  SortedComparison result;
  result.op = op;
  result.predicate = op.getPredicate();
  if (!isa<VectorType>(op.getType()) || result.predicate >= CmpIPredicate::ult)
    return failure();
  Value data = op.getLhs(), limit = op.getRhs();
  if (failed(matchData(data, loops, result))) {
    std::swap(data, limit);
    result.predicate = attn::swapSides(result.predicate);
    if (failed(matchData(data, loops, result)))
      return failure();
  }
  result.limit = stripBroadcast(limit);
  if (!isLimit(result.limit, loops))
    return failure();
  return result;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

namespace {
/// Arithmetic on i32, or on vectors of it: all of the type of one value.
class Emitter {
public:
  Emitter(OpBuilder &builder, const SortedComparison &comparison)
      : builder(builder), loc(comparison.limit.getLoc()),
        comparison(comparison), type(comparison.limit.getType()) {}

  Value number(int64_t value) {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector)
      return arith::ConstantIntOp::create(builder, loc, value, 32);
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(vector, builder.getI32IntegerAttr(value)));
  }
  Value stretch(Value scalar) {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector::BroadcastOp::create(builder, loc, vector, scalar);
    return scalar;
  }
  Value compare(CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }
  Value minusOne(Value value) {
    return arith::SubIOp::create(builder, loc, value, number(1));
  }

  Value size();
  Value element(Value index, Value size);
  Value search(Value value) {
    return SearchOp::create(builder, loc, type, comparison.view,
                            comparison.leading, value);
  }

private:
  Value load(Value index);

  OpBuilder &builder;
  Location loc;
  const SortedComparison &comparison;
  Type type;
};
} // namespace

/// Elements along the last dimension; 0 where a leading index is out of range.
Value Emitter::size() {
  auto dimension = [&](int64_t number) {
    return builder.createOrFold<memref::DimOp>(loc, comparison.view, number);
  };
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value last = arith::ConstantIndexOp::create(builder, loc, greatest);
  Value count = builder.createOrFold<arith::MinSIOp>(
      loc, dimension(comparison.leading.size()), last);
  for (auto [number, leading] : llvm::enumerate(comparison.leading)) {
    Value index = arith::IndexCastOp::create(builder, loc,
                                             builder.getIndexType(), leading);
    // Negative numbers are large without a sign.
    Value isInside =
        compare(CmpIPredicate::ult, index, dimension(int64_t(number)));
    count = select(isInside, count, zero);
  }
  return stretch(builder.createOrFold<arith::IndexCastOp>(
      loc, builder.getI32Type(), count));
}

/// The element at an index in range.
Value Emitter::load(Value index) {
  SmallVector<Value> indices(comparison.leading);
  if (isa<VectorType>(type)) {
    indices.push_back(index);
    return GatherOp::create(builder, loc, type, comparison.view, indices,
                            /*sorted=*/false);
  }
  indices.push_back(index);
  for (Value &each : indices)
    each =
        arith::IndexCastOp::create(builder, loc, builder.getIndexType(), each);
  return memref::LoadOp::create(builder, loc, comparison.view, indices);
}

/// Element number `index`; one in front of all keys in front of the first,
/// one behind them behind the last.
Value Emitter::element(Value index, Value size) {
  Value isBehind = compare(CmpIPredicate::sge, index, size);
  Value isBefore = compare(CmpIPredicate::slt, index, number(0));
  Value outside = select(isBefore, number(least), number(greatest));
  if (isa<VectorType>(type)) {
    Value isOutside = arith::OrIOp::create(builder, loc, isBehind, isBefore);
    // Memory out of range is not read.
    return select(isOutside, outside, load(index));
  }
  Value isInside = arith::AndIOp::create(
      builder, loc, compare(CmpIPredicate::slt, index, size),
      compare(CmpIPredicate::sge, index, number(0)));
  auto branch = scf::IfOp::create(
      builder, loc, isInside,
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, load(index));
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(builder, loc, outside);
      });
  return branch.getResult(0);
}

SortedComparisons::Bounds
SortedComparisons::getBounds(const SortedComparison &comparison,
                             scf::ForOp head) {
  for (const auto &[other, bounds] : known)
    if (other.isSearch == comparison.isSearch &&
        other.view == comparison.view && other.leading == comparison.leading &&
        other.limit == comparison.limit)
      return bounds;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(head);
  Emitter emit(rewriter, comparison);
  Value limit = comparison.limit;
  Bounds bounds;
  Value size = emit.size();
  if (comparison.isSearch) {
    bounds.above = emit.element(limit, size);
    Value zero = emit.number(0);
    Value index = emit.minusOne(
        arith::MaxSIOp::create(rewriter, limit.getLoc(), limit, zero));
    bounds.from = emit.element(index, size);
  } else {
    bounds.size = size;
    bounds.above = emit.search(limit);
    // Nothing is below the least number, which has none before it.
    Value isLeast = emit.compare(CmpIPredicate::eq, limit, emit.number(least));
    Value before = emit.search(emit.minusOne(limit));
    bounds.from = emit.select(isLeast, emit.number(0), before);
  }
  known.push_back({comparison, bounds});
  return bounds;
}

namespace {
/// Comparisons of the keys with bounds, at one place.
class KeyTests {
public:
  KeyTests(OpBuilder &builder, arith::CmpIOp op, Value keys)
      : builder(builder), loc(op.getLoc()), keys(keys),
        shape(cast<VectorType>(op.getType()).getShape()) {}

  Value isBelow(Value bound) { return compare(CmpIPredicate::slt, bound); }
  Value isNotBelow(Value bound) { return compare(CmpIPredicate::sge, bound); }
  Value both(Value a, Value b) {
    return arith::AndIOp::create(builder, a.getLoc(), a, b);
  }
  Value either(Value a, Value b) {
    return arith::OrIOp::create(builder, a.getLoc(), a, b);
  }

private:
  Value compare(CmpIPredicate predicate, Value bound) {
    return arith::CmpIOp::create(builder, loc, predicate,
                                 stretchTo(builder, keys, shape),
                                 stretchTo(builder, bound, shape));
  }

  OpBuilder &builder;
  Location loc;
  Value keys;
  ArrayRef<int64_t> shape;
};
} // namespace

/// What the comparison is for keys in memory.
static Value compareInside(KeyTests &test, CmpIPredicate predicate, Value from,
                           Value above) {
  switch (predicate) {
  case CmpIPredicate::eq:
    return test.both(test.isNotBelow(from), test.isBelow(above));
  case CmpIPredicate::ne:
    return test.either(test.isBelow(from), test.isNotBelow(above));
  case CmpIPredicate::slt:
    return test.isBelow(from);
  case CmpIPredicate::sle:
    return test.isBelow(above);
  case CmpIPredicate::sgt:
    return test.isNotBelow(above);
  case CmpIPredicate::sge:
    return test.isNotBelow(from);
  default:
    llvm_unreachable("matched with a sign");
  }
}

void SortedComparisons::replace(const SortedComparison &comparison,
                                scf::ForOp head) {
  OpBuilder::InsertionGuard guard(rewriter);
  Bounds bounds = getBounds(comparison, head);
  CmpIPredicate predicate = comparison.predicate;
  rewriter.setInsertionPoint(comparison.op);
  KeyTests test(rewriter, comparison.op, comparison.keys);
  Value result = compareInside(test, predicate, bounds.from, bounds.above);
  if (bounds.size) {
    // Behind the end of memory neither bound is: the test says the same for all
    // keys there, which may be wrong for the 0 that they read.
    bool answer = predicate == CmpIPredicate::ne ||
                  predicate == CmpIPredicate::sgt ||
                  predicate == CmpIPredicate::sge;
    rewriter.setInsertionPoint(head);
    Emitter emit(rewriter, comparison);
    Value isWrong =
        emit.compare(answer ? arith::invertPredicate(predicate) : predicate,
                     emit.number(0), comparison.limit);
    Value end = emit.select(isWrong, bounds.size, emit.number(greatest));
    rewriter.setInsertionPoint(comparison.op);
    result = answer ? test.both(result, test.isBelow(end))
                    : test.either(result, test.isNotBelow(end));
  }
  rewriter.replaceOp(comparison.op, result);
}
