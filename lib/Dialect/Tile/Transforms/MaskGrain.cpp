//===- MaskGrain.cpp - rows and columns of a mask that are alike ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskGrain.h"

#include "Divisors.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <numeric>

using namespace mlir;
using namespace attn::tile;

namespace {
/// How many queries and keys in a row are alike; 0: all of them.
struct Grain {
  int64_t queries = 0, keys = 0;
  /// Set where the value is floor(query / queries), or the same of keys.
  bool isQuotient = false;
};

/// The grains of values; what many use is looked at once.
class GrainReader {
public:
  explicit GrainReader(Block &mask) {
    grains[mask.getArgument(2)] = {1, 0, true};
    grains[mask.getArgument(3)] = {0, 1, true};
  }

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

Grain GrainReader::compute(Value value) {
  // What is not in the region is the same everywhere.
  Operation *op = value.getDefiningOp();
  if (!op || !isa<ScoresOp>(op->getParentOp()))
    return {};
  if (std::optional<int64_t> divisor = getQuotientDivisor(op)) {
    Grain grain = read(op->getOperand(0));
    if (grain.isQuotient &&
        std::max(grain.queries, grain.keys) <= maxDivisor / *divisor) {
      grain.queries *= *divisor;
      grain.keys *= *divisor;
      return grain;
    }
  }
  Grain all;
  for (Value operand : op->getOperands()) {
    Grain one = read(operand);
    all.queries = std::gcd(all.queries, one.queries);
    all.keys = std::gcd(all.keys, one.keys);
  }
  return all;
}

/// The limit that `value` says each of `positions` is below; null if it says
/// another thing.
static Value matchLimit(Value value, Value positions, scf::ForOp loop) {
  auto compare = value.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::slt ||
      ScoresOp::resolve(compare.getLhs()) != positions)
    return {};
  Value limit = ScoresOp::resolve(compare.getRhs());
  bool isLimit =
      limit.getType().isInteger(32) && loop.isDefinedOutsideOfLoop(limit);
  return isLimit ? limit : Value();
}

MaskGrain attn::tile::findMaskGrain(ScoresOp scores, MaskCell block,
                                    bool isTransposed, scf::ForOp loop) {
  Block &region = scores.getMask().front();
  MaskGrain whole;
  whole.mask = region.getTerminator()->getOperand(0);
  if (Value below = scores.getBelow())
    whole.keyLimits.push_back(below);
  MaskGrain result = whole;
  SmallVector<Value> others;
  for (Value conjunct : getConjuncts(scores)) {
    if (Value limit = matchLimit(conjunct, scores.getKeys(), loop))
      result.keyLimits.push_back(limit);
    else if (Value limit = matchLimit(conjunct, scores.getQueries(), loop))
      result.queryLimits.push_back(limit);
    else
      others.push_back(conjunct);
  }
  // More than one conjunct would have to be put together again.
  if (others.size() != 1)
    return whole;
  Grain grain = GrainReader(region).read(others.front());
  if (grain.queries == 0 || grain.keys == 0)
    return whole;
  result.mask = others.front();
  result.rows = std::gcd(grain.queries, block.queries);
  result.columns = std::gcd(grain.keys, block.keys);
  if (isTransposed)
    std::swap(result.rows, result.columns);
  if (result.rows == 1 && result.columns == 1)
    return whole;
  return result;
}
