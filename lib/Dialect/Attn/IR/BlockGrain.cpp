//===- BlockGrain.cpp - blocks of a mask that are alike -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/BlockGrain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/DenseMap.h"
#include <numeric>

using namespace mlir;
using namespace attn;

static constexpr int64_t leastCoarse = 16;

bool BlockGrain::isCoarse() const {
  auto isEnough = [](int64_t size) { return size == 0 || size >= leastCoarse; };
  return (queries != 0 || keys != 0) && isEnough(queries) && isEnough(keys);
}

namespace {
/// Of which positions a value is made, and how.
struct BlockValue {
  BlockGrain grain;
  /// A sum, a difference, a minimum, a magnitude of positions and constants.
  bool isLinear = true;
  /// floor((position + offset) / divisor), of one position.
  bool isQuotient = false;
  int64_t offset = 0, divisor = 1;
};

class BlockReader {
public:
  explicit BlockReader(Block &mask);
  BlockValue get(Value value) const { return values.lookup(value); }

private:
  BlockValue read(Operation &op) const;
  BlockValue readQuotient(const BlockValue &of, int64_t divisor) const;

  DenseMap<Value, BlockValue> values;
};
} // namespace

BlockReader::BlockReader(Block &mask) {
  constexpr unsigned query = 2, key = 3; // of b, h, i, j
  BlockValue position;
  position.isQuotient = true;
  position.grain = {1, 0};
  values[mask.getArgument(query)] = position;
  position.grain = {0, 1};
  values[mask.getArgument(key)] = position;
  for (Operation &op : mask)
    for (Value result : op.getResults())
      values[result] = read(op);
}

/// The constant by which an operation divides, rounding down what is not
/// negative; 0: it does not.
static int64_t getDivisor(Operation &op) {
  if (op.getNumOperands() != 2)
    return 0;
  int64_t number = getConstantIntValue(op.getOperand(1)).value_or(0);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op))
    return std::max<int64_t>(number, 0);
  constexpr int64_t mostBits = 30;
  bool isShift = isa<arith::ShRSIOp, arith::ShRUIOp>(op) && number >= 0 &&
                 number <= mostBits;
  return isShift ? int64_t(1) << number : 0;
}

BlockValue BlockReader::readQuotient(const BlockValue &of,
                                     int64_t divisor) const {
  BlockValue result = of;
  result.isLinear = false;
  constexpr int64_t mostDivisor = int64_t(1) << 30;
  result.isQuotient = of.isQuotient && divisor <= mostDivisor / of.divisor;
  if (!result.isQuotient)
    return result;
  // floor((x / a + c) / b) = floor((x + a c) / a b).
  result.divisor = of.divisor * divisor;
  int64_t size = std::gcd(result.offset, result.divisor);
  result.grain = {of.grain.queries ? size : 0, of.grain.keys ? size : 0};
  return result;
}

BlockValue BlockReader::read(Operation &op) const {
  BlockValue result;
  for (Value operand : op.getOperands()) {
    BlockValue of = get(operand);
    result.grain.queries = std::gcd(result.grain.queries, of.grain.queries);
    result.grain.keys = std::gcd(result.grain.keys, of.grain.keys);
    result.isLinear &= of.isLinear;
  }
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return get(op.getOperand(0));
  if (isa<arith::CmpIOp>(op))
    return result.isLinear ? BlockValue() : result;
  if (int64_t divisor = getDivisor(op))
    return readQuotient(get(op.getOperand(0)), divisor);
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    std::optional<int64_t> number = getConstantIntValue(op.getOperand(1));
    BlockValue first = get(op.getOperand(0));
    int64_t most = (int64_t(1) << 30) / first.divisor;
    if (number && first.isQuotient && -most <= *number && *number <= most) {
      int64_t offset = *number * first.divisor;
      first.offset += isa<arith::AddIOp>(op) ? offset : -offset;
      return first;
    }
    return result;
  }
  result.isLinear &= isa<arith::ConstantOp, arith::MinSIOp, arith::MaxSIOp,
                         arith::MulIOp, math::AbsIOp>(op);
  return result;
}

BlockGrain attn::findBlockGrain(Region &mask) {
  Block &block = mask.front();
  return BlockReader(block).get(block.getTerminator()->getOperand(0)).grain;
}
