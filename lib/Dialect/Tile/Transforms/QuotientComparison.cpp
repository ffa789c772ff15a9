//===- QuotientComparison.cpp - quotients of positions as bounds ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuotientComparison.h"

#include "Divisors.h"
#include "SortedComparison.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Support/Predicates.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::tile;
using arith::CmpIPredicate;

static constexpr int64_t least = std::numeric_limits<int32_t>::min(),
                         greatest = std::numeric_limits<int32_t>::max(),
                         mostDivisor = int64_t(1) << 24;

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

/// The number of the row or of the key: never negative.
static bool isCoordinate(Value value, ScoresOp scores) {
  value = ScoresOp::resolve(value);
  return value == scores.getQueries() || value == scores.getKeys();
}

/// Coordinates, plus or minus each other and numbers that are the same for all
/// scores, that do not wrap around. Not of numbers so large that a bound of the
/// sum may be no i32.
static bool isPosition(Value value, ScoresOp scores, const ValueAxes &axes) {
  constexpr int64_t mostNumber = int64_t(1) << 30;
  if (!value.getType().isInteger(32))
    return false;
  if (std::optional<int64_t> number = getIntegerConstant(value))
    return std::abs(*number) < mostNumber;
  if (isCoordinate(value, scores) || axes.isUniform(value))
    return true;
  Operation *sum = value.getDefiningOp();
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp>(sum) &&
         !getMaskIntegerSizes().mayWrap(sum) &&
         isPosition(sum->getOperand(0), scores, axes) &&
         isPosition(sum->getOperand(1), scores, axes);
}

/// What a floored quotient divides, and by what.
static Value matchQuotient(Value value, ScoresOp scores, int64_t &divisor) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return nullptr;
  Value dividend = op->getOperand(0);
  // Of what is not negative they are all the same.
  bool isFloored = isa<arith::FloorDivSIOp, arith::ShRSIOp>(op) ||
                   (isa<arith::DivSIOp, arith::DivUIOp, arith::ShRUIOp>(op) &&
                    isCoordinate(dividend, scores));
  std::optional<int64_t> number = getQuotientDivisor(op);
  if (!isFloored || !number || *number > mostDivisor)
    return nullptr;
  divisor = *number;
  return divisor > 1 ? dividend : nullptr;
}

FailureOr<QuotientComparison> QuotientComparison::match(arith::CmpIOp op,
                                                        ScoresOp scores,
                                                        const ValueAxes &axes) {
  if (op.getPredicate() >= CmpIPredicate::ult)
    return failure();
  QuotientComparison result;
  result.op = op;
  for (bool isLeft : {true, false}) {
    Value quotient = isLeft ? op.getLhs() : op.getRhs();
    result.limit = isLeft ? op.getRhs() : op.getLhs();
    result.predicate =
        isLeft ? op.getPredicate() : attn::swapSides(op.getPredicate());
    result.position = matchQuotient(quotient, scores, result.divisor);
    if (!result.position || axes.isPerRow(quotient) ||
        !axes.isPerRow(result.limit) ||
        !isPosition(result.position, scores, axes))
      continue;
    int64_t divisor = 0;
    Value row = matchQuotient(result.limit, scores, divisor);
    result.isLimitInside =
        row && divisor == result.divisor && isCoordinate(row, scores);
    return result;
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

namespace {
/// Scalar code of a region, before a comparison.
struct Numbers {
  OpBuilder &builder;
  Location loc;

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  }
  Value compare(CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  }
  Value add(Value lhs, int64_t rhs) {
    return rhs == 0 ? lhs
                    : arith::AddIOp::create(builder, loc, lhs, constant(rhs))
                          .getResult();
  }
  Value mul(Value lhs, int64_t rhs) {
    return arith::MulIOp::create(builder, loc, lhs, constant(rhs));
  }
};
} // namespace

/// (limit + more) * divisor, the least or the greatest number where it is
/// beyond them.
static Value emitBound(OpBuilder &builder, QuotientComparison &comparison,
                       int64_t more) {
  Numbers emit{builder, comparison.op.getLoc()};
  int64_t divisor = comparison.divisor;
  Value limit = comparison.limit;
  if (std::optional<int64_t> number = getIntegerConstant(limit))
    return emit.constant(
        std::clamp((*number + more) * divisor, least, greatest));
  if (comparison.isLimitInside) {
    Value bound = emit.mul(limit, divisor);
    if (more == 0)
      return bound;
    return emit.add(arith::MinSIOp::create(builder, emit.loc, bound,
                                           emit.constant(greatest - divisor)),
                    divisor);
  }
  Value bound = emit.mul(emit.add(limit, more), divisor);
  Value isLow = emit.compare(CmpIPredicate::slt, limit,
                             emit.constant(least / divisor - more));
  Value isHigh = emit.compare(CmpIPredicate::sgt, limit,
                              emit.constant(greatest / divisor - more));
  bound = emit.select(isLow, emit.constant(least), bound);
  return emit.select(isHigh, emit.constant(greatest), bound);
}

void QuotientComparison::replace(RewriterBase &rewriter) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  bool wantsFrom =
      predicate != CmpIPredicate::sle && predicate != CmpIPredicate::sgt;
  bool wantsAbove =
      predicate != CmpIPredicate::slt && predicate != CmpIPredicate::sge;
  Value from = wantsFrom ? emitBound(rewriter, *this, 0) : nullptr;
  Value above = wantsAbove ? emitBound(rewriter, *this, 1) : nullptr;
  rewriter.replaceOp(op, compareWithBounds(rewriter, op.getLoc(), predicate,
                                           position, from, above));
}

//===----------------------------------------------------------------------===//
// Distances
//===----------------------------------------------------------------------===//

LogicalResult attn::tile::splitDistance(RewriterBase &rewriter,
                                        arith::CmpIOp op, ScoresOp scores,
                                        const ValueAxes &axes) {
  CmpIPredicate predicate = op.getPredicate();
  auto absolute = op.getLhs().getDefiningOp<math::AbsIOp>();
  Value limit = op.getRhs();
  if (!absolute) {
    absolute = op.getRhs().getDefiningOp<math::AbsIOp>();
    limit = op.getLhs();
    predicate = attn::swapSides(predicate);
  }
  bool isBelow =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
  bool isBeyond =
      predicate == CmpIPredicate::sgt || predicate == CmpIPredicate::sge;
  if (!absolute || (!isBelow && !isBeyond) || axes.isPerRow(absolute) ||
      !axes.isPerRow(limit) || !isPosition(absolute.getOperand(), scores, axes))
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Numbers emit{rewriter, op.getLoc()};
  Value position = absolute.getOperand();
  // The least number has no opposite: its own is a limit that every distance is
  // beyond, too.
  Value opposite = rewriter.createOrFold<arith::SubIOp>(
      op.getLoc(), emit.constant(0), limit);
  Value first = emit.compare(predicate, position, limit);
  Value second = emit.compare(attn::swapSides(predicate), position, opposite);
  if (isBelow)
    rewriter.replaceOpWithNewOp<arith::AndIOp>(op, first, second);
  else
    rewriter.replaceOpWithNewOp<arith::OrIOp>(op, first, second);
  return success();
}

//===----------------------------------------------------------------------===//
// Longer numbers
//===----------------------------------------------------------------------===//

/// What is computed from coordinates and constants, and does not wrap around:
/// neither the least number nor the greatest. Not of products, which are taken
/// to be small, but need not be.
static bool isOfCoordinates(Value value, ScoresOp scores) {
  if (isCoordinate(value, scores))
    return true;
  if (std::optional<int64_t> number = getIntegerConstant(value))
    return least < *number && *number < greatest;
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::FloorDivSIOp,
                         arith::DivSIOp, arith::RemSIOp, arith::ShRSIOp,
                         math::AbsIOp>(op) &&
         !getMaskIntegerSizes().mayWrap(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isOfCoordinates(operand, scores);
         });
}

LogicalResult attn::tile::narrowComparison(RewriterBase &rewriter,
                                           arith::CmpIOp op, ScoresOp scores,
                                           const ValueAxes &axes) {
  CmpIPredicate predicate = op.getPredicate();
  auto longer = op.getLhs().getDefiningOp<arith::ExtSIOp>();
  Value limit = op.getRhs();
  if (!longer) {
    longer = op.getRhs().getDefiningOp<arith::ExtSIOp>();
    limit = op.getLhs();
    predicate = attn::swapSides(predicate);
  }
  // A lane has many scores of a row, and but two of a column.
  if (!longer || predicate >= CmpIPredicate::ult || !axes.isPerRow(limit))
    return failure();
  Value position = longer.getIn();
  if (!position.getType().isInteger(32) || !isOfCoordinates(position, scores))
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        rewriter, loc, rewriter.getIntegerAttr(limit.getType(), value));
  };
  Value inside = rewriter.createOrFold<arith::MinSIOp>(
      loc, rewriter.createOrFold<arith::MaxSIOp>(loc, limit, number(least)),
      number(greatest));
  Value narrow =
      rewriter.createOrFold<arith::TruncIOp>(loc, position.getType(), inside);
  rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, predicate, position, narrow);
  return success();
}
