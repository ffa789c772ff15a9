//===- MaskShape.cpp - what a mask shows a query --------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskShape.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;
using arith::CmpIPredicate;

/// Of b, h, i, j.
static constexpr unsigned queryNumber = 2, keyNumber = 3;

static bool isEquality(arith::CmpIOp compare) {
  return compare.getPredicate() == CmpIPredicate::eq ||
         compare.getPredicate() == CmpIPredicate::ne;
}

bool plan::isHalf(Region &mask) {
  int comparisons = 0;
  for (Operation &op : mask.front()) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      ++comparisons;
      if (isEquality(compare))
        return false;
    } else if (!isa<arith::AddIOp, arith::SubIOp, arith::ConstantOp,
                    arith::ExtSIOp, arith::IndexCastOp>(op) &&
               !op.hasTrait<OpTrait::IsTerminator>()) {
      return false;
    }
  }
  return comparisons == 1;
}

namespace {
/// How values of a mask change from key to key. Operations are read in order,
/// each once.
class Trends {
public:
  explicit Trends(Block &block)
      : positions(
            {block.getArgument(queryNumber), block.getArgument(keyNumber)}),
        queries({block.getArgument(queryNumber)}) {
    trends[block.getArgument(keyNumber)] = 1;
  }

  void read(Operation &op);
  /// Whether it depends on the query or the key.
  bool isOfPosition(Value value) const { return positions.contains(value); }
  bool isOfQuery(Value value) const { return queries.contains(value); }
  /// Whether a condition bounds the keys from above (1), from below (-1) or not
  /// at all (0); nullopt: otherwise.
  std::optional<int> boundOf(arith::CmpIOp compare) const;

private:
  /// Whether a value grows with the key (1), falls (-1), or has nothing to do
  /// with it (0); nullopt: neither.
  std::optional<int> trendOf(Value value) const {
    auto found = trends.find(value);
    return found == trends.end() ? 0 : found->second;
  }
  std::optional<int> combine(Operation &op) const;

  DenseSet<Value> positions, queries;
  DenseMap<Value, std::optional<int>> trends; // of those that are not 0
};
} // namespace

std::optional<int> Trends::combine(Operation &op) const {
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return trendOf(op.getOperand(0));
  bool isDifference = isa<arith::SubIOp>(op);
  if (!isDifference && !isa<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::nullopt;
  std::optional<int> first = trendOf(op.getOperand(0)),
                     second = trendOf(op.getOperand(1));
  if (!first || !second)
    return std::nullopt;
  int other = isDifference ? -*second : *second;
  if (*first * other < 0)
    return std::nullopt;
  return *first != 0 ? *first : other;
}

void Trends::read(Operation &op) {
  bool isOfKey = llvm::any_of(
      op.getOperands(), [&](Value operand) { return trendOf(operand) != 0; });
  auto isOfAny = [&](const DenseSet<Value> &values) {
    return llvm::any_of(op.getOperands(), [&](Value operand) {
      return values.contains(operand);
    });
  };
  bool isOfPosition = isOfAny(positions), isOfQuery = isOfAny(queries);
  for (Value result : op.getResults()) {
    if (isOfKey)
      trends[result] = combine(op);
    if (isOfPosition)
      positions.insert(result);
    if (isOfQuery)
      queries.insert(result);
  }
}

std::optional<int> Trends::boundOf(arith::CmpIOp compare) const {
  std::optional<int> lhs = trendOf(compare.getLhs()),
                     rhs = trendOf(compare.getRhs());
  if (!lhs || !rhs || *lhs * *rhs > 0)
    return std::nullopt;
  int trend = *lhs != 0 ? *lhs : -*rhs;
  if (trend == 0)
    return 0;
  switch (compare.getPredicate()) {
  case CmpIPredicate::eq:
  case CmpIPredicate::ne:
    return std::nullopt;
  case CmpIPredicate::slt:
  case CmpIPredicate::sle:
  case CmpIPredicate::ult:
  case CmpIPredicate::ule:
    return trend;
  default:
    return -trend;
  }
}

/// x / c * c.
static bool isRounded(Value value) {
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product && llvm::any_of(product->getOperands(), [](Value operand) {
           Operation *op = operand.getDefiningOp();
           return isa_and_nonnull<arith::DivSIOp, arith::DivUIOp,
                                  arith::FloorDivSIOp>(op);
         });
}

/// A remainder, or x - x / c * c.
static bool isRemainder(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto difference = dyn_cast_or_null<arith::SubIOp>(op))
    return isRounded(difference.getRhs());
  return isa_and_nonnull<arith::RemSIOp, arith::RemUIOp, arith::AndIOp>(op) ||
         isRounded(value);
}

/// Of conditions.
static bool isChoice(Operation &op) {
  return isa<arith::OrIOp, arith::XOrIOp>(op) &&
         op.getResult(0).getType().isInteger(1);
}

/// Whether data are read by a position.
static bool isRead(Operation &op, const Trends &trends) {
  return isa<CaptureLoadOp, CaptureSearchOp>(op) &&
         trends.isOfPosition(op.getResult(0));
}

bool plan::isScattered(Region &mask) {
  Trends trends(mask.front());
  bool hasChoice = false, isUnknown = false;
  bool isBoundedAbove = false, isBoundedBelow = false;
  for (Operation &op : mask.front()) {
    trends.read(op);
    if (isRead(op, trends))
      return true;
    hasChoice |= isChoice(op);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!compare)
      continue;
    if (isEquality(compare) &&
        (isRemainder(compare.getLhs()) || isRemainder(compare.getRhs())))
      return true;
    std::optional<int> bound = trends.boundOf(compare);
    isUnknown |= !bound;
    isBoundedAbove |= bound == 1;
    isBoundedBelow |= bound == -1;
  }
  return hasChoice && (isUnknown || (isBoundedAbove && isBoundedBelow));
}

/// After how many steps of a position an operation's result repeats; 0 if it is
/// no remainder by a constant.
static int64_t findPeriod(Operation &op) {
  if (isa<arith::RemSIOp, arith::RemUIOp>(op))
    return getConstantIntValue(op.getOperand(1)).value_or(0);
  if (auto bits = dyn_cast<arith::AndIOp>(op)) {
    std::optional<int64_t> mask = getConstantIntValue(bits.getRhs());
    return mask && !bits.getType().isInteger(1) ? *mask + 1 : 0;
  }
  // x - x / c * c.
  auto difference = dyn_cast<arith::SubIOp>(op);
  if (!difference || !isRounded(difference.getRhs()))
    return 0;
  auto product = difference.getRhs().getDefiningOp<arith::MulIOp>();
  for (Value factor : product->getOperands())
    if (std::optional<int64_t> constant = getConstantIntValue(factor))
      return *constant;
  return 0;
}

int64_t plan::countPeriods(Region &mask) {
  // Keys of the smallest usual block, and queries of the smallest usual tile.
  constexpr int64_t mostOfKeys = 64, mostOfQueries = 128;
  Trends trends(mask.front());
  DenseMap<Value, int64_t> periods;
  int64_t numPeriods = 0;
  bool isCompared = false;
  for (Operation &op : mask.front()) {
    trends.read(op);
    if (isRead(op, trends) || isChoice(op))
      return 0;
    int64_t longest = findPeriod(op);
    numPeriods += longest != 0;
    if (longest == 0)
      for (Value operand : op.getOperands())
        longest = std::max(longest, periods.lookup(operand));
    if (longest == 0)
      continue;
    if (!isa<arith::CmpIOp>(op)) {
      for (Value result : op.getResults())
        if (!result.getType().isInteger(1))
          periods[result] = longest;
      continue;
    }
    bool isOfQuery = llvm::any_of(op.getOperands(), [&](Value operand) {
      return trends.isOfQuery(operand);
    });
    if (longest > (isOfQuery ? mostOfQueries : mostOfKeys))
      return 0;
    isCompared = true;
  }
  return isCompared ? numPeriods : 0;
}

bool plan::isOfDocuments(Region &mask) {
  Trends trends(mask.front());
  auto readsFor = [&](Value value, bool isOfQuery) {
    Operation *op = value.getDefiningOp();
    return op && isRead(*op, trends) && trends.isOfQuery(value) == isOfQuery;
  };
  bool hasDocuments = false;
  for (Operation &op : mask.front()) {
    trends.read(op);
    if (isChoice(op))
      return false;
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!compare || compare.getPredicate() != CmpIPredicate::eq)
      continue;
    for (bool isLeft : {false, true})
      hasDocuments |= readsFor(compare.getLhs(), isLeft) &&
                      readsFor(compare.getRhs(), !isLeft);
  }
  return hasDocuments;
}

/// The sum of what constants in a sum or a difference are.
static int64_t sumConstants(Value value, unsigned depth = 0) {
  constexpr unsigned deepest = 20;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::abs(*constant);
  Operation *op = value.getDefiningOp();
  if (depth == deepest ||
      !isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::ExtSIOp,
                       arith::IndexCastOp>(op))
    return 0;
  int64_t sum = 0;
  for (Value operand : op->getOperands())
    sum += sumConstants(operand, depth + 1);
  return sum;
}

int64_t plan::countNearKeys(Region &mask) {
  Trends trends(mask.front());
  int64_t fewest = 0;
  for (Operation &op : mask.front()) {
    trends.read(op);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!compare || trends.boundOf(compare) != -1 ||
        (!trends.isOfQuery(compare.getLhs()) &&
         !trends.isOfQuery(compare.getRhs())))
      continue;
    int64_t count =
        sumConstants(compare.getLhs()) + sumConstants(compare.getRhs());
    if (count != 0)
      fewest = fewest == 0 ? count : std::min(fewest, count);
  }
  return fewest;
}

bool plan::comparesFew(Region &mask) {
  constexpr unsigned fewBits = 32;
  Trends trends(mask.front());
  Value key = mask.getArgument(keyNumber);
  auto isPlain = [&](Value index) {
    return isa<BlockArgument>(index) || !trends.isOfPosition(index);
  };
  unsigned numbersOfKeys = 0, numbersOfQueries = 0;
  for (Operation &op : mask.front()) {
    trends.read(op);
    if (op.getNumResults() != 1 || !trends.isOfPosition(op.getResult(0)))
      continue;
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      bool isOfQuery = trends.isOfQuery(compare.getLhs()) ||
                       trends.isOfQuery(compare.getRhs());
      if (isOfQuery && trends.boundOf(compare) == -1)
        return false;
    } else if (auto load = dyn_cast<CaptureLoadOp>(op)) {
      bool isNarrow = getElementTypeOrSelf(load.getResult().getType())
                          .getIntOrFloatBitWidth() <= fewBits;
      ++(llvm::is_contained(load.getIndices(), key) ? numbersOfKeys
                                                    : numbersOfQueries);
      if (!isNarrow || !llvm::all_of(load.getIndices(), isPlain))
        return false;
    } else if (!isa<arith::CmpFOp, arith::SelectOp, arith::AddIOp,
                    arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
                    arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
                    arith::IndexCastOp>(op) &&
               !op.getResult(0).getType().isInteger(1)) {
      return false;
    }
  }
  return numbersOfKeys == 1 && numbersOfQueries <= 1;
}

namespace {
/// Keys that conditions show, all of them: from so many before the query to so
/// many after it, or the first ones.
struct ShownKeys {
  std::optional<int64_t> before, after, first;
  /// Only the first queries see them.
  bool isOfFirstQueries = false;

  void intersect(const ShownKeys &other);
  /// 0: not known.
  int64_t count() const;
};

/// Reads a mask's conditions as intervals of which one has to show a key.
class ShownKeysReader {
public:
  explicit ShownKeysReader(Block &block)
      : trends(block), query(block.getArgument(queryNumber)),
        key(block.getArgument(keyNumber)) {
    for (Operation &op : block)
      trends.read(op);
  }

  SmallVector<ShownKeys> read(Value condition, unsigned depth = 0) const;

private:
  ShownKeys readComparison(arith::CmpIOp compare) const;

  Trends trends;
  Value query, key;
};
} // namespace

void ShownKeys::intersect(const ShownKeys &other) {
  auto take = [](std::optional<int64_t> &mine, std::optional<int64_t> its) {
    if (its)
      mine = mine ? std::min(*mine, *its) : *its;
  };
  take(before, other.before);
  take(after, other.after);
  take(first, other.first);
  isOfFirstQueries |= other.isOfFirstQueries;
}

int64_t ShownKeys::count() const {
  int64_t ofWindow = before && after ? *before + *after + 1 : 0;
  if (first && ofWindow != 0)
    return std::min(*first, ofWindow);
  return first.value_or(ofWindow);
}

ShownKeys ShownKeysReader::readComparison(arith::CmpIOp compare) const {
  constexpr int64_t mostQueries = 256;
  Value lhs = compare.getLhs(), rhs = compare.getRhs();
  int64_t count = sumConstants(lhs) + sumConstants(rhs);
  bool isBelow = compare.getPredicate() == CmpIPredicate::slt ||
                 compare.getPredicate() == CmpIPredicate::sle;
  ShownKeys keys;
  // |i - j| < c.
  auto distance = lhs.getDefiningOp<math::AbsIOp>();
  auto difference = distance
                        ? distance.getOperand().getDefiningOp<arith::SubIOp>()
                        : arith::SubIOp();
  if (difference) {
    Value from = difference.getLhs(), to = difference.getRhs();
    if (isBelow && count != 0 &&
        ((from == query && to == key) || (from == key && to == query)))
      keys.before = keys.after = count;
    return keys;
  }
  std::optional<int> bound = trends.boundOf(compare);
  bool isOfQuery = trends.isOfQuery(lhs) || trends.isOfQuery(rhs);
  if (bound == 1 && isOfQuery)
    keys.after = count;
  else if (bound == -1 && isOfQuery && count != 0)
    keys.before = count;
  else if (bound == 1 && count != 0)
    keys.first = count;
  else if (bound == 0 && lhs == query && isBelow && count != 0)
    keys.isOfFirstQueries = count <= mostQueries;
  return keys;
}

SmallVector<ShownKeys> ShownKeysReader::read(Value condition,
                                             unsigned depth) const {
  constexpr unsigned deepest = 16, most = 16;
  Operation *op = condition.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op))
    return {readComparison(compare)};
  if (depth == deepest || !isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op))
    return {ShownKeys()};
  SmallVector<ShownKeys> left = read(op->getOperand(0), depth + 1),
                         right = read(op->getOperand(1), depth + 1);
  bool isChoice = isa<arith::OrIOp>(op);
  size_t size =
      isChoice ? left.size() + right.size() : left.size() * right.size();
  if (size > most)
    return {ShownKeys()};
  if (isChoice) {
    llvm::append_range(left, right);
    return left;
  }
  SmallVector<ShownKeys> both;
  for (const ShownKeys &mine : left)
    for (const ShownKeys &its : right)
      both.emplace_back(mine).intersect(its);
  return both;
}

int64_t plan::countSeenKeys(Region &mask) {
  Block &block = mask.front();
  ShownKeysReader reader(block);
  int64_t sum = 0;
  for (const ShownKeys &keys :
       reader.read(block.getTerminator()->getOperand(0))) {
    if (keys.isOfFirstQueries)
      continue;
    int64_t count = keys.count();
    if (count == 0)
      return 0;
    sum += count;
  }
  return sum;
}
