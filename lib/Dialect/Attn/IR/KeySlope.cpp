//===- KeySlope.cpp - scores that change by a slope along keys ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/KeySlope.h"

#include "attn/Dialect/Attn/IR/IntegerSizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

/// As many operations of a sum are looked at: one that repeats its parts would
/// be gone through again and again.
static constexpr int64_t mostSteps = 256;

namespace {
/// A linear function of i, j, and values from outside.
struct KeyDistance {
  int64_t rows = 0, keys = 0;
  KeyOffset rest;

  /// True if it is the distance of j and i, but for the rest and the sign.
  bool isBetween() const { return rows == -keys && std::abs(keys) == 1; }
  /// Where such a distance, j - i + rest or i - j - rest, is 0.
  KeyOffset getZero() const;
};

/// Of a region in which argument `first` is i, and the next one j.
class DistanceReader {
public:
  DistanceReader(Region &region, unsigned first)
      : region(region), first(first) {}

  /// Adds `value`, `factor` times; false if it is no linear function.
  bool add(Value value, int64_t factor, KeyDistance &sum);

private:
  Region &region;
  unsigned first;
  IntegerSizes sizes;
  int64_t steps = 0;
};
} // namespace

KeyOffset KeyDistance::getZero() const {
  KeyOffset zero;
  zero.constant = -keys * rest.constant;
  for (auto [value, count] : rest.values)
    zero.values[value] = -keys * count;
  return zero;
}

bool DistanceReader::add(Value value, int64_t factor, KeyDistance &sum) {
  if (++steps > mostSteps)
    return false;
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number))) {
    sum.rest.constant += factor * number.getSExtValue();
    return true;
  }
  auto argument = dyn_cast<BlockArgument>(value);
  bool isOwn = argument && argument.getOwner() == &region.front();
  if (isOwn && argument.getArgNumber() < first + 2) {
    if (argument.getArgNumber() < first)
      return false;
    (argument.getArgNumber() == first ? sum.rows : sum.keys) += factor;
    return true;
  }
  // From outside, or captured.
  if (isOwn || !region.isAncestor(value.getParentRegion())) {
    sum.rest.values[value] += factor;
    return value.getType().isInteger(32);
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::SIToFPOp>(op))
    return add(op->getOperand(0), factor, sum);
  bool isDifference = isa_and_present<arith::SubIOp, arith::SubFOp>(op);
  if ((!isDifference && !isa_and_present<arith::AddIOp, arith::AddFOp>(op)) ||
      sizes.mayWrap(op))
    return false;
  return add(op->getOperand(0), factor, sum) &&
         add(op->getOperand(1), isDifference ? -factor : factor, sum);
}

namespace {
/// Which values of a region depend on some of its arguments.
class Dependence {
public:
  Dependence(Region &region, ArrayRef<unsigned> arguments) {
    for (unsigned number : arguments)
      dependent.insert(region.getArgument(number));
    // Of what a nested region reads nothing is said.
    for (Operation &op : region.front())
      if (op.getNumRegions() != 0 ||
          llvm::any_of(op.getOperands(),
                       [&](Value value) { return of(value); }))
        dependent.insert_range(op.getResults());
  }

  bool of(Value value) const { return dependent.contains(value); }

private:
  DenseSet<Value> dependent;
};

/// Takes a sum apart.
class SlopeReader {
public:
  explicit SlopeReader(Region &score)
      : product(score.getArgument(0)), key(score.getArgument(4)),
        byKey(score, {0, 4}), byRow(score, {0, 3, 4}),
        distances(score, /*first=*/3) {}

  /// Adds `value`, `factor` times; false if it is no sum of this kind.
  bool add(Value value, const ConstantTerm &factor);

  KeySlope found;
  bool hasPositions = false;

private:
  bool addProduct(Value lhs, Value rhs, ConstantTerm factor);
  bool addMagnitude(Value value, const ConstantTerm &factor);

  Value product, key;
  Dependence byKey, byRow;
  DistanceReader distances;
  IntegerSizes sizes;
  int64_t steps = 0;
};
} // namespace

static ConstantTerm negated(ConstantTerm term) {
  term.constant = -term.constant;
  return term;
}

bool SlopeReader::addProduct(Value lhs, Value rhs, ConstantTerm factor) {
  if (byRow.of(rhs))
    std::swap(lhs, rhs);
  if (byRow.of(rhs))
    return false;
  APFloat number(0.0f);
  if (matchPattern(rhs, m_ConstantFloat(&number)))
    factor.constant *= number.convertToDouble();
  else
    factor.factors.push_back(rhs);
  return add(lhs, factor);
}

bool SlopeReader::add(Value value, const ConstantTerm &factor) {
  if (++steps > mostSteps)
    return false;
  if (!byKey.of(value))
    return true;
  if (value == product || value == key) {
    hasPositions |= value == key;
    (value == key ? found.slope : found.scale).push_back(factor);
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (!op || !(value.getType().isF32() || value.getType().isInteger(32)) ||
      sizes.mayWrap(op))
    return false;
  auto operand = [&](unsigned number) { return op->getOperand(number); };
  if (isa<arith::AddFOp, arith::AddIOp>(op))
    return add(operand(0), factor) && add(operand(1), factor);
  if (isa<arith::SubFOp, arith::SubIOp>(op))
    return add(operand(0), factor) && add(operand(1), negated(factor));
  if (isa<arith::NegFOp>(op))
    return add(operand(0), negated(factor));
  // A product of integers may wrap around.
  if (isa<arith::MulFOp>(op))
    return addProduct(operand(0), operand(1), factor);
  if (isa<math::FmaOp>(op))
    return addProduct(operand(0), operand(1), factor) &&
           add(operand(2), factor);
  if (isa<arith::SIToFPOp>(op))
    return add(operand(0), factor);
  if (isa<math::AbsFOp, math::AbsIOp>(op))
    return addMagnitude(operand(0), factor);
  return false;
}

bool SlopeReader::addMagnitude(Value value, const ConstantTerm &factor) {
  KeyDistance distance;
  if (found.peak || !distances.add(value, 1, distance) || !distance.isBetween())
    return false;
  found.peak = distance.getZero();
  found.slope.push_back(factor);
  return true;
}

std::optional<KeySlope> attn::readKeySlope(Region &score) {
  if (score.empty())
    return std::nullopt;
  SlopeReader reader(score);
  if (!reader.add(score.front().getTerminator()->getOperand(0), {}) ||
      reader.found.slope.empty() || (reader.found.peak && reader.hasPositions))
    return std::nullopt;
  return std::move(reader.found);
}

std::optional<int64_t> KeyOffset::minus(const KeyOffset &other) const {
  llvm::SmallMapVector<Value, int64_t, 4> rest = values;
  for (auto [value, count] : other.values)
    rest[value] -= count;
  if (llvm::any_of(rest, [](const auto &entry) { return entry.second != 0; }))
    return std::nullopt;
  return constant - other.constant;
}

namespace {
class KeyIntervalReader {
public:
  explicit KeyIntervalReader(Region &mask) : distances(mask, /*first=*/2) {}

  bool readCondition(Value condition);

  KeyInterval found;

private:
  DistanceReader distances;
  int64_t steps = 0;
};
} // namespace

bool KeyIntervalReader::readCondition(Value condition) {
  using Predicate = arith::CmpIPredicate;
  if (++steps > mostSteps)
    return false;
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return readCondition(both.getLhs()) && readCondition(both.getRhs());
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return false;
  // lhs - rhs <= 0, or >= 0.
  KeyDistance distance;
  if (!distances.add(compare.getLhs(), 1, distance) ||
      !distances.add(compare.getRhs(), -1, distance))
    return false;
  Predicate predicate = compare.getPredicate();
  bool isLess = predicate == Predicate::sle || predicate == Predicate::slt;
  if (!isLess && predicate != Predicate::sge && predicate != Predicate::sgt)
    return false;
  if (predicate == Predicate::slt)
    ++distance.rest.constant;
  if (predicate == Predicate::sgt)
    --distance.rest.constant;
  if (!distance.isBetween())
    return false;
  (isLess == (distance.keys > 0) ? found.upper : found.lower)
      .push_back(distance.getZero());
  return true;
}

std::optional<KeyInterval> attn::readKeyInterval(Region &mask) {
  if (mask.empty())
    return KeyInterval();
  KeyIntervalReader reader(mask);
  if (!reader.readCondition(mask.front().getTerminator()->getOperand(0)))
    return std::nullopt;
  return std::move(reader.found);
}
