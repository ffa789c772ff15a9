//===- Logarithms.cpp - logarithms to the last bit -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Logarithms.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace mlir;
using namespace attn::warp;

namespace {
/// log x = n log 2 + log m with x = 2^n m and 2/3 <= m < 4/3.
struct SplitLog {
  Value n, ofM;
};
} // namespace

/// Of 0 < x < infinity: log m is f - f^2 / 2 + f^3 q(f) with f = m - 1, which
/// is exact, and q within 1e-9 f^2 of the rest by least squares.
static SplitLog splitLog(Floats &f, Value x) {
  constexpr float leastNormal = 1.17549435e-38f, lift = 8388608; // 2^23
  constexpr int32_t bitsOfTwoThirds = 0x3f2aaaab, exponentPlace = 23;
  constexpr float coefficients[] = {
      0.3333333730697632f,   -0.24999819695949554f, 0.1999930590391159f,
      -0.16679616272449493f, 0.14312830567359924f,  -0.12195277959108353f,
      0.1066146120429039f,   -0.1284714639186859f,  0.123576320707798f};
  OpBuilder &b = f.builder;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto number = [&](int32_t value) {
    return arith::ConstantIntOp::create(b, f.loc, value, 32).getResult();
  };
  Value isTiny = arith::CmpFOp::create(b, f.loc, arith::CmpFPredicate::OLT, x,
                                       f.constant(leastNormal));
  x = arith::SelectOp::create(b, f.loc, isTiny, f.mul(x, f.constant(lift)), x);
  Value bits = arith::BitcastOp::create(b, f.loc, i32, x);
  Value place = number(exponentPlace);
  Value n = arith::ShRSIOp::create(
      b, f.loc, arith::SubIOp::create(b, f.loc, bits, number(bitsOfTwoThirds)),
      place);
  Value ofM = arith::SubIOp::create(b, f.loc, bits,
                                    arith::ShLIOp::create(b, f.loc, n, place));
  Value rest =
      f.sub(arith::BitcastOp::create(b, f.loc, f32, ofM), f.constant(1));
  Value q = f.constant(coefficients[8]);
  for (float c : llvm::reverse(llvm::ArrayRef(coefficients).drop_back()))
    q = f.fma(q, rest, f.constant(c));
  q = f.fma(q, rest, f.constant(-0.5f));
  Value lifted = arith::SelectOp::create(b, f.loc, isTiny,
                                         number(exponentPlace), number(0));
  n = arith::SIToFPOp::create(b, f.loc, f32,
                              arith::SubIOp::create(b, f.loc, n, lifted));
  return {n, f.fma(q, f.mul(rest, rest), rest)};
}

/// `result`; of what is not positive and finite the instruction's, which knows
/// it.
static Value chooseLog(Floats &f, Value x, Value result) {
  constexpr auto ordered = arith::CmpFPredicate::OGT;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Value isPositive =
      arith::CmpFOp::create(f.builder, f.loc, ordered, x, f.constant(0));
  Value isFinite =
      arith::CmpFOp::create(f.builder, f.loc, ordered, f.constant(infinity), x);
  Value isUsual = arith::AndIOp::create(f.builder, f.loc, isPositive, isFinite);
  return arith::SelectOp::create(f.builder, f.loc, isUsual, result, f.log2(x));
}

Value attn::warp::computeLog(Floats &f, Value x) {
  SplitLog log = splitLog(f, x);
  return chooseLog(f, x, f.fma(log.n, f.constant(logOf2), log.ofM));
}

Value attn::warp::computeLog2(Floats &f, Value x) {
  SplitLog log = splitLog(f, x);
  Value low = f.fma(log.ofM, f.constant(restOfLog2OfE), log.n);
  return chooseLog(f, x, f.fma(log.ofM, f.constant(log2OfE), low));
}
