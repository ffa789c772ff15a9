//===- ScalarBits.cpp - scalars as parameters of a kernel ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Arguments.h"

#include <cmath>
#include <cstring>

using namespace attn;
using namespace attn::runtime;

// Bits of `value` in a format with `exponentBits` and `mantissaBits`, rounded
// to nearest even from double.
static uint64_t smallFloatBits(double value, int exponentBits,
                               int mantissaBits) {
  int maxExponent = (1 << (exponentBits - 1)) - 1;
  uint64_t sign =
      std::signbit(value) ? uint64_t(1) << (exponentBits + mantissaBits) : 0;
  uint64_t infinity = ((uint64_t(1) << exponentBits) - 1) << mantissaBits;
  if (std::isnan(value))
    return sign | infinity | (uint64_t(1) << (mantissaBits - 1));
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return sign | infinity;
  if (magnitude == 0)
    return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - maxExponent);
  // In units of the last place; nearbyint rounds to nearest even. A carry into
  // the next exponent, up to infinity, is what the addition below does.
  auto units = static_cast<uint64_t>(
      std::nearbyint(std::scalbn(magnitude, mantissaBits - exponent)));
  uint64_t hidden = uint64_t(1) << mantissaBits;
  if (units < hidden)
    return sign | units; // subnormal
  uint64_t biased = static_cast<uint64_t>(exponent + maxExponent);
  return sign | std::min((biased << mantissaBits) + (units - hidden), infinity);
}

static Result<uint64_t> integerBits(const Argument &value, int bits) {
  if (value.kind != Argument::Kind::Integer)
    return Status::error("wanted an integer");
  // i1 is 0 or 1; the others are signless: what fits as signed or unsigned.
  int64_t integer = value.integer;
  bool fits =
      bits == 64 || (bits == 1 ? integer == 0 || integer == 1
                               : integer >= -(int64_t(1) << (bits - 1)) &&
                                     integer < (int64_t(1) << bits));
  if (!fits)
    return Status::error("value " + std::to_string(integer) +
                         " does not fit i" + std::to_string(bits));
  return static_cast<uint64_t>(integer);
}

Result<uint64_t> runtime::scalarBits(const Argument &value,
                                     ElementKind element) {
  if (value.kind == Argument::Kind::Tensor)
    return Status::error("wanted a scalar, got a tensor");
  double real = value.kind == Argument::Kind::Real
                    ? value.real
                    : static_cast<double>(value.integer);
  uint64_t bits = 0;
  switch (element) {
  case ElementKind::I1:
    return integerBits(value, 1);
  case ElementKind::I8:
    return integerBits(value, 8);
  case ElementKind::I16:
    return integerBits(value, 16);
  case ElementKind::I32:
    return integerBits(value, 32);
  case ElementKind::I64:
    return integerBits(value, 64);
  case ElementKind::F16:
    return smallFloatBits(real, 5, 10);
  case ElementKind::BF16:
    return smallFloatBits(real, 8, 7);
  case ElementKind::F32: {
    float single = static_cast<float>(real);
    std::memcpy(&bits, &single, sizeof(single));
    return bits;
  }
  case ElementKind::F64:
    std::memcpy(&bits, &real, sizeof(real));
    return bits;
  }
  return Status::error("unknown element type");
}
