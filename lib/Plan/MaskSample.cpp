//===- MaskSample.cpp - how much of a mask tiles visit -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which keys quotients, remainders and alternatives show is not told from their
// form: that all queries see the last 16 keys of each 128 leaves half of all
// blocks of 64 keys empty, and none of 128. So the mask is run, for every
// fourth query of a sequence of 4608, and the shown pairs of each cell of 64
// queries and 32 keys are counted, of which tiles consist.
//
// Values are 32 bits wide, whatever their type, and wrap around: a guess for
// the choice of a plan may be wrong about numbers beyond.
//
//===----------------------------------------------------------------------===//

#include "MaskSample.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace attn;
using arith::CmpIPredicate;

namespace {
/// Of the sequence; sizes of tiles divide it.
constexpr int64_t length = 4608;
constexpr int64_t cellQueries = 64, cellKeys = 32;
/// Queries of a cell that are looked at: the first and the last one, and some
/// in between, of every remainder by small numbers.
constexpr int64_t queriesInCell[] = {0,  4,  8,  12, 16, 21, 25, 29,
                                     33, 37, 42, 46, 50, 54, 58, 63};
/// One after the other of so many queries.
constexpr int64_t heads[] = {0, 5}, queriesOfHead = 768;
/// Queries and keys of tiles.
constexpr std::pair<int64_t, int64_t> tileSizes[] = {
    {256, 64}, {192, 96}, {192, 64}, {128, 128}, {128, 64}};

/// A value for all keys, or one number where it is the same for all.
struct KeyNumbers {
  bool isOfQuery = false;
  std::vector<int32_t> numbers = {0};
};

class MaskRunner {
public:
  explicit MaskRunner(Block &mask) : mask(mask) {}

  /// Computes what is the same for all queries; false if something is unknown.
  bool start(int64_t head);
  /// 1 for the keys that the query sees, 0 for others; one number for all.
  ArrayRef<int32_t> run(int64_t query);

private:
  bool evaluate(Operation &op);

  Block &mask;
  DenseMap<Value, KeyNumbers> values;
  SmallVector<Operation *> ofQuery; // in order
};
} // namespace

template <typename Function>
static void combine(ArrayRef<int32_t> lhs, ArrayRef<int32_t> rhs,
                    std::vector<int32_t> &result, Function function) {
  size_t size = std::max(lhs.size(), rhs.size());
  result.resize(size);
  int32_t *to = result.data();
  // Loops that the compiler makes vectors of.
  if (lhs.size() == rhs.size()) {
    for (size_t i = 0; i < size; ++i)
      to[i] = function(lhs[i], rhs[i]);
  } else if (rhs.size() == 1) {
    int32_t right = rhs[0];
    for (size_t i = 0; i < size; ++i)
      to[i] = function(lhs[i], right);
  } else {
    int32_t left = lhs[0];
    for (size_t i = 0; i < size; ++i)
      to[i] = function(left, rhs[i]);
  }
}

/// Rounded towards zero: by floats, of which there are vectors.
static int32_t divide(int32_t lhs, int32_t rhs) {
  double divisor = rhs == 0 ? 1 : rhs;
  double quotient = double(lhs) / divisor;
  // The least number by -1.
  constexpr double greatest = 2147483647;
  return int32_t(quotient > greatest ? greatest : quotient);
}
static int32_t divideDown(int32_t lhs, int32_t rhs) {
  int32_t quotient = divide(lhs, rhs);
  return quotient -
         int32_t(quotient * int64_t(rhs) != lhs && (lhs < 0) != (rhs < 0));
}
static int32_t shiftCount(int32_t count) { return count & 31; }

/// 1 where the comparison holds.
template <typename Combine>
static bool withComparison(CmpIPredicate predicate, Combine combine) {
  using U = uint32_t;
  switch (predicate) {
  case CmpIPredicate::eq:
    return combine([](int32_t a, int32_t b) { return int32_t(a == b); });
  case CmpIPredicate::ne:
    return combine([](int32_t a, int32_t b) { return int32_t(a != b); });
  case CmpIPredicate::slt:
    return combine([](int32_t a, int32_t b) { return int32_t(a < b); });
  case CmpIPredicate::sle:
    return combine([](int32_t a, int32_t b) { return int32_t(a <= b); });
  case CmpIPredicate::sgt:
    return combine([](int32_t a, int32_t b) { return int32_t(a > b); });
  case CmpIPredicate::sge:
    return combine([](int32_t a, int32_t b) { return int32_t(a >= b); });
  case CmpIPredicate::ult:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) < U(b)); });
  case CmpIPredicate::ule:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) <= U(b)); });
  case CmpIPredicate::ugt:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) > U(b)); });
  case CmpIPredicate::uge:
    return combine([](int32_t a, int32_t b) { return int32_t(U(a) >= U(b)); });
  }
  return false;
}

/// What `combine` does with the function of two numbers that an operation is;
/// false: it is none.
template <typename Combine>
static bool withFunction(Operation &op, Combine combine) {
  using U = uint32_t;
  return TypeSwitch<Operation *, bool>(&op)
      .Case([&](arith::AddIOp) {
        return combine([](int32_t a, int32_t b) { return int32_t(U(a) + b); });
      })
      .Case([&](arith::SubIOp) {
        return combine([](int32_t a, int32_t b) { return int32_t(U(a) - b); });
      })
      .Case([&](arith::MulIOp) {
        return combine([](int32_t a, int32_t b) { return int32_t(U(a) * b); });
      })
      .template Case<arith::DivSIOp, arith::DivUIOp>(
          [&](Operation *) { return combine(divide); })
      .Case([&](arith::FloorDivSIOp) { return combine(divideDown); })
      .template Case<arith::RemSIOp, arith::RemUIOp>([&](Operation *) {
        return combine([](int32_t a, int32_t b) {
          return a - int32_t(U(divide(a, b)) * b);
        });
      })
      .Case([&](arith::AndIOp) {
        return combine([](int32_t a, int32_t b) { return a & b; });
      })
      .Case([&](arith::OrIOp) {
        return combine([](int32_t a, int32_t b) { return a | b; });
      })
      .Case([&](arith::XOrIOp) {
        return combine([](int32_t a, int32_t b) { return a ^ b; });
      })
      .Case([&](arith::ShLIOp) {
        return combine([](int32_t a, int32_t b) {
          return int32_t(U(a) << shiftCount(b));
        });
      })
      .Case([&](arith::ShRSIOp) {
        return combine([](int32_t a, int32_t b) { return a >> shiftCount(b); });
      })
      .Case([&](arith::ShRUIOp) {
        return combine([](int32_t a, int32_t b) {
          return int32_t(U(a) >> shiftCount(b));
        });
      })
      .template Case<arith::MinSIOp, arith::MinUIOp>([&](Operation *) {
        return combine([](int32_t a, int32_t b) { return std::min(a, b); });
      })
      .template Case<arith::MaxSIOp, arith::MaxUIOp>([&](Operation *) {
        return combine([](int32_t a, int32_t b) { return std::max(a, b); });
      })
      .Case([&](arith::CmpIOp compare) {
        return withComparison(compare.getPredicate(), combine);
      })
      .Default(false);
}

static void select(ArrayRef<int32_t> condition, ArrayRef<int32_t> yes,
                   ArrayRef<int32_t> no, std::vector<int32_t> &result) {
  size_t size = std::max({condition.size(), yes.size(), no.size()});
  result.resize(size);
  auto at = [&](ArrayRef<int32_t> numbers, size_t i) {
    return numbers[numbers.size() == 1 ? 0 : i];
  };
  for (size_t i = 0; i < size; ++i)
    result[i] = at(condition, i) ? at(yes, i) : at(no, i);
}

bool MaskRunner::evaluate(Operation &op) {
  std::vector<int32_t> &result = values.find(op.getResult(0))->second.numbers;
  auto operand = [&](unsigned number) -> ArrayRef<int32_t> {
    return values.find(op.getOperand(number))->second.numbers;
  };
  APInt constant;
  if (matchPattern(&op, m_ConstantInt(&constant))) {
    bool isTruth = constant.getBitWidth() == 1;
    result.assign(1, isTruth ? constant.getZExtValue()
                             : constant.sextOrTrunc(32).getSExtValue());
    return true;
  }
  if (isa<arith::SelectOp>(op)) {
    select(operand(0), operand(1), operand(2), result);
    return true;
  }
  constexpr int32_t unused[] = {0};
  auto map = [&](auto function) {
    combine(operand(0), unused, result,
            [&](int32_t value, int32_t) { return function(value); });
    return true;
  };
  if (isa<math::AbsIOp>(op))
    return map([](int32_t value) {
      return int32_t(value < 0 ? -uint32_t(value) : uint32_t(value));
    });
  if (isa<arith::ExtSIOp>(op) && op.getOperand(0).getType().isInteger(1))
    return map([](int32_t value) { return -value; });
  if (isa<arith::TruncIOp>(op) && op.getResult(0).getType().isInteger(1))
    return map([](int32_t value) { return value & 1; });
  if (isa<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp>(
          op))
    return map([](int32_t value) { return value; });
  return withFunction(op, [&](auto function) {
    combine(operand(0), operand(1), result, function);
    return true;
  });
}

bool MaskRunner::start(int64_t head) {
  values.clear();
  ofQuery.clear();
  // Of b, h, i, j.
  constexpr unsigned headNumber = 1, queryNumber = 2, keyNumber = 3;
  for (unsigned number = 0; number <= keyNumber; ++number)
    values[mask.getArgument(number)] = KeyNumbers();
  values[mask.getArgument(headNumber)].numbers = {int32_t(head)};
  values[mask.getArgument(queryNumber)].isOfQuery = true;
  std::vector<int32_t> &keys = values[mask.getArgument(keyNumber)].numbers;
  keys.resize(length);
  std::iota(keys.begin(), keys.end(), 0);
  for (Operation &op : mask.without_terminator()) {
    KeyNumbers result;
    for (Value operand : op.getOperands()) {
      auto found = values.find(operand);
      if (found == values.end())
        return false;
      result.isOfQuery |= found->second.isOfQuery;
    }
    if (op.getNumResults() != 1)
      return false;
    values[op.getResult(0)] = result;
    if (result.isOfQuery)
      ofQuery.push_back(&op);
    // Those of the query tell here whether they are known.
    if (!evaluate(op))
      return false;
  }
  return values.contains(mask.getTerminator()->getOperand(0));
}

ArrayRef<int32_t> MaskRunner::run(int64_t query) {
  constexpr unsigned queryNumber = 2;
  values.find(mask.getArgument(queryNumber))->second.numbers = {int32_t(query)};
  for (Operation *op : ofQuery)
    (void)evaluate(*op);
  return values.find(mask.getTerminator()->getOperand(0))->second.numbers;
}

namespace {
/// How many pairs of each cell the mask shows.
class Cells {
public:
  Cells() : counts(rowCells * length / cellQueries) {}

  void add(int64_t query, ArrayRef<int32_t> shown);
  plan::TileVisits measure(int64_t queries, int64_t keys) const;

private:
  static constexpr int64_t rowCells = length / cellKeys;
  std::vector<int64_t> counts;
};
} // namespace

void Cells::add(int64_t query, ArrayRef<int32_t> shown) {
  int64_t *cells = &counts[query / cellQueries * rowCells];
  for (int64_t cell = 0; cell < rowCells; ++cell) {
    if (shown.size() == 1) {
      cells[cell] += shown[0] * cellKeys;
      continue;
    }
    const int32_t *keys = shown.data() + cell * cellKeys;
    cells[cell] += std::accumulate(keys, keys + cellKeys, int32_t(0));
  }
}

plan::TileVisits Cells::measure(int64_t queries, int64_t keys) const {
  plan::TileVisits visits{queries, keys, 0, 0};
  int64_t rows = queries / cellQueries, columns = keys / cellKeys;
  int64_t pairs = rows * std::size(queriesInCell) * keys;
  for (int64_t row = 0; row < length / cellQueries; row += rows)
    for (int64_t column = 0; column < rowCells; column += columns) {
      int64_t shown = 0;
      for (int64_t i = row; i < row + rows; ++i)
        for (int64_t j = column; j < column + columns; ++j)
          shown += counts[i * rowCells + j];
      if (shown != 0)
        (shown == pairs ? visits.full : visits.partial) +=
            double(queries * keys) / length;
    }
  return visits;
}

/// Of other masks blocks of all sizes are about as full.
static bool hasPattern(Block &mask) {
  return llvm::any_of(mask, [](Operation &op) {
    bool isOfNumbers =
        op.getNumResults() == 1 && !op.getResult(0).getType().isInteger(1);
    if (isa<arith::AndIOp>(op))
      return isOfNumbers;
    return isa<arith::OrIOp, arith::XOrIOp, arith::SelectOp, arith::DivSIOp,
               arith::DivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
               arith::RemUIOp, arith::ShRSIOp, arith::ShRUIOp>(op);
  });
}

std::vector<plan::TileVisits> plan::sampleMask(Region &mask) {
  Block &block = mask.front();
  if (!hasPattern(block))
    return {};
  MaskRunner runner(block);
  Cells cells;
  for (int64_t first = 0; first < length; first += cellQueries) {
    size_t number = first / queriesOfHead;
    if (first % queriesOfHead == 0 &&
        !runner.start(heads[number % std::size(heads)]))
      return {};
    for (int64_t query : queriesInCell)
      cells.add(first + query, runner.run(first + query));
  }
  std::vector<TileVisits> visits;
  for (auto [queries, keys] : tileSizes)
    visits.push_back(cells.measure(queries, keys));
  return visits;
}
