//===- Remainders.cpp - comparisons of remainders -------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Remainders.h"

#include "Integers.h"
#include "MaskWords.h"
#include "Offsets.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Support/Predicates.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;
using arith::CmpIPredicate;

/// Larger divisors are left alone: no tile is as wide.
static constexpr int64_t maxDivisor = int64_t(1) << 24;

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

std::optional<int64_t> attn::warp::getNumber(Value value) {
  if (auto splat = value.getDefiningOp<SplatOp>())
    value = splat.getScalar();
  return getConstantIntValue(value);
}

static bool isDivisor(std::optional<int64_t> number) {
  return number && *number > 1 && *number <= maxDivisor;
}

/// The quotient whose product with its divisor `value` is.
static Operation *matchRounded(Value value, int64_t &divisor) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::MulIOp, arith::ShLIOp>(op))
    return nullptr;
  std::optional<int64_t> factor = getNumber(op->getOperand(1));
  Value quotient = op->getOperand(0);
  if (!factor && isa<arith::MulIOp>(op)) {
    factor = getNumber(op->getOperand(0));
    quotient = op->getOperand(1);
  }
  Operation *division = quotient.getDefiningOp();
  if (!factor || !division || division->getNumOperands() != 2)
    return nullptr;
  std::optional<int64_t> by = getNumber(division->getOperand(1));
  if (isa<arith::ShLIOp>(op)) {
    if (!isa<arith::ShRSIOp>(division) || by != factor || *factor < 0 ||
        *factor >= 24)
      return nullptr;
    divisor = int64_t(1) << *factor;
    return division;
  }
  divisor = *factor;
  bool isDivision = isa<arith::FloorDivSIOp, arith::DivSIOp>(division);
  return isDivision && by == factor ? division : nullptr;
}

/// x of x mod m + (x mod m < 0 ? m : 0), the remainder with the dividend's
/// sign, written as a choice.
static std::optional<Remainder> matchChoice(Operation *choice) {
  auto sum = choice->getOperand(1).getDefiningOp<arith::AddIOp>();
  std::optional<Remainder> remainder = Remainder::match(choice->getOperand(2));
  if (!sum || !remainder || sum.getLhs() != choice->getOperand(2) ||
      getNumber(sum.getRhs()) != remainder->divisor)
    return std::nullopt;
  // Below zero, perhaps once more: and not zero.
  SmallVector<Value> conditions = {choice->getOperand(0)};
  if (auto both = conditions.front().getDefiningOp<arith::AndIOp>())
    conditions = {both.getLhs(), both.getRhs()};
  bool isNegative = false;
  for (Value condition : conditions) {
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getLhs() != choice->getOperand(2) ||
        getNumber(compare.getRhs()) != 0 ||
        (compare.getPredicate() != CmpIPredicate::slt &&
         compare.getPredicate() != CmpIPredicate::ne))
      return std::nullopt;
    isNegative |= compare.getPredicate() == CmpIPredicate::slt;
  }
  if (!isNegative)
    return std::nullopt;
  remainder->isFloored = true;
  return remainder;
}

std::optional<Remainder> Remainder::match(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::SelectOp, SelectOp>(op))
    return matchChoice(op);
  if (!op || op->getNumOperands() != 2)
    return std::nullopt;
  Remainder result;
  result.dividend = op->getOperand(0);
  if (isa<arith::SubIOp>(op)) {
    Operation *quotient = matchRounded(op->getOperand(1), result.divisor);
    if (!quotient || quotient->getOperand(0) != result.dividend ||
        !isDivisor(result.divisor))
      return std::nullopt;
    result.isFloored = !isa<arith::DivSIOp>(quotient);
    return result;
  }
  std::optional<int64_t> number = getNumber(op->getOperand(1));
  if (isa<arith::AndIOp>(op) && number && *number < maxDivisor &&
      llvm::isPowerOf2_64(*number + 1)) {
    result.divisor = *number + 1;
    return isDivisor(result.divisor) ? std::optional(result) : std::nullopt;
  }
  if (!isDivisor(number))
    return std::nullopt;
  result.divisor = *number;
  result.isFloored = isa<arith::RemUIOp>(op);
  bool isRest = isa<arith::RemSIOp>(op) ||
                (isa<arith::RemUIOp>(op) && llvm::isPowerOf2_64(*number));
  return isRest ? std::optional(result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Whether the constants of a row are a lane's columns, or minus these.
static bool ascends(const OffsetRow &row) {
  return areLaneColumns(row.constants);
}

static bool descends(const OffsetRow &row) {
  return areLaneColumns(llvm::map_to_vector(
      row.constants, [](int64_t constant) { return -constant; }));
}

namespace {
/// Remainders from `from` up to `to`, which is not one of them.
struct Residues {
  int64_t from = 0, to = 0;
};

/// Which remainders of the elements of a row are in an interval, or equal to a
/// value.
class RowTests {
public:
  RowTests(OpBuilder &builder, Location loc, int64_t divisor,
           const OffsetRow &row)
      : builder(builder), loc(loc), ints(builder, loc), divisor(divisor),
        row(row) {}

  /// None where a comparison of each is better.
  std::optional<SmallVector<Value>> findResidues(Residues residues,
                                                 bool isInverted);
  /// A limit that is no remainder equals none.
  SmallVector<Value> findEqual(Value limit, bool isInverted);

private:
  int64_t residueOf(int64_t number) const {
    return (number % divisor + divisor) % divisor;
  }
  Value modulo(Value value);
  Value subtract(Value lhs, Value rhs);
  Value findFirst(Value limit, bool isReversed);
  SmallVector<Value> findColumn(Value first, bool hasLanes, bool isInverted);
  SmallVector<Value> same(bool value) {
    Value constant = arith::ConstantIntOp::create(builder, loc, value, 1);
    return SmallVector<Value>(row.numbers.size(), constant);
  }

  OpBuilder &builder;
  Location loc;
  Integers ints;
  int64_t divisor;
  const OffsetRow &row;
};
} // namespace

Value RowTests::modulo(Value value) {
  if (llvm::isPowerOf2_64(divisor))
    return ints.bitAnd(value, divisor - 1);
  Value rest =
      arith::RemSIOp::create(builder, loc, value, ints.constant(divisor));
  return arith::SelectOp::create(builder, loc, ints.lessThan(rest, 0),
                                 ints.add(rest, divisor), rest);
}

/// lhs - rhs mod the divisor, of two remainders.
Value RowTests::subtract(Value lhs, Value rhs) {
  Value difference = arith::SubIOp::create(builder, loc, lhs, rhs);
  if (llvm::isPowerOf2_64(divisor))
    return ints.bitAnd(difference, divisor - 1);
  return arith::SelectOp::create(builder, loc, ints.lessThan(difference, 0),
                                 ints.add(difference, divisor), difference);
}

/// The first constant, from 0 on (or of their negatives), whose element has the
/// remainder `limit`: of the lane's columns where it has such, from the first.
Value RowTests::findFirst(Value limit, bool isReversed) {
  bool hasLanes = isReversed || ascends(row);
  int64_t shift = hasLanes ? row.constants.front() : 0;
  Value rest;
  if (std::optional<int64_t> number = getConstantIntValue(limit)) {
    limit = ints.constant(residueOf(*number - shift));
    rest = modulo(row.base);
  } else {
    rest = modulo(ints.add(row.base, shift));
  }
  return isReversed ? subtract(rest, limit) : subtract(limit, rest);
}

/// The elements that are `first` further than the first, and multiples of the
/// divisor.
SmallVector<Value> RowTests::findColumn(Value first, bool hasLanes,
                                        bool isInverted) {
  size_t count = row.numbers.size();
  if (hasLanes)
    if (std::optional<SmallVector<Value>> tests =
            testEvery(builder, loc, count, divisor, first, isInverted))
      return *tests;
  llvm::SmallDenseMap<int64_t, Value> ofResidue;
  SmallVector<Value> result;
  CmpIPredicate predicate = isInverted ? CmpIPredicate::ne : CmpIPredicate::eq;
  for (int64_t constant : row.constants) {
    int64_t distance =
        hasLanes ? std::abs(constant - row.constants.front()) : constant;
    Value &test = ofResidue[residueOf(distance)];
    if (!test)
      test = arith::CmpIOp::create(builder, loc, predicate, first,
                                   ints.constant(residueOf(distance)));
    result.push_back(test);
  }
  if (hasLanes)
    return testValues(builder, loc, result).value_or(result);
  return result;
}

std::optional<SmallVector<Value>> RowTests::findResidues(Residues residues,
                                                         bool isInverted) {
  int64_t length = residues.to - residues.from;
  if (length <= 0 || length == divisor)
    return same((length == divisor) != isInverted);
  bool isReversed = descends(row), hasLanes = isReversed || ascends(row);
  int64_t limit = isReversed ? residues.to - 1 : residues.from;
  if (length == 1)
    return findColumn(findFirst(ints.constant(limit), isReversed), hasLanes,
                      isInverted);
  if (!hasLanes || !isWorthIntervals(row.numbers.size(), divisor))
    return std::nullopt;
  return testIntervals(builder, loc, row.numbers.size(), divisor,
                       findFirst(ints.constant(limit), isReversed), length,
                       isInverted);
}

SmallVector<Value> RowTests::findEqual(Value limit, bool isInverted) {
  bool isReversed = descends(row);
  Value first = findFirst(limit, isReversed);
  std::optional<Remainder> remainder = Remainder::match(limit);
  bool isInside =
      remainder && remainder->isFloored && remainder->divisor <= divisor;
  if (!isInside) {
    // Further than any column.
    Value test = arith::CmpIOp::create(builder, loc, CmpIPredicate::ult, limit,
                                       ints.constant(divisor));
    first = arith::SelectOp::create(builder, loc, test, first,
                                    ints.constant(maxDivisor << 1));
  }
  return findColumn(first, isReversed || ascends(row), isInverted);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// The remainders for which a comparison with a constant holds.
static Residues getResidues(CmpIPredicate predicate, int64_t limit,
                            int64_t divisor) {
  bool hasSign = predicate < CmpIPredicate::ult;
  // A negative number is large without a sign.
  if (!hasSign && limit < 0)
    limit = divisor;
  int64_t at = std::clamp<int64_t>(limit, 0, divisor);
  int64_t after = std::clamp<int64_t>(limit + 1, 0, divisor);
  switch (predicate) {
  case CmpIPredicate::eq:
  case CmpIPredicate::ne:
    return {at, after};
  case CmpIPredicate::slt:
  case CmpIPredicate::ult:
    return {0, at};
  case CmpIPredicate::sle:
  case CmpIPredicate::ule:
    return {0, after};
  case CmpIPredicate::sgt:
  case CmpIPredicate::ugt:
    return {after, divisor};
  case CmpIPredicate::sge:
  case CmpIPredicate::uge:
    return {at, divisor};
  }
  llvm_unreachable("unknown predicate");
}

/// The predicate that is meant when both sides change places.
static CmpIPredicate swapAny(CmpIPredicate predicate) {
  switch (predicate) {
  case CmpIPredicate::ult:
    return CmpIPredicate::ugt;
  case CmpIPredicate::ule:
    return CmpIPredicate::uge;
  case CmpIPredicate::ugt:
    return CmpIPredicate::ult;
  case CmpIPredicate::uge:
    return CmpIPredicate::ule;
  default:
    return swapSides(predicate);
  }
}

namespace {
/// Elements that are remainders by one divisor of values plus constants.
struct Remainders {
  int64_t divisor = 1;
  bool isFloored = true;
  OffsetRows rows;

  /// None where not all are such, or the sums may wrap around and it matters.
  static Remainders match(ArrayRef<Value> values, ArrayRef<Value> limits,
                          ArrayRef<layout::Coord> coords, bool isPosition);
};
} // namespace

Remainders Remainders::match(ArrayRef<Value> values, ArrayRef<Value> limits,
                             ArrayRef<layout::Coord> coords, bool isPosition) {
  Remainders result;
  SmallVector<Offset> dividends;
  for (auto [number, value] : llvm::enumerate(values)) {
    std::optional<Remainder> remainder = Remainder::match(value);
    if (!remainder || !remainder->dividend.getType().isInteger(32))
      return result;
    if (number == 0) {
      result.divisor = remainder->divisor;
      result.isFloored = remainder->isFloored;
    }
    if (remainder->divisor != result.divisor ||
        remainder->isFloored != result.isFloored)
      return result;
    dividends.push_back(Offset::split(remainder->dividend));
    if (!dividends.back().base)
      return result;
  }
  if (isPosition || llvm::isPowerOf2_64(result.divisor))
    result.rows = OffsetRows::group(dividends, limits, coords);
  return result;
}

/// Each comparison once for every residue of the constants.
static SmallVector<Value>
shareResidues(arith::CmpIOp op, int64_t divisor, const OffsetRow &row,
              ArrayRef<Value> lhs, ArrayRef<Value> rhs, OpBuilder &builder) {
  llvm::SmallDenseMap<int64_t, Value> ofResidue;
  SmallVector<Value> tests;
  for (auto [number, constant] : llvm::zip_equal(row.numbers, row.constants)) {
    Value &test = ofResidue[(constant % divisor + divisor) % divisor];
    if (!test)
      test = arith::CmpIOp::create(builder, op.getLoc(), op.getPredicate(),
                                   lhs[number], rhs[number]);
    tests.push_back(test);
  }
  if (ascends(row) || descends(row))
    return testValues(builder, op.getLoc(), tests).value_or(tests);
  return tests;
}

std::optional<SmallVector<Value>>
attn::warp::compareRemainders(arith::CmpIOp op, ArrayRef<Value> lhs,
                              ArrayRef<Value> rhs,
                              ArrayRef<layout::Coord> coords,
                              const Positions &positions, OpBuilder &builder) {
  CmpIPredicate predicate = op.getPredicate();
  Remainders left =
      Remainders::match(lhs, rhs, coords, positions.hasDividend(op, 0));
  Remainders right =
      Remainders::match(rhs, lhs, coords, positions.hasDividend(op, 1));
  bool isLeft = left.rows.isBetter(right.rows);
  const Remainders &remainders = isLeft ? left : right;
  if (remainders.rows.groups.empty())
    return std::nullopt;
  if (!isLeft)
    predicate = swapAny(predicate);
  bool isEquality =
      predicate == CmpIPredicate::eq || predicate == CmpIPredicate::ne;
  // Only 0 is the same with either sign.
  bool isZero = llvm::all_of(isLeft ? rhs : lhs, [](Value limit) {
    return getConstantIntValue(limit) == 0;
  });
  if (!remainders.isFloored && !(isEquality && isZero))
    return std::nullopt;
  SmallVector<Value> result(lhs.size());
  for (const OffsetRow &row : remainders.rows.groups) {
    RowTests tests(builder, op.getLoc(), remainders.divisor, row);
    std::optional<SmallVector<Value>> found;
    bool isInverted = predicate == CmpIPredicate::ne;
    if (std::optional<int64_t> number = getConstantIntValue(row.limit))
      found = tests.findResidues(
          getResidues(predicate, *number, remainders.divisor), isInverted);
    else if (isEquality)
      found = tests.findEqual(row.limit, isInverted);
    if (!found)
      found = shareResidues(op, remainders.divisor, row, lhs, rhs, builder);
    for (auto [number, test] : llvm::zip_equal(row.numbers, *found))
      result[number] = test;
  }
  return result;
}
