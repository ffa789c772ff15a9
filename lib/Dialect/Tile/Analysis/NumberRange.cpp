//===- NumberRange.cpp - ranges of numbers in scalar code -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/NumberRange.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace attn::tile;

using OptionalRange = std::optional<NumberRange>;

/// Of each result of an operation on floats; narrow ones are off by what
/// rounding to them is, twice.
static constexpr double leastError = 0x1p-16, absoluteError = 0x1p-16;

static OptionalRange readConstant(Value value) {
  APInt integer;
  APFloat number(0.0f);
  if (matchPattern(value, m_ConstantInt(&integer))) {
    double exact = value.getType().isInteger(1)
                       ? double(integer.getZExtValue())
                       : double(integer.getSExtValue());
    return NumberRange{exact, exact};
  }
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return std::nullopt;
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return NumberRange{number.convertToDouble(), number.convertToDouble()};
}

static NumberRange multiply(NumberRange a, NumberRange b) {
  double products[] = {a.least * b.least, a.least * b.most, a.most * b.least,
                       a.most * b.most};
  return {*llvm::min_element(products), *llvm::max_element(products)};
}

/// Both ends, of an increasing function.
static NumberRange apply(NumberRange range, double (*function)(double)) {
  return {function(range.least), function(range.most)};
}

static OptionalRange compare(bool isAlways, bool isNever) {
  return NumberRange{isAlways ? 1.0 : 0.0, isNever ? 0.0 : 1.0};
}

static OptionalRange compareIntegers(arith::CmpIPredicate predicate,
                                     NumberRange a, NumberRange b) {
  using arith::CmpIPredicate;
  switch (predicate) {
  case CmpIPredicate::slt:
    return compare(a.most < b.least, a.least >= b.most);
  case CmpIPredicate::sle:
    return compare(a.most <= b.least, a.least > b.most);
  case CmpIPredicate::sgt:
    return compare(a.least > b.most, a.most <= b.least);
  case CmpIPredicate::sge:
    return compare(a.least >= b.most, a.most < b.least);
  default:
    return std::nullopt;
  }
}

/// Where the operands lie between `a`, `b` and `c`.
static OptionalRange compute(Operation *op, NumberRange a, NumberRange b,
                             NumberRange c) {
  if (isa<arith::AddIOp, arith::AddFOp>(op))
    return NumberRange{a.least + b.least, a.most + b.most};
  if (isa<arith::SubIOp, arith::SubFOp>(op))
    return NumberRange{a.least - b.most, a.most - b.least};
  if (isa<arith::MulIOp, arith::MulFOp>(op))
    return multiply(a, b);
  if (isa<math::FmaOp>(op)) {
    NumberRange product = multiply(a, b);
    return NumberRange{product.least + c.least, product.most + c.most};
  }
  if (isa<arith::DivFOp>(op) && (b.least > 0 || b.most < 0))
    return multiply(a, {1 / b.most, 1 / b.least});
  if (isa<arith::NegFOp>(op))
    return NumberRange{-a.most, -a.least};
  if (isa<arith::MinSIOp, arith::MinimumFOp, arith::MinNumFOp>(op))
    return NumberRange{std::min(a.least, b.least), std::min(a.most, b.most)};
  if (isa<arith::MaxSIOp, arith::MaximumFOp, arith::MaxNumFOp>(op))
    return NumberRange{std::max(a.least, b.least), std::max(a.most, b.most)};
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return compareIntegers(comparison.getPredicate(), a, b);
  if (isa<arith::SelectOp>(op)) {
    if (a.least == a.most)
      return a.least == 1 ? b : c;
    return NumberRange{std::min(b.least, c.least), std::max(b.most, c.most)};
  }
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp, arith::SIToFPOp,
          arith::ExtFOp, arith::TruncFOp>(op) &&
      !op->getOperand(0).getType().isInteger(1))
    return a;
  if (isa<arith::FPToSIOp>(op))
    return apply(a, std::trunc);
  if (isa<math::FloorOp>(op))
    return apply(a, std::floor);
  if (isa<math::CeilOp>(op))
    return apply(a, std::ceil);
  if (isa<math::LogOp>(op) && a.least > 0)
    return apply(a, std::log);
  if (isa<math::Log2Op>(op) && a.least > 0)
    return apply(a, std::log2);
  if (isa<math::SqrtOp>(op) && a.least >= 0)
    return apply(a, std::sqrt);
  return std::nullopt;
}

/// With the errors of a float; nothing where that is not finite, or where an
/// integer may wrap around.
static OptionalRange widen(OptionalRange range, Type type) {
  if (!range || !std::isfinite(range->least) || !std::isfinite(range->most))
    return std::nullopt;
  if (auto floats = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floats.getFloatSemantics();
    int precision = int(APFloat::semanticsPrecision(semantics));
    double relativeError = std::max(leastError, std::exp2(1 - precision));
    range->least -= absoluteError + relativeError * std::abs(range->least);
    range->most += absoluteError + relativeError * std::abs(range->most);
    double largest = std::exp2(APFloat::semanticsMaxExponent(semantics));
    bool isFinite = range->least > -largest && range->most < largest;
    return isFinite ? range : std::nullopt;
  }
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  double limit = std::exp2(std::min(bits, 53u) - 1.0);
  bool isWhole = bits == 1 || (range->least >= -limit && range->most < limit);
  return isWhole ? range : std::nullopt;
}

OptionalRange attn::tile::findRange(Value value, Value variable,
                                    NumberRange range) {
  DenseMap<Value, OptionalRange> known = {{variable, range}};
  // Operations before `value`, in order: all operands are known.
  auto lookup = [&](Value operand) {
    auto found = known.find(operand);
    return found == known.end() ? OptionalRange() : found->second;
  };
  Operation *last = value.getDefiningOp();
  if (value == variable || !last)
    return lookup(value);
  for (Operation &op : *last->getBlock()) {
    if (op.getNumResults() != 1 || op.getResult(0) == variable)
      continue;
    Value result = op.getResult(0);
    OptionalRange found = readConstant(result);
    if (!found && op.getNumOperands() >= 1 && op.getNumOperands() <= 3) {
      OptionalRange operands[3] = {NumberRange{0, 0}, NumberRange{0, 0},
                                   NumberRange{0, 0}};
      bool isKnown = true;
      for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
        operands[number] = lookup(operand);
        isKnown &= operands[number].has_value();
      }
      if (isKnown)
        found = widen(compute(&op, *operands[0], *operands[1], *operands[2]),
                      result.getType());
    }
    known[result] = found;
    if (&op == last)
      break;
  }
  return lookup(value);
}
