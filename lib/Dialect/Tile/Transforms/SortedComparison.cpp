//===- SortedComparison.cpp - sorted data of keys as bounds ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SortedComparison.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;
using arith::CmpIPredicate;

/// Before all keys; after them, whose numbers are smaller.
static constexpr int64_t least = std::numeric_limits<int32_t>::min(),
                         greatest = std::numeric_limits<int32_t>::max();

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// The sorted data at the key that `value` is.
static LogicalResult matchData(Value value, ScoresOp scores,
                               const ValueAxes &axes,
                               SortedComparison &result) {
  Operation *op = value.getDefiningOp();
  if (auto search = dyn_cast_or_null<SearchOp>(op)) {
    result.isSearch = true;
    result.view = search.getView();
    result.leading = llvm::to_vector(search.getIndices());
    result.key = search.getValue();
  } else if (auto gather = dyn_cast_or_null<GatherOp>(op)) {
    if (!gather.getSorted() || gather.getIndices().empty() ||
        !gather.getResult().getType().isInteger(32))
      return failure();
    result.isSearch = false;
    result.view = gather.getView();
    result.leading = llvm::to_vector(gather.getIndices().drop_back());
    result.key = gather.getIndices().back();
  } else {
    return failure();
  }
  return success(ScoresOp::resolve(result.key) == scores.getKeys() &&
                 llvm::all_of(result.leading, [&](Value index) {
                   return axes.isUniform(index);
                 }));
}

FailureOr<SortedComparison> SortedComparison::match(arith::CmpIOp op,
                                                    ScoresOp scores,
                                                    const ValueAxes &axes) {
  SortedComparison result;
  result.op = op;
  result.predicate = op.getPredicate();
  result.limit = op.getRhs();
  if (result.predicate >= CmpIPredicate::ult)
    return failure();
  if (failed(matchData(op.getLhs(), scores, axes, result))) {
    result.limit = op.getLhs();
    result.predicate = attn::swapSides(result.predicate);
    if (failed(matchData(op.getRhs(), scores, axes, result)))
      return failure();
  }
  if (!axes.isPerRow(result.limit) || axes.isPerRow(result.key))
    return failure();
  return result;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

namespace {
/// Scalar code of a region, before a comparison.
class Emitter {
public:
  Emitter(OpBuilder &builder, SortedComparison &comparison)
      : builder(builder), loc(comparison.op.getLoc()), comparison(comparison) {}

  Value number(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  }
  Value compare(CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }
  Value both(Value a, Value b) {
    return arith::AndIOp::create(builder, loc, a, b);
  }
  Value either(Value a, Value b) {
    return arith::OrIOp::create(builder, loc, a, b);
  }
  Value minusOne(Value value) {
    return arith::SubIOp::create(builder, loc, value, number(1));
  }
  Value isBelow(Value bound) {
    return compare(CmpIPredicate::slt, comparison.key, bound);
  }
  Value isNotBelow(Value bound) {
    return compare(CmpIPredicate::sge, comparison.key, bound);
  }
  Value search(Value value) {
    return SearchOp::create(builder, loc, builder.getI32Type(), comparison.view,
                            comparison.leading, value);
  }
  Value size();
  Value element(Value index, Value size);
  /// What the comparison is for keys in memory.
  Value compareInside(Value from, Value above) {
    return compareWithBounds(builder, loc, comparison.predicate, comparison.key,
                             from, above);
  }

private:
  OpBuilder &builder;
  Location loc;
  SortedComparison &comparison;
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
  return builder.createOrFold<arith::IndexCastOp>(loc, builder.getI32Type(),
                                                  count);
}

/// Element number `index`; one before all keys before the first,
/// one after them after the last.
Value Emitter::element(Value index, Value size) {
  Value isBehind = compare(CmpIPredicate::sge, index, size);
  Value isBefore = compare(CmpIPredicate::slt, index, number(0));
  Value outside = select(isBefore, number(least), number(greatest));
  Value isOutside = either(isBehind, isBefore);
  SmallVector<Value> indices(comparison.leading);
  indices.push_back(index);
  // Memory out of range is not read.
  Value inside = GatherOp::create(builder, loc, builder.getI32Type(),
                                  comparison.view, indices, /*sorted=*/false);
  return select(isOutside, outside, inside);
}

Value attn::tile::compareWithBounds(OpBuilder &builder, Location loc,
                                    CmpIPredicate predicate, Value x,
                                    Value from, Value above) {
  auto isBelow = [&](Value bound) -> Value {
    return arith::CmpIOp::create(builder, loc, CmpIPredicate::slt, x, bound);
  };
  auto isNotBelow = [&](Value bound) -> Value {
    return arith::CmpIOp::create(builder, loc, CmpIPredicate::sge, x, bound);
  };
  switch (predicate) {
  case CmpIPredicate::eq: {
    Value isBehind = isNotBelow(from);
    return arith::AndIOp::create(builder, loc, isBehind, isBelow(above));
  }
  case CmpIPredicate::ne: {
    Value isBefore = isBelow(from);
    return arith::OrIOp::create(builder, loc, isBefore, isNotBelow(above));
  }
  case CmpIPredicate::slt:
    return isBelow(from);
  case CmpIPredicate::sle:
    return isBelow(above);
  case CmpIPredicate::sgt:
    return isNotBelow(above);
  case CmpIPredicate::sge:
    return isNotBelow(from);
  default:
    llvm_unreachable("matched with a sign");
  }
}

void SortedComparison::replace(RewriterBase &rewriter) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Emitter emit(rewriter, *this);
  Value size = emit.size();
  if (isSearch) {
    Value above = emit.element(limit, size);
    Value index = emit.minusOne(
        arith::MaxSIOp::create(rewriter, op.getLoc(), limit, emit.number(0)));
    Value from = emit.element(index, size);
    rewriter.replaceOp(op, emit.compareInside(from, above));
    return;
  }
  Value above = emit.search(limit);
  // Nothing is below the least number, which has none before it.
  Value isLeast = emit.compare(CmpIPredicate::eq, limit, emit.number(least));
  Value before = emit.search(emit.minusOne(limit));
  Value from = emit.select(isLeast, emit.number(0), before);
  Value result = emit.compareInside(from, above);
  // After the end of memory neither bound is: the test says the same for all
  // keys there, which may be wrong for the 0 that they read.
  bool answer = predicate == CmpIPredicate::ne ||
                predicate == CmpIPredicate::sgt ||
                predicate == CmpIPredicate::sge;
  Value isWrong =
      emit.compare(answer ? arith::invertPredicate(predicate) : predicate,
                   emit.number(0), limit);
  Value end = emit.select(isWrong, size, emit.number(greatest));
  result = answer ? emit.both(result, emit.isBelow(end))
                  : emit.either(result, emit.isNotBelow(end));
  rewriter.replaceOp(op, result);
}
