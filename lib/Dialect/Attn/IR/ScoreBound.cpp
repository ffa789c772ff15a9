//===- ScoreBound.cpp - how large scores can be ---------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/ScoreBound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace attn;

namespace {
/// The numbers between `lo` and `hi`, and NaN.
struct Interval {
  double lo = -HUGE_VAL, hi = HUGE_VAL;

  static Interval symmetric(double size) { return {-size, size}; }
  Interval join(Interval other) const {
    return {std::min(lo, other.lo), std::max(hi, other.hi)};
  }
  Interval negated() const { return {-hi, -lo}; }
  /// Rounded outwards: f32 rounds what is computed here in f64.
  Interval widened() const {
    return {lo - std::fabs(lo) * 0x1p-20, hi + std::fabs(hi) * 0x1p-20};
  }
};

class IntervalReader {
public:
  Interval read(Value value, unsigned depth = 0);

private:
  Interval compute(Operation *op, unsigned depth);

  /// A score function that nests deeper is taken as unbounded.
  static constexpr unsigned maxDepth = 100;
  DenseMap<Value, Interval> ranges;
};
} // namespace

static Interval add(Interval a, Interval b) {
  return {a.lo + b.lo, a.hi + b.hi};
}

static Interval multiply(Interval a, Interval b) {
  Interval product = {HUGE_VAL, -HUGE_VAL};
  for (double x : {a.lo, a.hi})
    for (double y : {b.lo, b.hi}) {
      // 0 times what has no bound is 0, or NaN.
      double p = x == 0 || y == 0 ? 0 : x * y;
      product = product.join({p, p});
    }
  return product;
}

static Interval inverse(Interval a) {
  return a.lo > 0 || a.hi < 0 ? Interval{1 / a.hi, 1 / a.lo} : Interval();
}

Interval IntervalReader::read(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > maxDepth)
    return Interval();
  auto known = ranges.find(value);
  if (known != ranges.end())
    return known->second;
  Interval range = compute(op, depth + 1).widened();
  // An infinity minus another one.
  if (std::isnan(range.lo) || std::isnan(range.hi))
    range = Interval();
  ranges[value] = range;
  return range;
}

Interval IntervalReader::compute(Operation *op, unsigned depth) {
  auto operand = [&](unsigned index) {
    return read(op->getOperand(index), depth);
  };
  if (APFloat constant(0.0f); matchPattern(op, m_ConstantFloat(&constant)))
    return constant.isNaN() ? Interval()
                            : Interval{constant.convertToDouble(),
                                       constant.convertToDouble()};
  if (isa<arith::ExtFOp>(op))
    return operand(0);
  if (isa<math::TanhOp, math::SinOp, math::CosOp, math::ErfOp>(op))
    return Interval::symmetric(1);
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    auto type = dyn_cast<IntegerType>(op->getOperand(0).getType());
    return type ? Interval::symmetric(std::ldexp(1.0, type.getWidth()))
                : Interval();
  }
  if (isa<arith::NegFOp>(op))
    return operand(0).negated();
  if (isa<math::AbsFOp>(op)) {
    Interval a = operand(0);
    double size = std::max(std::fabs(a.lo), std::fabs(a.hi));
    return {a.lo <= 0 && a.hi >= 0 ? 0
                                   : std::min(std::fabs(a.lo), std::fabs(a.hi)),
            size};
  }
  if (isa<math::ExpOp>(op))
    return {std::exp(operand(0).lo), std::exp(operand(0).hi)};
  if (isa<math::Exp2Op>(op))
    return {std::exp2(operand(0).lo), std::exp2(operand(0).hi)};
  if (isa<arith::AddFOp>(op))
    return add(operand(0), operand(1));
  if (isa<arith::SubFOp>(op))
    return add(operand(0), operand(1).negated());
  if (isa<arith::MulFOp>(op))
    return multiply(operand(0), operand(1));
  if (isa<math::FmaOp>(op))
    return add(multiply(operand(0), operand(1)), operand(2));
  if (isa<arith::DivFOp>(op))
    return multiply(operand(0), inverse(operand(1)));
  if (isa<arith::MinimumFOp, arith::MinNumFOp>(op)) {
    Interval a = operand(0), b = operand(1);
    return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  }
  if (isa<arith::MaximumFOp, arith::MaxNumFOp>(op)) {
    Interval a = operand(0), b = operand(1);
    return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  }
  if (isa<arith::SelectOp>(op))
    return operand(1).join(operand(2));
  return Interval();
}

bool attn::isMinusInf(Value value) {
  APFloat number(0.0f);
  return matchPattern(value, m_ConstantFloat(&number)) && number.isInfinity() &&
         number.isNegative();
}

/// The factor of `value` that is no constant, of several the last.
static Value withoutConstantFactors(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<arith::MulFOp>(op) && matchPattern(op->getOperand(0), m_Constant()))
      value = op->getOperand(1);
    else if (isa<arith::MulFOp, arith::DivFOp>(op) &&
             matchPattern(op->getOperand(1), m_Constant()))
      value = op->getOperand(0);
    else
      break;
  }
  return value;
}

bool attn::isSoftcap(Region &score) {
  if (score.empty())
    return false;
  Value y = score.front().getTerminator()->getOperand(0);
  auto bent = withoutConstantFactors(y).getDefiningOp<math::TanhOp>();
  return bent &&
         withoutConstantFactors(bent.getOperand()) == score.getArgument(0);
}

std::optional<double> attn::boundMagnitude(Value scores) {
  while (auto select = scores.getDefiningOp<arith::SelectOp>()) {
    if (isMinusInf(select.getFalseValue()))
      scores = select.getTrueValue();
    else if (isMinusInf(select.getTrueValue()))
      scores = select.getFalseValue();
    else
      break;
  }
  Interval range = IntervalReader().read(scores);
  double size = std::max(std::fabs(range.lo), std::fabs(range.hi));
  return size < HUGE_VAL ? std::optional<double>(size) : std::nullopt;
}
