//===- Math.cpp - the math dialect and rarer arith --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace attn::simulator;

using Function = float (*)(float, float, float);

/// The functions of floats, by the name of the operation.
static const llvm::StringMap<Function> &getFunctions() {
#define ATTN_UNARY(NAME, EXPRESSION)                                           \
  {                                                                            \
    "math." NAME, [](float a, float, float) -> float { return EXPRESSION; }    \
  }
  static const llvm::StringMap<Function> functions = {
      ATTN_UNARY("absf", std::fabs(a)),
      ATTN_UNARY("acos", std::acos(a)),
      ATTN_UNARY("acosh", std::acosh(a)),
      ATTN_UNARY("asin", std::asin(a)),
      ATTN_UNARY("asinh", std::asinh(a)),
      ATTN_UNARY("atan", std::atan(a)),
      ATTN_UNARY("atanh", std::atanh(a)),
      ATTN_UNARY("cbrt", std::cbrt(a)),
      ATTN_UNARY("ceil", std::ceil(a)),
      ATTN_UNARY("cos", std::cos(a)),
      ATTN_UNARY("cosh", std::cosh(a)),
      ATTN_UNARY("erf", std::erf(a)),
      ATTN_UNARY("erfc", std::erfc(a)),
      ATTN_UNARY("exp", std::exp(a)),
      ATTN_UNARY("exp2", std::exp2(a)),
      ATTN_UNARY("expm1", std::expm1(a)),
      ATTN_UNARY("floor", std::floor(a)),
      ATTN_UNARY("log", std::log(a)),
      ATTN_UNARY("log10", std::log10(a)),
      ATTN_UNARY("log1p", std::log1p(a)),
      ATTN_UNARY("log2", std::log2(a)),
      ATTN_UNARY("round", std::round(a)),
      ATTN_UNARY("roundeven", std::nearbyint(a)),
      ATTN_UNARY("rsqrt", 1 / std::sqrt(a)),
      ATTN_UNARY("sin", std::sin(a)),
      ATTN_UNARY("sinh", std::sinh(a)),
      ATTN_UNARY("sqrt", std::sqrt(a)),
      ATTN_UNARY("tan", std::tan(a)),
      ATTN_UNARY("tanh", std::tanh(a)),
      ATTN_UNARY("trunc", std::trunc(a)),
      {"math.atan2", [](float a, float b, float) { return std::atan2(a, b); }},
      {"math.copysign",
       [](float a, float b, float) { return std::copysign(a, b); }},
      {"math.powf", [](float a, float b, float) { return std::pow(a, b); }},
      {"math.fma", [](float a, float b, float c) { return std::fma(a, b, c); }},
      {"arith.remf", [](float a, float b, float) { return std::fmod(a, b); }},
      {"arith.maximumf",
       [](float a, float b, float) {
         return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
       }},
      {"arith.minimumf",
       [](float a, float b, float) {
         return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
       }},
  };
#undef ATTN_UNARY
  return functions;
}

static uint64_t power(uint64_t base, int64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1)
      result *= base;
  return result;
}

std::optional<LogicalResult> Interpreter::executeMath(Operation *op) {
  using Bits = uint64_t;
  auto function = getFunctions().find(op->getName().getStringRef());
  if (function != getFunctions().end())
    return floats(op, function->second);
  if (op->getNumOperands() == 0 || op->getNumResults() != 1)
    return std::nullopt;
  Type operand = elementOf(op->getOperand(0).getType());
  Type result = elementOf(op->getResult(0).getType());
  int64_t width = bitsOf(operand);
  auto test = [&](bool (*holds)(float)) {
    return unary(op, [&](Bits a) { return Bits(holds(toFloat(operand, a))); });
  };

  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<math::AbsIOp>([&](auto) {
        return unary(
            op, [&](Bits a) { return extend(a, width) < 0 ? Bits(0) - a : a; });
      })
      .Case<math::CtPopOp>([&](auto) {
        return unary(op, [](Bits a) { return Bits(llvm::popcount(a)); });
      })
      .Case<math::CountLeadingZerosOp>([&](auto) {
        return unary(op, [&](Bits a) {
          return Bits(llvm::countl_zero(a) - (64 - width));
        });
      })
      .Case<math::CountTrailingZerosOp>([&](auto) {
        return unary(op, [&](Bits a) {
          return std::min(Bits(llvm::countr_zero(a)), Bits(width));
        });
      })
      .Case<math::IPowIOp>([&](auto) {
        return binary(
            op, [&](Bits a, Bits b) { return power(a, extend(b, width)); });
      })
      .Case<math::FPowIOp>([&](auto) {
        int64_t wide = bitsOf(elementOf(op->getOperand(1).getType()));
        return binary(op, [&](Bits a, Bits b) {
          return fromFloat(result, float(std::pow(double(toFloat(operand, a)),
                                                  double(extend(b, wide)))));
        });
      })
      .Case<math::IsFiniteOp>(
          [&](auto) { return test([](float a) { return std::isfinite(a); }); })
      .Case<math::IsInfOp>(
          [&](auto) { return test([](float a) { return std::isinf(a); }); })
      .Case<math::IsNaNOp>(
          [&](auto) { return test([](float a) { return std::isnan(a); }); })
      .Case<math::IsNormalOp>(
          [&](auto) { return test([](float a) { return std::isnormal(a); }); })
      .Case<arith::IndexCastUIOp>(
          [&](auto) { return unary(op, [](Bits a) { return a; }); })
      .Case<arith::CeilDivUIOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) {
          return b == 0 ? 0 : a / b + (a % b != 0);
        });
      })
      .Default([](Operation *) { return std::nullopt; });
}
