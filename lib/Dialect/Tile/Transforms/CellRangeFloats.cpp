//===- CellRangeFloats.cpp - ranges of floats over many pairs -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CellRange.h"

#include "Divisors.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace attn::tile;

static constexpr double unknown = std::numeric_limits<double>::infinity();

bool CellRange::isFinite() const { return magnitude < unknown; }

/// What a product, a quotient or a function may be off by: it is not the same
/// everywhere, as a product and a sum may be rounded once or twice, and
/// functions are approximated.
static constexpr double relativeError = 0x1p-18;

CellRange CellRangeReader::widen(CellRange range, double absolute) {
  Type type = range.least.getType();
  auto error = [&](Value value) {
    Value size = b.createOrFold<math::AbsFOp>(loc(), value);
    return make<arith::AddFOp>(
        make<arith::MulFOp>(size, number(type, relativeError)),
        number(type, absolute));
  };
  range.least = make<arith::SubFOp>(range.least, error(range.least));
  range.greatest = make<arith::AddFOp>(range.greatest, error(range.greatest));
  return range;
}

std::optional<CellRange>
CellRangeReader::compare(arith::CmpFOp op, CellRange lhs, CellRange rhs) {
  // What is one value may be no number: then each comparison says the same.
  for (const CellRange &range : {lhs, rhs})
    if (!range.isFinite() && !range.isOne())
      return std::nullopt;
  using P = arith::CmpFPredicate;
  P predicate = op.getPredicate();
  switch (predicate) {
  case P::OLT:
  case P::ULT:
  case P::OLE:
  case P::ULE:
    return CellRange{test(predicate, lhs.greatest, rhs.least),
                     test(predicate, lhs.least, rhs.greatest)};
  case P::OGT:
  case P::UGT:
  case P::OGE:
  case P::UGE:
    return CellRange{test(predicate, lhs.least, rhs.greatest),
                     test(predicate, lhs.greatest, rhs.least)};
  case P::OEQ:
  case P::UNE: {
    CellRange equal = {
        make<arith::AndIOp>(test(P::OLE, lhs.greatest, rhs.least),
                            test(P::OLE, rhs.greatest, lhs.least)),
        make<arith::AndIOp>(test(P::OLE, lhs.least, rhs.greatest),
                            test(P::OLE, rhs.least, lhs.greatest))};
    if (predicate == P::OEQ)
      return equal;
    return CellRange{invert(equal.greatest), invert(equal.least)};
  }
  default:
    return std::nullopt;
  }
}

static double toDouble(APFloat number) {
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

/// The constant that all values are, if it is not zero.
static std::optional<double> getFactor(Value value) {
  APFloat constant(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&constant)) || constant.isZero() ||
      !constant.isFinite())
    return std::nullopt;
  return toDouble(constant);
}

std::optional<CellRange> CellRangeReader::boundFloat(Operation *op,
                                                     ArrayRef<CellRange> of) {
  // What has fewer bits may be computed with more.
  Type type = op->getResult(0).getType();
  if (!type.isF32() && !type.isF64())
    return std::nullopt;
  bool isCast = isa<arith::SIToFPOp, arith::UIToFPOp>(op);
  if (!isCast && !isa<arith::SelectOp>(op) &&
      !llvm::all_of(of,
                    [](const CellRange &range) { return range.isFinite(); }))
    return std::nullopt;
  // Of what is not below `floor`; an end may be, by what it is off.
  auto function = [&](bool isDefined, double floor, double absolute) {
    if (!isDefined)
      return Optional();
    CellRange operand = of[0];
    operand.least = larger(operand.least, number(type, floor));
    operand.greatest = larger(operand.greatest, operand.least);
    return Optional(widen(increase(op, operand), absolute));
  };
  return llvm::TypeSwitch<Operation *, Optional>(op)
      .Case([&](arith::SIToFPOp) -> Optional {
        if (op->getOperand(0).getType().isInteger(1))
          return std::nullopt;
        return increase(op, of);
      })
      .Case([&](arith::UIToFPOp) -> Optional {
        if (!op->getOperand(0).getType().isInteger(1) && !of[0].isNonNegative())
          return std::nullopt;
        return increase(op, of);
      })
      .Case<arith::AddFOp, arith::MinimumFOp, arith::MaximumFOp,
            arith::MinNumFOp, arith::MaxNumFOp, arith::ExtFOp, arith::TruncFOp,
            math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp>(
          [&](auto) { return increase(op, of); })
      .Case([&](arith::SubFOp) {
        return CellRange{make<arith::SubFOp>(of[0].least, of[1].greatest),
                         make<arith::SubFOp>(of[0].greatest, of[1].least)};
      })
      .Case([&](arith::NegFOp) {
        return CellRange{repeat(op, of[0].greatest), repeat(op, of[0].least)};
      })
      .Case([&](math::AbsFOp) {
        Value zero = number(type, 0);
        auto negate = [&](Value value) {
          return make<arith::SubFOp>(zero, value);
        };
        Value least = larger(of[0].least, negate(of[0].greatest));
        return CellRange{larger(least, zero),
                         larger(of[0].greatest, negate(of[0].least))};
      })
      .Case([&](arith::MulFOp) -> Optional {
        if (op->getOperand(0) == op->getOperand(1))
          return widen(*square(op, of[0]), 0x1p-100);
        return widen(*multiply(op, of[0], of[1]), 0x1p-100);
      })
      .Case([&](arith::DivFOp) -> Optional {
        std::optional<double> divisor = getFactor(op->getOperand(1));
        if (!divisor)
          return std::nullopt;
        return widen(extremes({repeat(op, {of[0].least, of[1].least}),
                               repeat(op, {of[0].greatest, of[1].least})}),
                     0x1p-100);
      })
      .Case([&](math::SqrtOp) {
        return function(of[0].isNonNegative(), 0, 0x1p-60);
      })
      .Case<math::LogOp, math::Log2Op>(
          [&](auto) { return function(of[0].floor > 0, of[0].floor, 0x1p-18); })
      .Case([&](arith::SelectOp) { return select(op, of[0], of[1], of[2]); })
      .Default([](Operation *) { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// What is known of all cells
//===----------------------------------------------------------------------===//

static double getMagnitude(Operation *op, ArrayRef<CellRange> of) {
  double lhs = of.empty() ? unknown : of[0].magnitude;
  double rhs = of.size() < 2 ? unknown : of[1].magnitude;
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<arith::SIToFPOp, arith::UIToFPOp>([&](auto) {
        Type type = op->getOperand(0).getType();
        return type.isIndex() ? 0x1p64
                              : std::exp2(type.getIntOrFloatBitWidth());
      })
      .Case<arith::AddFOp, arith::SubFOp>([&](auto) { return lhs + rhs; })
      .Case([&](arith::MulFOp) { return lhs * rhs; })
      .Case([&](arith::DivFOp) {
        std::optional<double> divisor = getFactor(op->getOperand(1));
        return divisor ? lhs / std::abs(*divisor) : unknown;
      })
      .Case<arith::MinimumFOp, arith::MaximumFOp, arith::MinNumFOp,
            arith::MaxNumFOp>([&](auto) { return std::max(lhs, rhs); })
      .Case([&](arith::SelectOp) { return std::max(rhs, of[2].magnitude); })
      .Case<arith::NegFOp, math::AbsFOp, arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return lhs; })
      .Case<math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp>(
          [&](auto) { return lhs + 1; })
      .Case([&](math::SqrtOp) {
        return of[0].isNonNegative() ? std::sqrt(lhs) + 1 : unknown;
      })
      .Case<math::LogOp, math::Log2Op>([&](auto) {
        return of[0].floor > 0 && lhs < unknown
                   ? std::abs(std::log2(of[0].floor)) +
                         std::abs(std::log2(lhs)) + 1
                   : unknown;
      })
      .Default(unknown);
}

static double getFloor(Operation *op, ArrayRef<CellRange> of) {
  auto atLeast = [&](unsigned number) { return of[number].floor; };
  auto ifPositive = [&](bool isOne) { return isOne ? 0.0 : -unknown; };
  bool areNonNegative = llvm::all_of(
      of, [](const CellRange &range) { return range.isNonNegative(); });
  if (getRemainderDivisor(op))
    return ifPositive(isa<arith::AndIOp>(op) || of[0].isNonNegative());
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<arith::AddIOp, arith::AddFOp>(
          [&](auto) { return atLeast(0) + atLeast(1); })
      .Case<arith::MulIOp, arith::MulFOp>([&](auto) {
        return ifPositive(areNonNegative ||
                          op->getOperand(0) == op->getOperand(1));
      })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp, arith::ShRSIOp,
            arith::ShRUIOp, arith::ShLIOp, arith::DivFOp, math::SqrtOp,
            arith::TruncFOp, arith::FPToSIOp, math::FloorOp, math::CeilOp,
            math::TruncOp, math::RoundEvenOp>(
          [&](auto) { return ifPositive(areNonNegative); })
      .Case<arith::MinSIOp, arith::MinimumFOp, arith::MinNumFOp>(
          [&](auto) { return std::min(atLeast(0), atLeast(1)); })
      .Case<arith::MaxSIOp, arith::MaximumFOp, arith::MaxNumFOp>(
          [&](auto) { return std::max(atLeast(0), atLeast(1)); })
      .Case<math::AbsIOp, math::AbsFOp, arith::ExtUIOp, arith::UIToFPOp,
            arith::IndexCastUIOp>([&](auto) { return 0.0; })
      .Case([&](arith::SelectOp) { return std::min(atLeast(1), atLeast(2)); })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp,
            arith::SIToFPOp, arith::ExtFOp>([&](auto) { return atLeast(0); })
      .Default(-unknown);
}

/// Before a sum or a cast is rounded; it then is as large, or nearly.
static double roundDown(double floor) {
  return floor - std::abs(floor) * 0x1p-7;
}

bool CellRangeReader::describeConstant(Value value, CellRange &range) {
  APInt integer;
  APFloat number(0.0f);
  if (!value.getType().isInteger(1) &&
      matchPattern(value, m_ConstantInt(&integer))) {
    range.floor = double(integer.getSExtValue());
    return true;
  }
  if (!matchPattern(value, m_ConstantFloat(&number)) || !number.isFinite())
    return false;
  range.floor = toDouble(number);
  range.magnitude = std::abs(range.floor);
  return true;
}

void CellRangeReader::describe(Operation *op, ArrayRef<CellRange> of,
                               CellRange &range) {
  if (describeConstant(op->getResult(0), range))
    return;
  range.floor = getFloor(op, of);
  auto type = dyn_cast<FloatType>(op->getResult(0).getType());
  if (!type)
    return;
  range.floor = roundDown(range.floor);
  // With room for what rounding adds.
  double magnitude = getMagnitude(op, of);
  double largest =
      std::exp2(APFloat::semanticsMaxExponent(type.getFloatSemantics()));
  range.magnitude =
      magnitude < largest / 2 ? magnitude * (1 + 0x1p-7) : unknown;
}
