//===- Arithmetic.cpp - arith, math and their llvm twins ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace attn::simulator;

LogicalResult Interpreter::unary(Operation *op,
                                 llvm::function_ref<uint64_t(uint64_t)> fn) {
  int64_t width = bitsOf(elementOf(op->getResult(0).getType()));
  Lanes &in = get(op->getOperand(0)), &out = get(op->getResult(0));
  for (auto [from, to] : llvm::zip_equal(in, out))
    for (int64_t t = 0; t < threads; ++t)
      to[t] = truncate(fn(from[t]), width);
  return success();
}

LogicalResult
Interpreter::binary(Operation *op,
                    llvm::function_ref<uint64_t(uint64_t, uint64_t)> fn) {
  int64_t width = bitsOf(elementOf(op->getResult(0).getType()));
  Lanes &lhs = get(op->getOperand(0)), &rhs = get(op->getOperand(1));
  Lanes &out = get(op->getResult(0));
  for (auto [a, b, to] : llvm::zip_equal(lhs, rhs, out))
    for (int64_t t = 0; t < threads; ++t)
      to[t] = truncate(fn(a[t], b[t]), width);
  return success();
}

/// Up to three float operands of the result's type; missing ones are 0.
LogicalResult
Interpreter::floats(Operation *op,
                    llvm::function_ref<float(float, float, float)> fn) {
  Type type = elementOf(op->getResult(0).getType());
  unsigned count = op->getNumOperands();
  Lanes &out = get(op->getResult(0));
  Lanes *in[3] = {nullptr, nullptr, nullptr};
  for (unsigned i = 0; i < std::min(count, 3u); ++i)
    in[i] = &get(op->getOperand(i));
  for (size_t part = 0; part < out.size(); ++part)
    for (int64_t t = 0; t < threads; ++t) {
      float x[3] = {0, 0, 0};
      for (unsigned i = 0; i < std::min(count, 3u); ++i)
        x[i] = toFloat(type, (*in[i])[part][t]);
      out[part][t] = fromFloat(type, fn(x[0], x[1], x[2]));
    }
  return success();
}

LogicalResult Interpreter::constant(Operation *op, Attribute value) {
  if (auto elements = dyn_cast<SplatElementsAttr>(value))
    value = elements.getSplatValue<Attribute>();
  uint64_t bits;
  if (auto integer = dyn_cast<IntegerAttr>(value))
    bits =
        truncate(integer.getValue().getZExtValue(), bitsOf(integer.getType()));
  else if (auto number = dyn_cast<FloatAttr>(value))
    bits = number.getValue().bitcastToAPInt().getZExtValue();
  else
    return op->emitOpError("has a constant unknown to the simulator");
  for (Part &part : get(op->getResult(0)))
    std::fill(part.begin(), part.end(), bits);
  return success();
}

/// The same bits, cut into other parts.
LogicalResult Interpreter::bitcast(Operation *op) {
  int64_t fromBits = bitsOf(elementOf(op->getOperand(0).getType()));
  int64_t toBits = bitsOf(elementOf(op->getResult(0).getType()));
  Lanes &in = get(op->getOperand(0)), &out = get(op->getResult(0));
  int64_t total = fromBits * int64_t(in.size());
  if (total > 64 || total != toBits * int64_t(out.size()))
    return op->emitOpError("casts bits in a way unknown to the simulator");
  for (int64_t t = 0; t < threads; ++t) {
    uint64_t all = 0;
    for (size_t part = 0; part < in.size(); ++part)
      all |= in[part][t] << (part * fromBits);
    for (size_t part = 0; part < out.size(); ++part)
      out[part][t] = truncate(all >> (part * toBits), toBits);
  }
  return success();
}

static uint64_t compare(arith::CmpIPredicate predicate, uint64_t a, uint64_t b,
                        int64_t width) {
  int64_t x = extend(a, width), y = extend(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return x < y;
  case arith::CmpIPredicate::sle:
    return x <= y;
  case arith::CmpIPredicate::sgt:
    return x > y;
  case arith::CmpIPredicate::sge:
    return x >= y;
  case arith::CmpIPredicate::ult:
    return a < b;
  case arith::CmpIPredicate::ule:
    return a <= b;
  case arith::CmpIPredicate::ugt:
    return a > b;
  case arith::CmpIPredicate::uge:
    return a >= b;
  }
  llvm_unreachable("all predicates are listed");
}

namespace {
/// An intrinsic on floats, by the start of its name; the approximations of the
/// hardware are taken as exact.
struct Intrinsic {
  llvm::StringLiteral prefix;
  float (*function)(float, float, float);
};
} // namespace

static const Intrinsic intrinsics[] = {
    {"llvm.nvvm.ex2.approx",
     [](float a, float, float) { return std::exp2(a); }},
    {"llvm.nvvm.lg2.approx",
     [](float a, float, float) { return std::log2(a); }},
    {"llvm.nvvm.rcp.approx", [](float a, float, float) { return 1 / a; }},
    {"llvm.nvvm.rsqrt.approx",
     [](float a, float, float) { return 1 / std::sqrt(a); }},
    {"llvm.nvvm.sqrt.", [](float a, float, float) { return std::sqrt(a); }},
    {"llvm.nvvm.tanh.approx",
     [](float a, float, float) { return std::tanh(a); }},
    {"llvm.nvvm.div.", [](float a, float b, float) { return a / b; }},
    {"llvm.fabs", [](float a, float, float) { return std::fabs(a); }},
    {"llvm.copysign",
     [](float a, float b, float) { return std::copysign(a, b); }},
    {"llvm.floor", [](float a, float, float) { return std::floor(a); }},
    {"llvm.ceil", [](float a, float, float) { return std::ceil(a); }},
    {"llvm.trunc", [](float a, float, float) { return std::trunc(a); }},
    {"llvm.roundeven", [](float a, float, float) { return std::nearbyint(a); }},
};

std::optional<LogicalResult> Interpreter::executeArithmetic(Operation *op) {
  using Bits = uint64_t;
  int64_t width =
      op->getNumOperands() ? bitsOf(elementOf(op->getOperand(0).getType())) : 0;
  Type result =
      op->getNumResults() ? elementOf(op->getResult(0).getType()) : Type();
  Type operand =
      op->getNumOperands() ? elementOf(op->getOperand(0).getType()) : Type();
  auto sx = [&](Bits bits) { return extend(bits, width); };
  // A lane that is switched off may divide by anything.
  auto divisor = [](Bits bits) { return bits ? bits : 1; };

  return llvm::TypeSwitch<Operation *, std::optional<LogicalResult>>(op)
      .Case<arith::ConstantOp>(
          [&](auto c) { return constant(op, c.getValue()); })
      .Case<LLVM::ConstantOp>(
          [&](auto c) { return constant(op, c.getValue()); })
      .Case<LLVM::PoisonOp, LLVM::UndefOp, LLVM::ZeroOp>(
          [&](auto) { return success(); })
      .Case<arith::AddIOp, LLVM::AddOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a + b; });
      })
      .Case<arith::SubIOp, LLVM::SubOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a - b; });
      })
      .Case<arith::MulIOp, LLVM::MulOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a * b; });
      })
      .Case<arith::AndIOp, LLVM::AndOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a & b; });
      })
      .Case<arith::OrIOp, LLVM::OrOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a | b; });
      })
      .Case<arith::XOrIOp, LLVM::XOrOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a ^ b; });
      })
      .Case<arith::ShLIOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a << (b & 63); });
      })
      .Case<arith::ShRUIOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return a >> (b & 63); });
      })
      .Case<arith::ShRSIOp>([&](auto) {
        return binary(op,
                      [&](Bits a, Bits b) { return Bits(sx(a) >> (b & 63)); });
      })
      .Case<arith::DivUIOp>([&](auto) {
        return binary(op, [&](Bits a, Bits b) { return a / divisor(b); });
      })
      .Case<arith::RemUIOp>([&](auto) {
        return binary(op, [&](Bits a, Bits b) { return a % divisor(b); });
      })
      .Case<arith::DivSIOp>([&](auto) {
        return binary(
            op, [&](Bits a, Bits b) { return Bits(sx(a) / sx(divisor(b))); });
      })
      .Case<arith::RemSIOp>([&](auto) {
        return binary(
            op, [&](Bits a, Bits b) { return Bits(sx(a) % sx(divisor(b))); });
      })
      .Case<arith::CeilDivSIOp>([&](auto) {
        return binary(op, [&](Bits a, Bits b) {
          int64_t n = sx(a), d = sx(divisor(b)), q = n / d;
          return Bits(n % d != 0 && (n < 0) == (d < 0) ? q + 1 : q);
        });
      })
      .Case<arith::FloorDivSIOp>([&](auto) {
        return binary(op, [&](Bits a, Bits b) {
          int64_t n = sx(a), d = sx(divisor(b)), q = n / d;
          return Bits(n % d != 0 && (n < 0) != (d < 0) ? q - 1 : q);
        });
      })
      .Case<arith::MaxSIOp, LLVM::SMaxOp>([&](auto) {
        return binary(op,
                      [&](Bits a, Bits b) { return sx(a) > sx(b) ? a : b; });
      })
      .Case<arith::MinSIOp, LLVM::SMinOp>([&](auto) {
        return binary(op,
                      [&](Bits a, Bits b) { return sx(a) < sx(b) ? a : b; });
      })
      .Case<LLVM::SSubSat, LLVM::SAddSat>([&](auto) {
        int64_t most = int64_t(~Bits(0) >> (65 - width)), least = -most - 1;
        bool isSum = isa<LLVM::SAddSat>(op);
        return binary(op, [&](Bits a, Bits b) {
          int64_t exact, x = sx(a), y = sx(b);
          bool overflow = isSum ? llvm::AddOverflow(x, y, exact)
                                : llvm::SubOverflow(x, y, exact);
          if (overflow)
            return Bits(x < 0 ? least : most);
          return Bits(std::clamp(exact, least, most));
        });
      })
      .Case<arith::MaxUIOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return std::max(a, b); });
      })
      .Case<arith::MinUIOp>([&](auto) {
        return binary(op, [](Bits a, Bits b) { return std::min(a, b); });
      })
      .Case<LLVM::FshlOp>([&](auto shift) {
        Part &high = get(shift.getA())[0], &low = get(shift.getB())[0];
        Part &count = get(shift.getC())[0], &out = get(shift)[0];
        for (int64_t t = 0; t < threads; ++t) {
          int64_t places = count[t] % width;
          out[t] = truncate(
              places ? high[t] << places | low[t] >> (width - places) : high[t],
              width);
        }
        return success();
      })
      .Case<arith::CmpIOp>([&](auto cmp) {
        return binary(op, [&](Bits a, Bits b) {
          return compare(cmp.getPredicate(), a, b, width);
        });
      })
      .Case<arith::CmpFOp>([&](auto cmp) {
        return binary(op, [&](Bits a, Bits b) -> Bits {
          return arith::applyCmpPredicate(cmp.getPredicate(),
                                          APFloat(toFloat(operand, a)),
                                          APFloat(toFloat(operand, b)));
        });
      })
      .Case<arith::SelectOp>([&](auto select) -> LogicalResult {
        Lanes &condition = get(select.getCondition()), &out = get(select);
        Lanes &yes = get(select.getTrueValue()),
              &no = get(select.getFalseValue());
        for (size_t part = 0; part < out.size(); ++part)
          for (int64_t t = 0; t < threads; ++t)
            out[part][t] = condition[condition.size() == 1 ? 0 : part][t]
                               ? yes[part][t]
                               : no[part][t];
        return success();
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, LLVM::SExtOp>(
          [&](auto) { return unary(op, [&](Bits a) { return Bits(sx(a)); }); })
      .Case<arith::ExtUIOp, arith::TruncIOp, LLVM::ZExtOp, LLVM::TruncOp,
            LLVM::IntToPtrOp, LLVM::PtrToIntOp, LLVM::AddrSpaceCastOp>(
          [&](auto) { return unary(op, [](Bits a) { return a; }); })
      .Case<LLVM::BitcastOp, arith::BitcastOp>(
          [&](auto) { return bitcast(op); })
      .Case<arith::SIToFPOp, LLVM::SIToFPOp>([&](auto) {
        return unary(op,
                     [&](Bits a) { return fromFloat(result, float(sx(a))); });
      })
      .Case<arith::UIToFPOp>([&](auto) {
        return unary(op, [&](Bits a) { return fromFloat(result, float(a)); });
      })
      .Case<arith::FPToUIOp>([&](auto) {
        return unary(op, [&](Bits a) { return Bits(toFloat(operand, a)); });
      })
      .Case<arith::FPToSIOp>([&](auto) {
        return unary(
            op, [&](Bits a) { return Bits(int64_t(toFloat(operand, a))); });
      })
      .Case<arith::ExtFOp, arith::TruncFOp, LLVM::FPExtOp, LLVM::FPTruncOp>(
          [&](auto) {
            return unary(op, [&](Bits a) {
              return fromFloat(result, toFloat(operand, a));
            });
          })
      .Case<arith::AddFOp, LLVM::FAddOp>([&](auto) {
        return floats(op, [](float a, float b, float) { return a + b; });
      })
      .Case<arith::SubFOp, LLVM::FSubOp>([&](auto) {
        return floats(op, [](float a, float b, float) { return a - b; });
      })
      .Case<arith::MulFOp, LLVM::FMulOp>([&](auto) {
        return floats(op, [](float a, float b, float) { return a * b; });
      })
      .Case<arith::DivFOp, LLVM::FDivOp>([&](auto) {
        return floats(op, [](float a, float b, float) { return a / b; });
      })
      .Case<arith::NegFOp, LLVM::FNegOp>([&](auto) {
        return floats(op, [](float a, float, float) { return -a; });
      })
      .Case<arith::MaxNumFOp, LLVM::MaxNumOp>([&](auto) {
        return floats(op,
                      [](float a, float b, float) { return std::fmax(a, b); });
      })
      .Case<arith::MinNumFOp, LLVM::MinNumOp>([&](auto) {
        return floats(op,
                      [](float a, float b, float) { return std::fmin(a, b); });
      })
      .Case<LLVM::FMAOp>([&](auto) {
        return floats(
            op, [](float a, float b, float c) { return std::fma(a, b, c); });
      })
      .Case<LLVM::FAbsOp>([&](auto) {
        return floats(op, [](float a, float, float) { return std::fabs(a); });
      })
      .Case<LLVM::CopySignOp>([&](auto) {
        return floats(
            op, [](float a, float b, float) { return std::copysign(a, b); });
      })
      .Case<LLVM::CallIntrinsicOp>(
          [&](auto call) -> std::optional<LogicalResult> {
            for (const Intrinsic &known : intrinsics)
              if (call.getIntrin().starts_with(known.prefix))
                return floats(op, known.function);
            return std::nullopt;
          })
      .Case<NVVM::ConvertF32x2ToF16x2Op, NVVM::ConvertF32x2ToBF16x2Op>(
          [&](auto convert) -> LogicalResult {
            // The first source goes to the upper half.
            Lanes &hi = get(convert.getOperation()->getOperand(0));
            Lanes &lo = get(convert.getOperation()->getOperand(1));
            Lanes &out = get(convert);
            for (int64_t t = 0; t < threads; ++t) {
              out[0][t] = fromFloat(result, toFloat(operand, lo[0][t]));
              out[1][t] = fromFloat(result, toFloat(operand, hi[0][t]));
            }
            return success();
          })
      .Default([](Operation *) { return std::nullopt; });
}
