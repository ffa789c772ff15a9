//===- Clamps.cpp - integers between limits ---------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Clamps.h"

#include "Integers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

Clamp Clamp::split(Value value) {
  Clamp clamp = {Offset::split(value), {}};
  while (clamp.offset.base) {
    Operation *op = clamp.offset.base.getDefiningOp();
    if (!isa_and_nonnull<arith::MaxSIOp, arith::MinSIOp>(op))
      break;
    Value limit = op->getOperand(1), inner = op->getOperand(0);
    if (getConstantIntValue(inner))
      std::swap(limit, inner);
    clamp.limits.push_back(
        {limit, isa<arith::MaxSIOp>(op), clamp.offset.constant});
    Offset within = Offset::split(inner);
    clamp.offset = {within.base, within.constant + clamp.offset.constant};
  }
  return clamp;
}

Value attn::warp::areWithin(OpBuilder &builder, Location loc,
                            ArrayRef<Limit> limits, Value first, Value last) {
  Addresses wide(builder, loc);
  Value all;
  auto require = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    Value holds = arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
    all = all ? arith::AndIOp::create(builder, loc, all, holds).getResult()
              : holds;
  };
  // What is limited is an integer of 32 bits: it has not wrapped around.
  Value least = wide.constant(std::numeric_limits<int32_t>::min());
  Value most = wide.constant(std::numeric_limits<int32_t>::max());
  for (const Limit &limit : limits) {
    Value back = wide.constant(-limit.after), bound = wide.fromInt(limit.value);
    require(arith::CmpIPredicate::sge, wide.add(first, back),
            limit.isLeast ? bound : least);
    require(arith::CmpIPredicate::sle, wide.add(last, back),
            limit.isLeast ? most : bound);
  }
  return all;
}
