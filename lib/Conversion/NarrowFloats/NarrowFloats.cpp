//===- NarrowFloats.cpp - f16 and bf16 without instructions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number is rounded once, to nearest even. f32 has more than twice the digits
// of f16 and bf16, and two: what +, -, *, / and the square root give in f32 may
// be rounded again. What comes from f64 or from an integer may not: it goes
// through f32 "rounded to odd" (what does not fit is cut off, and leaves the
// last bit set), which keeps apart a tie from what only looks like one.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/ProcessorPasses.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTNARROWFLOATS
#include "attn/Conversion/ProcessorPasses.h.inc"
} // namespace attn

using namespace mlir;

/// Not of a type of another room: passes of this one do not make such.
static bool isNarrow(Type type) {
  if (!isa<BuiltinDialect>(type.getDialect()))
    return false;
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

namespace {
/// Expressions at one place, of scalars or of vectors.
class FloatExpressions {
public:
  FloatExpressions(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// A float as f32 or f64.
  Value widen(Value x, Type type);
  /// A float or an integer as f16 or bf16: `type`.
  Value narrow(Value x, Type type);
  Value narrowInteger(Value x, bool isSigned, Type type);

private:
  Value widenF16(Value x);
  Value widenBF16(Value x);
  Value bitsOfF16(Value x);
  Value bitsOfBF16(Value x);
  Value roundToOdd(Value x);
  Value fitIntoF64(Value x, bool isSigned);

  /// `element`, or a vector of it where `shape` is one.
  static Type like(Type shape, Type element) {
    if (auto shaped = dyn_cast<ShapedType>(shape))
      return shaped.clone(element);
    return element;
  }
  Type integer(Value x, unsigned width) {
    return like(x.getType(), b.getIntegerType(width));
  }
  Type f32(Value x) { return like(x.getType(), b.getF32Type()); }
  Type f64(Value x) { return like(x.getType(), b.getF64Type()); }

  Value constant(Type type, TypedAttr element) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      element = DenseElementsAttr::get(shaped, Attribute(element));
    return arith::ConstantOp::create(b, loc, element);
  }
  Value constant(Type type, uint64_t bits) {
    auto element = cast<IntegerType>(getElementTypeOrSelf(type));
    return constant(type,
                    b.getIntegerAttr(element, APInt(element.getWidth(), bits,
                                                    /*isSigned=*/false,
                                                    /*implicitTrunc=*/true)));
  }
  Value real(Type type, double value) {
    return constant(type, b.getFloatAttr(getElementTypeOrSelf(type), value));
  }
  /// A conversion.
  template <typename Op> Value to(Type type, Value x) {
    return Op::create(b, loc, type, x);
  }
  template <typename Op> Value make(Value lhs, Value rhs) {
    return Op::create(b, loc, lhs, rhs);
  }
  template <typename Op> Value make(Value lhs, uint64_t rhs) {
    return Op::create(b, loc, lhs, constant(lhs.getType(), rhs));
  }
  template <typename Right>
  Value compare(arith::CmpIPredicate predicate, Value lhs, Right rhs) {
    if constexpr (std::is_integral_v<Right>)
      return compare(predicate, lhs, constant(lhs.getType(), rhs));
    else
      return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  }

  OpBuilder &b;
  Location loc;
};
} // namespace

//===----------------------------------------------------------------------===//
// Wider
//===----------------------------------------------------------------------===//

Value FloatExpressions::widenBF16(Value x) {
  Value bits = to<arith::ExtUIOp>(integer(x, 32),
                                  to<arith::BitcastOp>(integer(x, 16), x));
  return to<arith::BitcastOp>(f32(x), make<arith::ShLIOp>(bits, 16));
}

/// The exponent is moved from bias 15 to bias 127: by 112, and twice so for
/// infinity and NaN. Below the normal numbers x is its digits times 2^-24; f32
/// has that as a normal number, so no mode of the processor flushes it.
Value FloatExpressions::widenF16(Value x) {
  constexpr uint64_t shift = 112u << 23, exponent = 0x7c00;
  Value bits = to<arith::ExtUIOp>(integer(x, 32),
                                  to<arith::BitcastOp>(integer(x, 16), x));
  Value magnitude = make<arith::AndIOp>(bits, 0x7fff);
  Value moved = make<arith::AddIOp>(make<arith::ShLIOp>(magnitude, 13), shift);
  Value tiny = to<arith::BitcastOp>(
      bits.getType(),
      make<arith::MulFOp>(to<arith::SIToFPOp>(f32(x), magnitude),
                          real(f32(x), 0x1p-24)));
  Value result =
      select(compare(arith::CmpIPredicate::uge, magnitude, exponent),
             make<arith::AddIOp>(moved, shift),
             select(compare(arith::CmpIPredicate::ult, magnitude, 0x400u), tiny,
                    moved));
  Value sign = make<arith::ShLIOp>(make<arith::AndIOp>(bits, 0x8000), 16);
  return to<arith::BitcastOp>(f32(x), make<arith::OrIOp>(result, sign));
}

Value FloatExpressions::widen(Value x, Type type) {
  Value wide = getElementTypeOrSelf(x).isBF16() ? widenBF16(x) : widenF16(x);
  return wide.getType() == type ? wide : to<arith::ExtFOp>(type, wide);
}

//===----------------------------------------------------------------------===//
// Narrower
//===----------------------------------------------------------------------===//

/// f32 to the bits of bf16: the upper half, after half a unit less one bit,
/// and that bit if the result would be odd. A carry moves into the exponent, up
/// to infinity. NaN stays one: its first digit is set.
Value FloatExpressions::bitsOfBF16(Value x) {
  Value bits = to<arith::BitcastOp>(integer(x, 32), x);
  Value upper = make<arith::ShRUIOp>(bits, 16);
  Value bias =
      make<arith::AddIOp>(make<arith::AndIOp>(upper, 1), uint64_t(0x7fff));
  Value rounded = make<arith::ShRUIOp>(make<arith::AddIOp>(bits, bias), 16);
  Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
  return select(isNaN, make<arith::OrIOp>(upper, 0x40), rounded);
}

/// f32 to the bits of f16: the same with 13 bits less and another bias of the
/// exponent. Below the normal numbers a unit is 2^-24, that of 0.5 in f32: an
/// addition rounds.
Value FloatExpressions::bitsOfF16(Value x) {
  constexpr uint64_t half = 0x3f000000, smallestNormal = 0x38800000,
                     beyond = 0x47800000, infinity = 0x7f800000;
  Value bits = to<arith::BitcastOp>(integer(x, 32), x);
  Value sign = make<arith::AndIOp>(make<arith::ShRUIOp>(bits, 16), 0x8000);
  Value magnitude = make<arith::AndIOp>(bits, 0x7fffffff);
  Value isOdd = make<arith::AndIOp>(make<arith::ShRUIOp>(magnitude, 13), 1);
  Value normal = make<arith::ShRUIOp>(
      make<arith::AddIOp>(make<arith::SubIOp>(magnitude, (112u << 23) - 0xfff),
                          isOdd),
      13);
  Value sum = make<arith::AddFOp>(to<arith::BitcastOp>(f32(x), magnitude),
                                  real(f32(x), 0.5));
  Value tiny =
      make<arith::SubIOp>(to<arith::BitcastOp>(bits.getType(), sum), half);
  Value finite =
      select(compare(arith::CmpIPredicate::ult, magnitude, smallestNormal),
             tiny, normal);
  Value special = select(
      compare(arith::CmpIPredicate::ugt, magnitude, infinity),
      constant(bits.getType(), 0x7e00), constant(bits.getType(), 0x7c00));
  return make<arith::OrIOp>(
      select(compare(arith::CmpIPredicate::uge, magnitude, beyond), special,
             finite),
      sign);
}

/// f64 to f32. Of the two neighbours of a number that does not fit, one is odd:
/// where the nearer one is even, it is the other.
Value FloatExpressions::roundToOdd(Value x) {
  Value nearest = to<arith::TruncFOp>(f32(x), x);
  Value back = to<arith::ExtFOp>(f64(x), nearest);
  Value isInexact =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, back, x);
  Value bits = to<arith::BitcastOp>(integer(x, 32), nearest);
  Value isEven =
      compare(arith::CmpIPredicate::eq, make<arith::AndIOp>(bits, 1), 0u);
  auto magnitude = [&](Value value) {
    return make<arith::ShLIOp>(to<arith::BitcastOp>(integer(x, 64), value), 1);
  };
  Value isAway =
      compare(arith::CmpIPredicate::ugt, magnitude(back), magnitude(x));
  Value other = select(isAway, make<arith::SubIOp>(bits, 1),
                       make<arith::AddIOp>(bits, 1));
  Value odd = select(make<arith::AndIOp>(isInexact, isEven), other, bits);
  return to<arith::BitcastOp>(f32(x), odd);
}

Value FloatExpressions::narrow(Value x, Type type) {
  if (getElementTypeOrSelf(x).isF64())
    x = roundToOdd(x);
  Value bits =
      getElementTypeOrSelf(type).isBF16() ? bitsOfBF16(x) : bitsOfF16(x);
  return to<arith::BitcastOp>(type, to<arith::TruncIOp>(integer(x, 16), bits));
}

/// An i64 that f64 has exactly, and that lies on the same side of every f16 and
/// bf16: beyond 53 bits the last 12 count only as a bit that is set or not.
Value FloatExpressions::fitIntoF64(Value x, bool isSigned) {
  constexpr uint64_t exact = uint64_t(1) << 53;
  Value fits = isSigned ? compare(arith::CmpIPredicate::ult,
                                  make<arith::AddIOp>(x, exact), 2 * exact)
                        : compare(arith::CmpIPredicate::ult, x, exact);
  Value rest = compare(arith::CmpIPredicate::ne, make<arith::AndIOp>(x, 0xfff),
                       uint64_t(0));
  Value bit = select(rest, constant(x.getType(), 0x800),
                     constant(x.getType(), uint64_t(0)));
  Value rounded =
      make<arith::OrIOp>(make<arith::AndIOp>(x, ~uint64_t(0xfff)), bit);
  return select(fits, x, rounded);
}

Value FloatExpressions::narrowInteger(Value x, bool isSigned, Type type) {
  if (getElementTypeOrSelf(x).getIntOrFloatBitWidth() == 64)
    x = fitIntoF64(x, isSigned);
  return narrow(isSigned ? to<arith::SIToFPOp>(f64(x), x)
                         : to<arith::UIToFPOp>(f64(x), x),
                type);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Computes with numbers of 16 bits, rather than moving them.
static bool computesNarrow(Operation *op) {
  if (!isa_and_present<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      isa<arith::ConstantOp, arith::BitcastOp, arith::SelectOp>(op))
    return false;
  return llvm::any_of(op->getOperandTypes(), isNarrow) ||
         llvm::any_of(op->getResultTypes(), isNarrow);
}

static SmallVector<Value> computeInF32(OpBuilder &b, Operation *op) {
  FloatExpressions expressions(b, op->getLoc());
  auto wide = [&](Type type) -> Type {
    if (auto shaped = dyn_cast<ShapedType>(type))
      return shaped.clone(b.getF32Type());
    return b.getF32Type();
  };
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (isNarrow(operand.getType()))
      mapping.map(operand, expressions.widen(operand, wide(operand.getType())));
  Operation *clone = b.clone(*op, mapping);
  SmallVector<Value> results;
  for (OpResult result : clone->getResults()) {
    Type type = result.getType();
    if (isNarrow(type))
      result.setType(wide(type));
    results.push_back(isNarrow(type) ? expressions.narrow(result, type)
                                     : result);
  }
  return results;
}

static SmallVector<Value> expand(OpBuilder &b, Operation *op) {
  FloatExpressions expressions(b, op->getLoc());
  Type result = op->getResult(0).getType();
  if (isa<arith::ExtFOp>(op))
    return {expressions.widen(op->getOperand(0), result)};
  if (isa<arith::TruncFOp>(op))
    return {expressions.narrow(op->getOperand(0), result)};
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return {expressions.narrowInteger(op->getOperand(0),
                                      isa<arith::SIToFPOp>(op), result)};
  return computeInF32(b, op);
}

namespace {
struct ConvertNarrowFloats
    : public attn::impl::ConvertNarrowFloatsBase<ConvertNarrowFloats> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (computesNarrow(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder builder(op);
      op->replaceAllUsesWith(expand(builder, op));
      op->erase();
    }
  }
};
} // namespace
