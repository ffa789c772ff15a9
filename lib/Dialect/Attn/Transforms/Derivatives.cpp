//===- Derivatives.cpp - derivatives of scalar operations -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Derivatives.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

namespace {

/// A number of f32, or of f64, with the operators of arithmetic.
struct Number {
  OpBuilder *b;
  Location loc;
  Value value;

  Number at(Value other) const { return {b, loc, other}; }
  Number constant(double other) const {
    return at(arith::ConstantOp::create(
        *b, loc, b->getFloatAttr(value.getType(), other)));
  }
  template <typename Op> Number apply() const {
    return at(Op::create(*b, loc, value));
  }
  template <typename Op> Number apply(Number other) const {
    return at(Op::create(*b, loc, value, other.value));
  }
  Value compare(arith::CmpFPredicate predicate, Number other) const {
    return arith::CmpFOp::create(*b, loc, predicate, value, other.value);
  }
  /// This where the condition holds, else the other.
  Number where(Value condition, Number other) const {
    return at(arith::SelectOp::create(*b, loc, condition, value, other.value));
  }
  /// This where the condition holds, else 0.
  Number where(Value condition) const { return where(condition, constant(0)); }
};

Number operator*(Number a, Number b) { return a.apply<arith::MulFOp>(b); }
Number operator/(Number a, Number b) { return a.apply<arith::DivFOp>(b); }
Number operator+(Number a, Number b) { return a.apply<arith::AddFOp>(b); }
Number operator-(Number a, Number b) { return a.apply<arith::SubFOp>(b); }
Number operator-(Number a) { return a.apply<arith::NegFOp>(); }
Number operator*(double a, Number b) { return b * b.constant(a); }
Number operator+(double a, Number b) { return b + b.constant(a); }
Number operator-(double a, Number b) { return b.constant(a) - b; }
Number operator/(double a, Number b) { return b.constant(a) / b; }
Value operator<(Number a, Number b) {
  return a.compare(arith::CmpFPredicate::OLT, b);
}
Value operator<=(Number a, Number b) {
  return a.compare(arith::CmpFPredicate::OLE, b);
}
Value operator==(Number a, Number b) {
  return a.compare(arith::CmpFPredicate::OEQ, b);
}

using Adjoints = SmallVector<Value>;

/// An operation while its adjoints are built, in one type.
struct Derivative {
  OpBuilder &b;
  Operation *op;
  Type type;

  Number wide(Value value) {
    Location loc = op->getLoc();
    if (value.getType() != type)
      value = arith::ExtFOp::create(b, loc, type, value);
    return {&b, loc, value};
  }
  Number in(unsigned i) { return wide(op->getOperand(i)); }
  Number out() { return wide(op->getResult(0)); }
  Value either(Value lhs, Value rhs) {
    return arith::OrIOp::create(b, op->getLoc(), lhs, rhs);
  }
  Value both(Value lhs, Value rhs) {
    return arith::AndIOp::create(b, op->getLoc(), lhs, rhs);
  }
  Value isNaN(Number x) { return x.compare(arith::CmpFPredicate::UNO, x); }
};

} // namespace

/// f'(x) of the functions of one number, where y = f(x); nothing for others.
static std::optional<Number> buildSlope(Derivative d) {
  using Slope = std::optional<Number>;
  if (d.op->getNumOperands() != 1 || d.op->getNumResults() != 1)
    return Slope();
  Number x = d.in(0), y = d.out();
  auto square = [](Number z) { return z * z; };
  auto bell = [&] { return (-square(x)).apply<math::ExpOp>(); };
  // 1 - x^2 and x^2 - 1, exact near 1.
  auto below = [&] {
    Number left = 1 - x, right = 1 + x;
    return left * right;
  };
  auto above = [&] {
    Number left = -1 + x, right = 1 + x;
    return left * right;
  };
  const double rootOfPi = std::sqrt(llvm::numbers::pi);
  return llvm::TypeSwitch<Operation *, Slope>(d.op)
      .Case([&](math::ExpOp) { return y; })
      .Case([&](math::Exp2Op) { return llvm::numbers::ln2 * y; })
      .Case([&](math::ExpM1Op) { return 1 + y; })
      .Case([&](math::LogOp) { return 1 / x; })
      .Case([&](math::Log2Op) { return 1 / (llvm::numbers::ln2 * x); })
      .Case([&](math::Log10Op) { return 1 / (llvm::numbers::ln10 * x); })
      .Case([&](math::Log1pOp) { return 1 / (1 + x); })
      .Case([&](math::SqrtOp) { return 0.5 / y; })
      .Case([&](math::RsqrtOp) { return -0.5 * (square(y) * y); })
      .Case([&](math::CbrtOp) { return 1 / (3 * square(y)); })
      .Case([&](math::SinOp) { return x.apply<math::CosOp>(); })
      .Case([&](math::CosOp) { return -x.apply<math::SinOp>(); })
      .Case([&](math::TanOp) { return 1 + square(y); })
      .Case([&](math::AsinOp) { return below().apply<math::RsqrtOp>(); })
      .Case([&](math::AcosOp) { return -below().apply<math::RsqrtOp>(); })
      .Case([&](math::AtanOp) { return 1 / (1 + square(x)); })
      .Case([&](math::SinhOp) { return x.apply<math::CoshOp>(); })
      .Case([&](math::CoshOp) { return x.apply<math::SinhOp>(); })
      .Case([&](math::TanhOp) { return 1 - square(y); })
      .Case(
          [&](math::AsinhOp) { return (1 + square(x)).apply<math::RsqrtOp>(); })
      .Case([&](math::AcoshOp) { return above().apply<math::RsqrtOp>(); })
      .Case([&](math::AtanhOp) { return 1 / below(); })
      .Case([&](math::ErfOp) { return (2 / rootOfPi) * bell(); })
      .Case([&](math::ErfcOp) { return (-2 / rootOfPi) * bell(); })
      .Case([&](math::AbsFOp) {
        // The sign; 0 at 0.
        Number one = x.constant(1), zero = x.constant(0);
        Number below = (-one).where(x < zero);
        return one.where(zero < x, below);
      })
      .Default([](Operation *) { return Slope(); });
}

/// Of the larger (or smaller) of two numbers, NaN where either is: equal ones
/// have half each.
template <typename IsOther>
static Adjoints adjointsOfExtremum(Derivative d, Number dy, IsOther isOther) {
  Number a = d.in(0), b = d.in(1);
  Number half = 0.5 * dy, zero = dy.constant(0);
  Value same = a == b;
  Number first = zero.where(isOther(a, b), dy);
  Number second = zero.where(isOther(b, a), dy);
  return {half.where(same, first).value, half.where(same, second).value};
}

/// Of one of two numbers, the first where `isFirst`.
static Adjoints adjointsOfChoice(Number dy, Value isFirst) {
  return {dy.where(isFirst).value, dy.constant(0).where(isFirst, dy).value};
}

/// The result is one of the three numbers, the value before the bounds.
static Adjoints adjointsOfClamp(Derivative d, Number dy) {
  Number y = d.out(), value = d.in(0), low = d.in(1), zero = dy.constant(0);
  Value isValue = y == value, isLow = y == low;
  Number ofBounds = zero.where(isValue, dy);
  return {dy.where(isValue).value, ofBounds.where(isLow).value,
          zero.where(isLow, ofBounds).value};
}

/// base^exponent: by the base 0 where the exponent is 0; by the exponent 0
/// where the base is 0 and the exponent is not negative.
static Adjoints adjointsOfPower(Derivative d, Number dy) {
  Number base = d.in(0), exponent = d.in(1), zero = dy.constant(0);
  Number lower = base.apply<math::PowFOp>(-1 + exponent);
  Number slope = dy * (exponent * lower);
  Number byBase = zero.where(exponent == zero, slope);
  Value isZero = base == zero, isGrowing = zero <= exponent;
  Number power = d.out(), log = base.apply<math::LogOp>();
  Number byExponent = zero.where(d.both(isZero, isGrowing), dy * (power * log));
  return {byBase.value, byExponent.value};
}

/// base^n for an integer n.
static Adjoints adjointsOfIntegerPower(Derivative d, math::FPowIOp op,
                                       Number dy) {
  OpBuilder &b = d.b;
  Location loc = op.getLoc();
  Value n = op.getRhs();
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(n.getType(), value));
  };
  Value less = arith::SubIOp::create(b, loc, n, integer(1));
  Number factor = dy.at(arith::SIToFPOp::create(b, loc, d.type, n).getResult());
  Number lower =
      dy.at(math::FPowIOp::create(b, loc, d.in(0).value, less).getResult());
  Value isFlat =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, n, integer(0));
  Number slope = dy * (factor * lower);
  return {dy.constant(0).where(isFlat, slope).value, Value()};
}

/// |magnitude| with another sign; 0 at 0.
static Adjoints adjointsOfCopySign(Derivative d, Number dy) {
  Number magnitude = d.in(0), one = dy.constant(1), zero = dy.constant(0);
  Number before = one.apply<math::CopySignOp>(magnitude);
  Number after = one.apply<math::CopySignOp>(d.in(1));
  Number slope = dy * (before * after);
  return {zero.where(magnitude == zero, slope).value, Value()};
}

static Adjoints adjointsOfAtan2(Derivative d, Number dy) {
  Number y = d.in(0), x = d.in(1);
  Number ySquared = y * y, xSquared = x * x;
  Number scaled = dy / (ySquared + xSquared);
  return {(scaled * x).value, (-(scaled * y)).value};
}

static Adjoints adjointsOfSincos(Derivative d, ValueRange adjoints) {
  Number sine = d.wide(d.op->getResult(0)), cosine = d.wide(d.op->getResult(1));
  Number sum = sine.constant(0);
  if (adjoints[0])
    sum = sine.at(adjoints[0]) * cosine;
  if (adjoints[1])
    sum = sum - sine.at(adjoints[1]) * sine;
  return {sum.value};
}

Type attn::getAdjointType(Operation *op) {
  auto isF64 = [](Type type) { return type.isF64(); };
  bool isWide = llvm::any_of(op->getOperandTypes(), isF64) ||
                llvm::any_of(op->getResultTypes(), isF64);
  if (isWide)
    return Float64Type::get(op->getContext());
  return Float32Type::get(op->getContext());
}

FailureOr<SmallVector<Value>> attn::buildAdjoints(OpBuilder &b, Operation *op,
                                                  ValueRange resultAdjoints) {
  Derivative d{b, op, getAdjointType(op)};
  // Whole numbers, integers and truth values do not move where floats do.
  bool isFlat = isa<math::CeilOp, math::FloorOp, math::RoundOp,
                    math::RoundEvenOp, math::TruncOp>(op) ||
                llvm::none_of(op->getOperandTypes(), llvm::IsaPred<FloatType>);
  if (isFlat)
    return Adjoints(op->getNumOperands());
  if (isa<math::SincosOp>(op))
    return adjointsOfSincos(d, resultAdjoints);
  Number dy{&b, op->getLoc(), resultAdjoints.front()};
  if (std::optional<Number> slope = buildSlope(d))
    return Adjoints{(dy * *slope).value};
  using Result = FailureOr<Adjoints>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return Adjoints{dy.value}; })
      .Case([&](arith::NegFOp) { return Adjoints{(-dy).value}; })
      .Case([&](arith::AddFOp) { return Adjoints{dy.value, dy.value}; })
      .Case([&](arith::SubFOp) { return Adjoints{dy.value, (-dy).value}; })
      .Case([&](arith::MulFOp) {
        return Adjoints{(dy * d.in(1)).value, (dy * d.in(0)).value};
      })
      .Case([&](arith::DivFOp) {
        Number scaled = dy / d.in(1);
        return Adjoints{scaled.value, (-(scaled * d.out())).value};
      })
      .Case([&](math::FmaOp) {
        return Adjoints{(dy * d.in(1)).value, (dy * d.in(0)).value, dy.value};
      })
      .Case([&](arith::SelectOp select) {
        Adjoints chosen = adjointsOfChoice(dy, select.getCondition());
        return Adjoints{Value(), chosen[0], chosen[1]};
      })
      .Case([&](arith::MaximumFOp) {
        return adjointsOfExtremum(d, dy,
                                  [](Number a, Number b) { return a < b; });
      })
      .Case([&](arith::MinimumFOp) {
        return adjointsOfExtremum(d, dy,
                                  [](Number a, Number b) { return b < a; });
      })
      .Case([&](arith::MaxNumFOp) {
        Number lhs = d.in(0), rhs = d.in(1);
        Value isFirst = rhs <= lhs, isOnly = d.isNaN(rhs);
        return adjointsOfChoice(dy, d.either(isFirst, isOnly));
      })
      .Case([&](arith::MinNumFOp) {
        Number lhs = d.in(0), rhs = d.in(1);
        Value isFirst = lhs <= rhs, isOnly = d.isNaN(rhs);
        return adjointsOfChoice(dy, d.either(isFirst, isOnly));
      })
      .Case([&](math::ClampFOp) { return adjointsOfClamp(d, dy); })
      .Case([&](math::PowFOp) { return adjointsOfPower(d, dy); })
      .Case([&](math::FPowIOp power) {
        return adjointsOfIntegerPower(d, power, dy);
      })
      .Case([&](math::CopySignOp) { return adjointsOfCopySign(d, dy); })
      .Case([&](math::Atan2Op) { return adjointsOfAtan2(d, dy); })
      .Default([](Operation *) { return Result(failure()); });
}
