//===- ExpandMath.cpp - attn-expand-math -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/ExpandMath.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/TypeSwitch.h"
#include <type_traits>

namespace attn {
#define GEN_PASS_DEF_ATTNEXPANDMATHPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// Scalar expressions at one place.
struct Scalars {
  OpBuilder &b;
  Location loc;

  Value constant(Type type, const APFloat &value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
  }
  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }
  Value compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpFOp::create(b, loc, predicate, lhs, rhs);
  }
  Value magnitude(Value x) { return math::AbsFOp::create(b, loc, x); }
  Value infinity(Type type) {
    return constant(type,
                    APFloat::getInf(cast<FloatType>(type).getFloatSemantics()));
  }
  Value isFinite(Value x) {
    return compare(arith::CmpFPredicate::OLT, magnitude(x),
                   infinity(x.getType()));
  }
};
} // namespace

/// The smallest normal number has the lowest exponent.
static Value expandIsNormal(Scalars s, Value x) {
  const auto &semantics = cast<FloatType>(x.getType()).getFloatSemantics();
  Value smallest =
      s.constant(x.getType(), APFloat::getSmallestNormalized(semantics));
  Value isNormal =
      s.compare(arith::CmpFPredicate::OGE, s.magnitude(x), smallest);
  return arith::AndIOp::create(s.b, s.loc, isNormal, s.isFinite(x));
}

/// The zeros after the lowest one are the ones of (x & -x) - 1; all, for 0.
static Value expandTrailingZeros(Scalars s, Value x) {
  Type type = x.getType();
  Value negated = arith::SubIOp::create(s.b, s.loc, s.constant(type, 0), x);
  Value lowest = arith::AndIOp::create(s.b, s.loc, x, negated);
  Value below = arith::SubIOp::create(s.b, s.loc, lowest, s.constant(type, 1));
  return math::CtPopOp::create(s.b, s.loc, below);
}

/// Low and high half of a product, in an integer twice as wide.
template <typename Extension>
static SmallVector<Value> expandProduct(Scalars s, Value lhs, Value rhs) {
  Type type = lhs.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Type wide = s.b.getIntegerType(width == 1 ? 8 : 2 * width);
  Value product = arith::MulIOp::create(
      s.b, s.loc, Extension::create(s.b, s.loc, wide, lhs),
      Extension::create(s.b, s.loc, wide, rhs));
  Value high =
      arith::ShRUIOp::create(s.b, s.loc, product, s.constant(wide, width));
  return {arith::TruncIOp::create(s.b, s.loc, type, product),
          arith::TruncIOp::create(s.b, s.loc, type, high)};
}

static SmallVector<Value> expandSum(Scalars s, arith::AddUIExtendedOp op) {
  Value sum = arith::AddIOp::create(s.b, s.loc, op.getLhs(), op.getRhs());
  Value carry = arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::ult,
                                      sum, op.getLhs());
  return {sum, carry};
}

/// Bit by bit of the exponent: its factor is the base squared so many times. A
/// negative power is 1 / base^n rounded to 0: of 1 and -1 that is not 0.
static Value expandPower(Scalars s, Value base, Value exponent) {
  OpBuilder &b = s.b;
  Type type = base.getType();
  int64_t width = type.getIntOrFloatBitWidth();
  Value zero = s.constant(type, 0), one = s.constant(type, 1);
  auto isSet = [&](int64_t bit) -> Value {
    Value shifted =
        arith::ShRUIOp::create(b, s.loc, exponent, s.constant(type, bit));
    return arith::TruncIOp::create(b, s.loc, b.getI1Type(), shifted);
  };
  auto multiply = [&](Value lhs, Value rhs) -> Value {
    return arith::MulIOp::create(b, s.loc, lhs, rhs);
  };
  auto select = [&](Value condition, Value lhs, Value rhs) -> Value {
    return arith::SelectOp::create(b, s.loc, condition, lhs, rhs);
  };
  auto equals = [&](Value lhs, Value rhs) -> Value {
    return arith::CmpIOp::create(b, s.loc, arith::CmpIPredicate::eq, lhs, rhs);
  };
  Value power = one, factor = base;
  for (int64_t bit = 0; bit < width - 1; ++bit) {
    power = select(isSet(bit), multiply(power, factor), power);
    factor = multiply(factor, factor);
  }
  Value minusOne = s.constant(type, -1);
  Value ofMinusOne = select(isSet(0), minusOne, one);
  Value inverse = select(equals(base, one), one,
                         select(equals(base, minusOne), ofMinusOne, zero));
  Value isNegative = arith::CmpIOp::create(b, s.loc, arith::CmpIPredicate::slt,
                                           exponent, zero);
  return select(isNegative, inverse, power);
}

/// Whether an amount is known to be below the width of what is shifted.
static bool isBelowWidth(Value amount) {
  auto isSmall = [&](Value value, unsigned most) {
    APInt number;
    return matchPattern(value, m_ConstantInt(&number)) && number.ule(most);
  };
  unsigned width = amount.getType().getIntOrFloatBitWidth();
  if (isSmall(amount, width - 1))
    return true;
  Operation *op = amount.getDefiningOp();
  if (isa_and_present<arith::MinUIOp, arith::AndIOp>(op))
    return isSmall(op->getOperand(0), width - 1) ||
           isSmall(op->getOperand(1), width - 1);
  return isa_and_present<arith::RemUIOp>(op) &&
         isSmall(op->getOperand(1), width);
}

/// A shift by at most the width less one, and what is left of a number that is
/// shifted by more (C11); nothing where the amount is known to be less.
template <typename Shift>
static SmallVector<Value> expandShift(Scalars s, Shift op) {
  OpBuilder &b = s.b;
  Type type = op.getType();
  Value value = op.getLhs(), amount = op.getRhs();
  constexpr bool fillsSign = std::is_same_v<Shift, arith::ShRSIOp>;
  if (type.isInteger(1)) {
    if (fillsSign)
      return {value};
    Value stays = arith::XOrIOp::create(b, s.loc, amount, s.constant(type, 1));
    return {arith::AndIOp::create(b, s.loc, value, stays)};
  }
  if (isBelowWidth(amount))
    return {};
  Value last = s.constant(type, type.getIntOrFloatBitWidth() - 1);
  Value bounded = arith::MinUIOp::create(b, s.loc, amount, last);
  Value shifted = Shift::create(b, s.loc, value, bounded);
  if (fillsSign)
    return {shifted};
  Value isInside =
      arith::CmpIOp::create(b, s.loc, arith::CmpIPredicate::ule, amount, last);
  return {arith::SelectOp::create(b, s.loc, isInside, shifted,
                                  s.constant(type, 0))};
}

/// True for functions of 16-bit floats whose value has to be rounded to them.
static bool isNarrowFunction(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
      op->getNumResults() != 1 ||
      isa<math::AbsFOp, math::CeilOp, math::CopySignOp, math::FloorOp,
          math::RoundEvenOp, math::TruncOp>(op))
    return false;
  Type type = op->getResult(0).getType();
  return type.isF16() || type.isBF16();
}

/// Computed in f32 and rounded once: formulae with steps in 16 bits lose too
/// much, and there are not always instructions.
static Value expandNarrow(Scalars s, Operation *op) {
  Type narrow = op->getResult(0).getType(), f32 = s.b.getF32Type();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (operand.getType() == narrow)
      mapping.map(operand,
                  arith::ExtFOp::create(s.b, s.loc, f32, operand).getResult());
  Operation *wide = s.b.clone(*op, mapping);
  wide->getResult(0).setType(f32);
  return arith::TruncFOp::create(s.b, s.loc, narrow, wide->getResult(0));
}

/// What replaces the results of `op`; nothing where it stays.
static SmallVector<Value> expand(Scalars s, Operation *op) {
  using Values = SmallVector<Value>;
  return llvm::TypeSwitch<Operation *, Values>(op)
      .Case([&](math::IsNaNOp op) {
        Value x = op.getOperand();
        return Values{s.compare(arith::CmpFPredicate::UNO, x, x)};
      })
      .Case([&](math::IsInfOp op) {
        Value x = op.getOperand();
        return Values{s.compare(arith::CmpFPredicate::OEQ, s.magnitude(x),
                                s.infinity(x.getType()))};
      })
      .Case([&](math::IsFiniteOp op) {
        return Values{s.isFinite(op.getOperand())};
      })
      .Case([&](math::IsNormalOp op) {
        return Values{expandIsNormal(s, op.getOperand())};
      })
      .Case([&](math::CountTrailingZerosOp op) {
        return Values{expandTrailingZeros(s, op.getOperand())};
      })
      .Case([&](math::IPowIOp op) {
        if (op.getType().isInteger(1))
          return Values();
        return Values{expandPower(s, op.getLhs(), op.getRhs())};
      })
      .Case([&](math::ClampFOp op) {
        // Upstream's expansion has the bounds the other way round.
        Value upper =
            arith::MinimumFOp::create(s.b, s.loc, op.getValue(), op.getMax());
        return Values{
            arith::MaximumFOp::create(s.b, s.loc, upper, op.getMin())};
      })
      .Case([&](math::SincosOp op) {
        return Values{math::SinOp::create(s.b, s.loc, op.getOperand()),
                      math::CosOp::create(s.b, s.loc, op.getOperand())};
      })
      .Case([&](arith::ShLIOp op) { return expandShift(s, op); })
      .Case([&](arith::ShRSIOp op) { return expandShift(s, op); })
      .Case([&](arith::ShRUIOp op) { return expandShift(s, op); })
      .Case([&](arith::AddUIExtendedOp op) { return expandSum(s, op); })
      .Case([&](arith::MulUIExtendedOp op) {
        return expandProduct<arith::ExtUIOp>(s, op.getLhs(), op.getRhs());
      })
      .Case([&](arith::MulSIExtendedOp op) {
        return expandProduct<arith::ExtSIOp>(s, op.getLhs(), op.getRhs());
      })
      .Default([&](Operation *op) {
        return isNarrowFunction(op) ? Values{expandNarrow(s, op)} : Values();
      });
}

/// Expands what there is, once; true if there was something.
static bool expandOnce(RewriterBase &rewriter, ScoredOp scored) {
  SmallVector<Operation *> ops;
  scored->walk([&](Operation *op) {
    if (op != scored)
      ops.push_back(op);
  });
  bool changed = false;
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    SmallVector<Value> values = expand(Scalars{rewriter, op->getLoc()}, op);
    if (values.empty())
      continue;
    rewriter.replaceOp(op, values);
    changed = true;
  }
  return changed;
}

void attn::expandMath(RewriterBase &rewriter, ScoredOp scored) {
  OpBuilder::InsertionGuard guard(rewriter);
  // The sine of a sincos may be one of 16 bits.
  while (expandOnce(rewriter, scored))
    ;
}

namespace {
struct ExpandMath : attn::impl::AttnExpandMathPassBase<ExpandMath> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](ScoredOp op) { expandMath(rewriter, op); });
  }
};
} // namespace
