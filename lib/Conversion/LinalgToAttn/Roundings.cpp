//===- Roundings.cpp - types of floats where they matter -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Scores live in f32, whatever a graph rounds them to. But where it makes an
// integer or a truth value of a float (C32 of attn.attention), a rounding is
// part of what it says: positions of bf16 are even beyond 256. Reading an
// operation leaves the rounding to its type; then all go that lead to no such
// decision, and those of what depends on a sum.
//
// f64 is such a type, too: what is computed in it and leads to a decision has
// no region.
//
//===----------------------------------------------------------------------===//

#include "Expression.h"

#include "Positions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <functional>

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

/// Integers up to here are numbers of f32.
static constexpr int64_t maxExact = int64_t(1) << 24;

ExprRef Expressions::rounding(ExprRef expr, Type type) {
  if (expr->height > 0 || (expr->kind == Kind::Rounding && expr->type == type))
    return expr;
  auto narrow = dyn_cast<FloatType>(type);
  if (expr->isConstant() && narrow && narrow.getWidth() < 32) {
    llvm::APFloat number(expr->real);
    bool losesInfo;
    number.convert(narrow.getFloatSemantics(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return real(number.convertToDouble());
  }
  Expr node{Kind::Rounding, type};
  node.operands = {expr};
  return unique(std::move(node));
}

/// A comparison with an infinity or of a value with itself asks for what no
/// rounding changes.
static bool isDecision(ExprRef expr) {
  if (expr->is<arith::CmpFOp>())
    return expr->operands[0] != expr->operands[1] &&
           llvm::none_of(expr->operands, [](ExprRef operand) {
             return operand->isConstant() && std::isinf(operand->real);
           });
  return expr->is<arith::FPToSIOp>() || expr->is<arith::FPToUIOp>() ||
         expr->is<math::CeilOp>() || expr->is<math::FloorOp>() ||
         expr->is<math::RoundOp>() || expr->is<math::RoundEvenOp>() ||
         expr->is<math::TruncOp>();
}

static bool isF64(ExprRef expr) {
  return expr->kind == Kind::Rounding && expr->type.isF64();
}

/// What a rounding to f32 leaves of numbers that f64 holds exactly.
ExprRef Expressions::roundFromWide(ExprRef wide) {
  ExprRef number = wide->operands[0];
  if (number->isConstant())
    return real(static_cast<float>(number->real));
  bool isInteger =
      number->is<arith::SIToFPOp>() || number->is<arith::UIToFPOp>();
  return isInteger ? number : wide;
}

ExprRef Expressions::settleRoundings(ExprRef root, bool isExact) {
  llvm::DenseMap<ExprRef, ExprRef> known[2]; // by `isExact`
  std::function<ExprRef(ExprRef, bool)> visit = [&](ExprRef expr,
                                                    bool isExact) -> ExprRef {
    // A reduction was settled when it was made.
    if (expr->operands.empty() || expr->kind == Kind::Reduction)
      return expr;
    llvm::DenseMap<ExprRef, ExprRef> &done = known[isExact];
    if (ExprRef settled = done.lookup(expr))
      return settled;
    if (expr->kind == Kind::Rounding) {
      ExprRef operand = expr->operands[0];
      ExprRef result;
      if (isExact && expr->type.isF32())
        result = isF64(operand) ? visit(roundFromWide(operand), true)
                                : visit(operand, true);
      else if (isExact)
        result = rounding(visit(operand, true), expr->type);
      else
        result = visit(operand, false);
      return done[expr] = result;
    }
    bool isElement = expr->kind == Kind::Element;
    bool exactOperands = !isElement && (isExact || isDecision(expr));
    SmallVector<ExprRef> operands;
    for (ExprRef operand : expr->operands)
      operands.push_back(visit(operand, exactOperands));
    bool marks = isElement && isExact && expr->isFloat();
    ExprRef result = expr;
    if (isElement && (marks || !llvm::equal(operands, expr->operands)))
      result = element(expr->value, operands, marks || expr->number != 0);
    else if (!llvm::equal(operands, expr->operands))
      result = rebuild(expr, operands);
    return done[expr] = result;
  };
  return visit(root, isExact);
}

/// The integer that `expr` is, of fewer than `bits` bits; null if it is none.
static ExprRef integerOf(Expressions &e, ExprRef expr, unsigned bits) {
  if (isF64(expr))
    expr = expr->operands[0];
  int64_t end = int64_t(1) << bits;
  if (expr->isConstant() && expr->real == std::trunc(expr->real) &&
      std::fabs(expr->real) < end)
    return e.index(static_cast<int64_t>(expr->real));
  if (!expr->is<arith::SIToFPOp>() && !expr->is<arith::UIToFPOp>())
    return nullptr;
  ExprRef number = expr->operands[0];
  std::optional<IntegerRange> range = interval(number);
  bool fits = range && range->low > -end && range->high < end &&
              (expr->is<arith::SIToFPOp>() || range->low >= 0);
  return fits ? number : nullptr;
}

/// An integer that is made of a quotient of integers: no quotient is rounded
/// to an integer above it, as both are smaller than the significand.
ExprRef Expressions::integerQuotient(const Expr &conversion) {
  ExprRef quotient = conversion.operands[0];
  bool isFloor = quotient->is<math::FloorOp>();
  if (isFloor || quotient->is<math::TruncOp>())
    quotient = quotient->operands[0];
  unsigned bits = isF64(quotient) ? 52 : 23;
  if (isF64(quotient))
    quotient = quotient->operands[0];
  if (!quotient->is<arith::DivFOp>() && !quotient->is<arith::MulFOp>())
    return nullptr;
  ExprRef divisor = quotient->operands[1];
  int exponent;
  if (quotient->is<arith::MulFOp>()) // by 1/8
    divisor = divisor->isConstant() && divisor->real > 0 && divisor->real < 1 &&
                      std::frexp(divisor->real, &exponent) == 0.5
                  ? real(1 / divisor->real)
                  : nullptr;
  ExprRef a = integerOf(*this, quotient->operands[0], bits);
  ExprRef b = divisor ? integerOf(*this, divisor, bits) : nullptr;
  if (!a || !b || !b->isConstant() || b->integer <= 0)
    return nullptr;
  return isFloor ? make<arith::FloorDivSIOp>(conversion.type, {a, b})
                 : make<arith::DivSIOp>(conversion.type, {a, b});
}

ExprRef Expressions::readInF64(ExprRef expr, Type type) {
  bool isShort = !expr->isConstant() || !type.isF64() ||
                 static_cast<float>(expr->real) == expr->real ||
                 std::isnan(expr->real);
  return isShort ? expr : rounding(expr, type);
}

ExprRef Expressions::writtenAs(ExprRef expr, Type type) {
  // What has the value of an operand, or its magnitude, is not rounded.
  bool isExact = expr->is<arith::SelectOp>() || expr->is<math::AbsFOp>() ||
                 expr->is<arith::NegFOp>() || expr->is<arith::MaximumFOp>() ||
                 expr->is<arith::MinimumFOp>() ||
                 expr->is<arith::MaxNumFOp>() || expr->is<arith::MinNumFOp>() ||
                 expr->is<math::CeilOp>() || expr->is<math::FloorOp>() ||
                 expr->is<math::RoundOp>() || expr->is<math::RoundEvenOp>() ||
                 expr->is<math::TruncOp>();
  bool isComputed = expr->kind == Kind::Operation || expr->isConstant();
  if (!isa<FloatType>(type) || type.isF32() || !isComputed || isExact)
    return expr;
  // f32 holds small integers as f64 does.
  if (type.isF64() &&
      (expr->is<arith::SIToFPOp>() || expr->is<arith::UIToFPOp>()))
    if (std::optional<IntegerRange> range = interval(expr->operands[0]))
      if (range->low >= -maxExact && range->high <= maxExact)
        return expr;
  return rounding(expr, type);
}
