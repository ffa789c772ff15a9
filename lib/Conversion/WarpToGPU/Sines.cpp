//===- Sines.cpp - sines and cosines of numbers of any period -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores take sines of distances of many thousands. n pi in one rounded product
// is off by half a unit in the last place of x: cosines of distances up to 8192
// were off by 5e-4, up to 10^6 by 0.06. Three steps of fma, whose products are
// exact, leave a rest that is rounded as itself. By half periods one polynomial
// does for sine and cosine. From 2^22 pi on, 1.3 * 10^7, the number of periods
// is off, and the result is any number from -1 to 1.
//
//===----------------------------------------------------------------------===//

#include "Sines.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace attn::warp;

/// x = n pi + rest, |rest| <= pi / 2 or little more.
static constexpr float inverseOfPi = 0x1.45f306p-2f;
/// Their sum is pi within 2^-74.
static constexpr float partsOfPi[] = {0x1.921fb6p+1f, -0x1.777a5cp-24f,
                                      -0x1.ee59dap-49f};
/// Numbers from 2^23 to 2^24 are integers: 1.5 * 2^23 + x is rounded to one,
/// and its last bit says whether it is odd.
static constexpr float rounder = 12582912;

/// sin r of |r| <= 1.72 within 1.3e-8: r + r^3 p(r^2), minimax.
static Value sineOfRest(Floats &f, Value r) {
  constexpr float coefficients[] = {
      -0.16666647791862488f, 0.008332792669534683f, -0.0001979181106435135f,
      2.570074912000564e-06f};
  Value square = f.mul(r, r), p = f.constant(coefficients[3]);
  for (float c : llvm::reverse(llvm::ArrayRef(coefficients).drop_back()))
    p = f.fma(p, square, f.constant(c));
  return f.fma(p, f.mul(square, r), r);
}

/// `y`, negated where the last bit of `rounded` is `bit`, from -1 to 1; a NaN
/// stays one.
static Value signAndBound(Floats &f, Value y, Value rounded, int32_t bit) {
  OpBuilder &b = f.builder;
  constexpr int32_t signPlace = 31;
  Type i32 = b.getI32Type();
  Value bits = arith::BitcastOp::create(b, f.loc, i32, rounded);
  if (bit == 0)
    bits = arith::XOrIOp::create(b, f.loc, bits,
                                 arith::ConstantIntOp::create(b, f.loc, 1, 32));
  Value sign = arith::ShLIOp::create(
      b, f.loc, bits, arith::ConstantIntOp::create(b, f.loc, signPlace, 32));
  Value changed = arith::XOrIOp::create(
      b, f.loc, arith::BitcastOp::create(b, f.loc, i32, y), sign);
  y = arith::BitcastOp::create(b, f.loc, b.getF32Type(), changed);
  y = arith::MinimumFOp::create(b, f.loc, y, f.constant(1));
  return arith::MaximumFOp::create(b, f.loc, y, f.constant(-1));
}

static Value takeOff(Floats &f, Value x, Value periods) {
  for (float part : partsOfPi)
    x = f.fma(periods, f.constant(-part), x);
  return x;
}

Value attn::warp::computeSine(Floats &f, Value x) {
  Value rounded = f.fma(x, f.constant(inverseOfPi), f.constant(rounder));
  Value n = f.sub(rounded, f.constant(rounder));
  return signAndBound(f, sineOfRest(f, takeOff(f, x, n)), rounded, 1);
}

/// cos(r + (n + 1/2) pi) = -(-1)^n sin r
Value attn::warp::computeCosine(Floats &f, Value x) {
  Value less = f.fma(x, f.constant(inverseOfPi), f.constant(-0.5f));
  Value rounded = f.add(less, f.constant(rounder));
  Value n = f.add(f.sub(rounded, f.constant(rounder)), f.constant(0.5f));
  return signAndBound(f, sineOfRest(f, takeOff(f, x, n)), rounded, 0);
}
