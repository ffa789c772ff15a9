//===- LaunchExpr.cpp - integers that are known at launch ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Arguments.h"

#include <limits>

using namespace attn;
using namespace attn::runtime;

static Result<int64_t> evaluateDivision(LaunchExpr::Kind kind, int64_t lhs,
                                        int64_t rhs) {
  // x mod 0 = x: "the heads are a multiple of the key heads" holds for 0 and
  // 0, and for nothing else and 0.
  if (rhs == 0 && kind == LaunchExpr::Kind::Mod)
    return lhs;
  if (rhs == 0)
    return Status::error("launch expression divides by zero");
  if (rhs == -1 && lhs == std::numeric_limits<int64_t>::min())
    return Status::error("launch expression overflows 64 bits");
  int64_t quotient = lhs / rhs, remainder = lhs % rhs;
  bool isInexact = remainder != 0;
  bool isNegative = (lhs < 0) != (rhs < 0);
  int64_t floor = quotient - (isInexact && isNegative);
  if (kind == LaunchExpr::Kind::FloorDiv)
    return floor;
  if (kind == LaunchExpr::Kind::CeilDiv)
    return quotient + (isInexact && !isNegative);
  return lhs - floor * rhs; // the sign of the divisor, as in affine maps
}

Result<int64_t> runtime::evaluate(const LaunchExpr &expr,
                                  const Arguments &arguments,
                                  int64_t multiprocessors) {
  switch (expr.kind) {
  case LaunchExpr::Kind::Constant:
    return expr.value;
  case LaunchExpr::Kind::Dim:
    return arguments[expr.argument].sizes[expr.value];
  case LaunchExpr::Kind::Scalar:
    return arguments[expr.argument].integer;
  case LaunchExpr::Kind::Multiprocessors:
    return multiprocessors;
  default:
    break;
  }
  Result<int64_t> lhs = evaluate(expr.operands[0], arguments, multiprocessors);
  if (!lhs.ok())
    return lhs;
  Result<int64_t> rhs = evaluate(expr.operands[1], arguments, multiprocessors);
  if (!rhs.ok())
    return rhs;
  int64_t value = 0;
  bool overflows = false;
  switch (expr.kind) {
  case LaunchExpr::Kind::Add:
    overflows = __builtin_add_overflow(*lhs, *rhs, &value);
    break;
  case LaunchExpr::Kind::Sub:
    overflows = __builtin_sub_overflow(*lhs, *rhs, &value);
    break;
  case LaunchExpr::Kind::Mul:
    overflows = __builtin_mul_overflow(*lhs, *rhs, &value);
    break;
  case LaunchExpr::Kind::Min:
    value = std::min(*lhs, *rhs);
    break;
  case LaunchExpr::Kind::Max:
    value = std::max(*lhs, *rhs);
    break;
  default:
    return evaluateDivision(expr.kind, *lhs, *rhs);
  }
  if (overflows)
    return Status::error("launch expression overflows 64 bits");
  return value;
}

LaunchQuantities runtime::measureQuantities(const Artifact &artifact,
                                            const Arguments &arguments,
                                            int64_t multiprocessors) {
  constexpr int64_t kBatch = 0, kHead = 1, kLength = 2;
  LaunchQuantities values = {};
  auto set = [&](LaunchQuantity quantity, int64_t value) {
    values[static_cast<size_t>(quantity)] = value;
  };
  // That there is a query, or a key, was checked with the rule.
  auto size = [&](ArgumentRole role, int64_t dimension) {
    return arguments[*artifact.findArgument(role)].sizes[dimension];
  };
  auto names = [&](LaunchQuantity quantity) {
    return artifact.rule.names(quantity);
  };
  if (names(LaunchQuantity::QueryLength))
    set(LaunchQuantity::QueryLength, size(ArgumentRole::Query, kLength));
  if (names(LaunchQuantity::KeyLength))
    set(LaunchQuantity::KeyLength, size(ArgumentRole::Key, kLength));
  for (auto [quantity, role] :
       {std::pair(LaunchQuantity::BatchHeads, ArgumentRole::Query),
        std::pair(LaunchQuantity::BatchKeyHeads, ArgumentRole::Key)}) {
    int64_t heads = 0;
    if (names(quantity) &&
        __builtin_mul_overflow(size(role, kBatch), size(role, kHead), &heads))
      heads = std::numeric_limits<int64_t>::max();
    set(quantity, heads);
  }
  set(LaunchQuantity::Multiprocessors, multiprocessors);
  return values;
}
