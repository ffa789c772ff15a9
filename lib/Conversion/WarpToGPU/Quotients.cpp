//===- Quotients.cpp - elements that are numbers of blocks ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With base = divisor * q + rest the quotient of base + c is q + (rest + c) /
// divisor, and 0 <= rest < divisor: c leaves two numbers, and the rest tells
// which of them it is. Where LLVM knows the rest well enough, as that of
// aligned tiles, nothing is left of the test.
//
//===----------------------------------------------------------------------===//

#include "Quotients.h"

#include "Integers.h"
#include "Offsets.h"
#include "Remainders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The divisor of one division.
static std::optional<int64_t> getDivisor(Operation *op) {
  if (!isa_and_nonnull<arith::FloorDivSIOp, arith::ShRSIOp>(op))
    return std::nullopt;
  std::optional<int64_t> number = getNumber(op->getOperand(1));
  if (number && isa<arith::ShRSIOp>(op))
    number = *number >= 0 && *number < 31 ? int64_t(1) << *number : 0;
  if (!number || *number <= 0)
    return std::nullopt;
  return number;
}

std::optional<Quotient> Quotient::match(Value value) {
  Quotient quotient = {value, 1};
  // A quotient of a quotient is one by the product.
  while (std::optional<int64_t> divisor =
             getDivisor(quotient.dividend.getDefiningOp())) {
    if (quotient.divisor * *divisor > std::numeric_limits<int32_t>::max())
      break;
    quotient.dividend = quotient.dividend.getDefiningOp()->getOperand(0);
    quotient.divisor *= *divisor;
  }
  if (quotient.dividend == value)
    return std::nullopt;
  return quotient;
}

std::optional<QuotientRow> QuotientRow::match(OpBuilder &builder, Location loc,
                                              ArrayRef<Value> values) {
  Value base;
  int64_t divisor = 0;
  SmallVector<int64_t> constants;
  for (Value value : values) {
    std::optional<Quotient> quotient = Quotient::match(value);
    if (!quotient)
      return std::nullopt;
    Offset offset = Offset::split(quotient->dividend);
    if (constants.empty()) {
      base = offset.base;
      divisor = quotient->divisor;
    }
    if (!base || offset.base != base || quotient->divisor != divisor)
      return std::nullopt;
    constants.push_back(offset.constant);
  }
  if (constants.empty())
    return std::nullopt;

  // From the least element on.
  auto [least, most] = std::minmax_element(constants.begin(), constants.end());
  int64_t start = *least, count = (divisor - 1 + *most - start) / divisor + 1;
  if (2 * count >
      int64_t(llvm::DenseSet<int64_t>(llvm::from_range, constants).size()))
    return std::nullopt;
  Integers ints(builder, loc);
  Value begin = ints.add(base, start);
  QuotientRow row;
  row.first =
      arith::FloorDivSIOp::create(builder, loc, begin, ints.constant(divisor));
  row.count = count;
  // What LLVM knows of the base it would not know of the difference.
  Value rest = llvm::isPowerOf2_64(divisor)
                   ? ints.bitAnd(begin, divisor - 1)
                   : arith::SubIOp::create(builder, loc, begin,
                                           ints.mul(row.first, divisor))
                         .getResult();
  llvm::DenseMap<int64_t, Value> crosses;
  for (int64_t constant : constants) {
    int64_t number = (constant - start) / divisor;
    int64_t left = (number + 1) * divisor - (constant - start);
    Value &isBehind = crosses[constant];
    // The rest is less than the divisor.
    if (left < divisor && !isBehind)
      isBehind = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                       rest, ints.constant(left));
    row.places.push_back({number, isBehind});
  }
  return row;
}
