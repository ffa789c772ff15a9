//===- ScoreTrend.cpp - where scores grow along the keys ------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every value is one of four kinds:
//
//   fixed   the same for all keys; negative, or else taken for positive
//   grows   with the key, as far as it has a trend
//   falls   with the key, as far as it has a trend
//   noise   differs from key to key, in no direction that is known
//
// Noise beside a trend in a sum leaves the trend: the product of queries and
// keys is noise. Operations are read in their order, from the function down to
// the loop, and then those of the region of tile.scores.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/ScoreTrend.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::tile;

/// What an index or coordinate is cast or multiplied from.
static Value stripFactor(Value value, scf::ForOp loop) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<arith::IndexCastOp>(op))
      value = op->getOperand(0);
    else if (isa<arith::MulIOp>(op) &&
             loop.isDefinedOutsideOfLoop(op->getOperand(1)))
      value = op->getOperand(0);
    else
      break;
  }
  return value;
}

static bool countsKeys(CoordsOp coords, scf::ForOp loop) {
  return coords.getAxis() == 1 &&
         stripFactor(coords.getBase(), loop) == loop.getInductionVar();
}

bool attn::tile::countsKeyBlocks(scf::ForOp loop) {
  for (auto load : loop.getBody()->getOps<LoadOp>())
    for (Value index : load.getIndices())
      if (!loop.isDefinedOutsideOfLoop(index) &&
          stripFactor(index, loop) != loop.getInductionVar())
        return false;
  return llvm::all_of(loop.getBody()->getOps<CoordsOp>(), [&](CoordsOp coords) {
    return loop.isDefinedOutsideOfLoop(coords.getBase()) ||
           countsKeys(coords, loop);
  });
}

namespace {
enum class Kind { Fixed, Noise, Grows, Falls };

struct Trend {
  Kind kind = Kind::Fixed;
  bool isNegative = false; // of what is fixed

  Trend negated() const {
    switch (kind) {
    case Kind::Fixed:
      return {kind, !isNegative};
    case Kind::Noise:
      return *this;
    case Kind::Grows:
      return {Kind::Falls};
    case Kind::Falls:
      return {Kind::Grows};
    }
  }
};

/// Reads the operations before a loop, and the score function in it.
class TrendReader {
public:
  TrendReader(scf::ForOp loop, Block &score) {
    SmallVector<Operation *> ancestors;
    for (Operation *op = loop; op; op = op->getParentOp())
      ancestors.push_back(op);
    for (Operation *ancestor : llvm::reverse(ancestors)) {
      if (Block *block = ancestor->getBlock())
        for (auto &op :
             llvm::make_range(block->begin(), ancestor->getIterator()))
          read(&op);
    }
    trends[score.getArguments().front()] = {Kind::Noise};
    trends[score.getArguments().back()] = {Kind::Grows};
    for (Operation &op : score.without_terminator())
      read(&op);
  }

  /// What no operation gives is an argument, the same for all keys.
  Trend lookup(Value value) const { return trends.lookup(value); }

private:
  void read(Operation *op) {
    if (op->getNumResults() != 0)
      trends[op->getResult(0)] = compute(op);
    for (Value other : op->getResults().drop_front(!op->getResults().empty()))
      trends[other] = {areFixed(op) ? Kind::Fixed : Kind::Noise};
  }
  bool areFixed(Operation *op) const {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return lookup(operand).kind == Kind::Fixed;
    });
  }
  Trend compute(Operation *op) const;
  static Trend add(Trend a, Trend b);
  static Trend multiply(Trend a, Trend b);
  static Trend choose(Trend a, Trend b);

  DenseMap<Value, Trend> trends;
};
} // namespace

Trend TrendReader::add(Trend a, Trend b) {
  if (a.kind == b.kind)
    return a;
  for (Kind weak : {Kind::Fixed, Kind::Noise}) {
    if (a.kind == weak)
      return b;
    if (b.kind == weak)
      return a;
  }
  return {Kind::Noise};
}

Trend TrendReader::multiply(Trend a, Trend b) {
  if (b.kind == Kind::Fixed)
    std::swap(a, b);
  if (a.kind != Kind::Fixed)
    return {Kind::Noise};
  return a.isNegative ? b.negated() : b;
}

/// The one or the other, by key: a minimum, a select.
Trend TrendReader::choose(Trend a, Trend b) {
  if (a.kind == b.kind)
    return a;
  if (a.kind == Kind::Fixed)
    return b;
  if (b.kind == Kind::Fixed)
    return a;
  return {Kind::Noise};
}

static bool isNegativeConstant(Operation *op) {
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (!constant)
    return false;
  Attribute value = constant.getValue();
  if (auto number = dyn_cast<FloatAttr>(value))
    return number.getValue().isNegative();
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getValue().isNegative();
}

Trend TrendReader::compute(Operation *op) const {
  auto operand = [&](unsigned index) { return lookup(op->getOperand(index)); };
  // In either direction with their operand.
  if (isa<arith::SIToFPOp, arith::UIToFPOp, arith::ExtSIOp, arith::ExtUIOp,
          arith::TruncIOp, arith::IndexCastOp, arith::ExtFOp, arith::TruncFOp,
          math::TanhOp, math::FloorOp, math::CeilOp, math::RoundEvenOp,
          arith::FPToSIOp>(op))
    return operand(0);
  if (isa<math::ExpOp, math::Exp2Op>(op)) {
    Trend exponent = operand(0);
    return exponent.kind == Kind::Fixed ? Trend() : exponent;
  }
  if (isa<arith::NegFOp>(op))
    return operand(0).negated();
  if (isa<arith::AddIOp, arith::AddFOp>(op))
    return add(operand(0), operand(1));
  if (isa<arith::SubIOp, arith::SubFOp>(op))
    return add(operand(0), operand(1).negated());
  if (isa<arith::MulIOp, arith::MulFOp>(op))
    return multiply(operand(0), operand(1));
  if (isa<math::FmaOp>(op))
    return add(multiply(operand(0), operand(1)), operand(2));
  if (isa<arith::DivFOp, arith::DivSIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp, arith::ShRSIOp>(op) &&
      operand(1).kind == Kind::Fixed)
    return multiply(operand(0), operand(1));
  if (isa<arith::MinSIOp, arith::MaxSIOp, arith::MinimumFOp, arith::MaximumFOp,
          arith::MinNumFOp, arith::MaxNumFOp>(op))
    return choose(operand(0), operand(1));
  if (isa<arith::SelectOp>(op)) {
    Trend chosen = choose(operand(1), operand(2));
    bool isByKey = operand(0).kind != Kind::Fixed;
    return isByKey && chosen.kind == Kind::Fixed ? Trend{Kind::Noise} : chosen;
  }
  if (areFixed(op))
    return {Kind::Fixed, isNegativeConstant(op)};
  return {Kind::Noise};
}

ScoreTrend attn::tile::readScoreTrend(scf::ForOp loop) {
  auto scores = loop.getBody()->getOps<ScoresOp>();
  if (!llvm::hasSingleElement(scores) || !(*scores.begin()).hasScore())
    return ScoreTrend::None;
  Block &score = (*scores.begin()).getScore().front();
  switch (TrendReader(loop, score)
              .lookup(score.getTerminator()->getOperand(0))
              .kind) {
  case Kind::Grows:
    return ScoreTrend::Grows;
  case Kind::Falls:
    return ScoreTrend::Falls;
  default:
    return ScoreTrend::None;
  }
}
