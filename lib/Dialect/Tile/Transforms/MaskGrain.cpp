//===- MaskGrain.cpp - rows and columns of a mask that are alike ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskGrain.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace attn::tile;

namespace {
/// How many rows and columns in a row are alike; 0: all of them.
struct Grain {
  int64_t rows = 0, columns = 0;
  /// Set where the value is floor(row / rows), or the same of columns.
  bool isQuotient = false;
};

/// The grains of values; what many use is looked at once.
class GrainReader {
public:
  Grain read(Value value) {
    auto known = grains.find(value);
    if (known != grains.end())
      return known->second;
    // Nested too deep to be looked at: nothing is known to be alike.
    if (depth == maxDepth)
      return {1, 1};
    ++depth;
    Grain grain = compute(value);
    --depth;
    grains[value] = grain;
    return grain;
  }

private:
  Grain compute(Value value);

  static constexpr unsigned maxDepth = 1000;

  DenseMap<Value, Grain> grains;
  unsigned depth = 0;
};
} // namespace

/// Divisors beyond which groups are no larger than blocks anyway.
static constexpr int64_t maxDivisor = int64_t(1) << 30;

/// What a position, which is not negative, is divided by.
static std::optional<int64_t> getDivisor(Operation *op) {
  if (!isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::ShRUIOp,
           arith::ShRSIOp>(op))
    return std::nullopt;
  std::optional<int64_t> number = getIntegerConstant(op->getOperand(1));
  bool isShift = isa<arith::ShRUIOp, arith::ShRSIOp>(op);
  if (!number || *number < (isShift ? 0 : 1) ||
      *number > (isShift ? 30 : maxDivisor))
    return std::nullopt;
  return isShift ? int64_t(1) << *number : *number;
}

Grain GrainReader::compute(Value value) {
  if (!isa<VectorType>(value.getType()))
    return {};
  Operation *op = value.getDefiningOp();
  if (!op)
    return {1, 1};
  if (auto coords = dyn_cast<CoordsOp>(op))
    return coords.getAxis() == 0 ? Grain{1, 0, true} : Grain{0, 1, true};
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return read(broadcast.getSource());
  if (std::optional<int64_t> divisor = getDivisor(op)) {
    Grain grain = read(op->getOperand(0));
    if (grain.isQuotient &&
        std::max(grain.rows, grain.columns) <= maxDivisor / *divisor) {
      grain.rows *= *divisor;
      grain.columns *= *divisor;
      return grain;
    }
  }
  Grain all;
  for (Value operand : op->getOperands()) {
    Grain one = read(operand);
    all.rows = std::gcd(all.rows, one.rows);
    all.columns = std::gcd(all.columns, one.columns);
  }
  return all;
}

static Value stripBroadcast(Value value) {
  while (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
    value = broadcast.getSource();
  return value;
}

/// What `mask` is the conjunction of, in order, each once.
static SmallVector<Value> getConjuncts(Value mask) {
  SmallVector<Value> conjuncts, worklist = {mask};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Value source = stripBroadcast(value);
    if (!seen.insert(source).second)
      continue;
    if (auto both = source.getDefiningOp<arith::AndIOp>())
      worklist.append({both.getRhs(), both.getLhs()});
    else
      conjuncts.push_back(value);
  }
  return conjuncts;
}

/// The limit that `value` is.
static std::optional<KeyLimit> matchLimit(Value value, scf::ForOp loop) {
  auto compare = stripBroadcast(value).getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt)
    return std::nullopt;
  Value keys = stripBroadcast(compare.getLhs());
  Value limit = stripBroadcast(compare.getRhs());
  auto coords = keys.getDefiningOp<CoordsOp>();
  if (!coords || coords.getAxis() != 1 || !limit.getType().isInteger(32) ||
      !loop.isDefinedOutsideOfLoop(limit))
    return std::nullopt;
  return KeyLimit{keys, limit};
}

MaskGrain attn::tile::findMaskGrain(Value mask, scf::ForOp loop,
                                    int64_t numRows, int64_t numColumns) {
  MaskGrain whole;
  whole.mask = mask;
  // In a block of one row or column shapes do not tell what depends on it.
  if (numRows == 1 || numColumns == 1)
    return whole;
  SmallVector<Value> others;
  SmallVector<KeyLimit> limits;
  for (Value conjunct : getConjuncts(mask)) {
    if (std::optional<KeyLimit> limit = matchLimit(conjunct, loop))
      limits.push_back(*limit);
    else
      others.push_back(conjunct);
  }
  // More than one conjunct would have to be put together again.
  if (others.size() != 1 || others.front().getType() != mask.getType())
    return whole;
  Grain grain = GrainReader().read(others.front());
  MaskGrain result;
  result.mask = others.front();
  result.limits = limits;
  result.rows = std::gcd(grain.rows, numRows);
  result.columns = std::gcd(grain.columns, numColumns);
  if (result.rows == 1 && result.columns == 1)
    return whole;
  return result;
}
