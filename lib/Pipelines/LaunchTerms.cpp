//===- LaunchTerms.cpp - building launch expressions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchTerms.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace attn;
using Kind = LaunchExpr::Kind;

LaunchExpr terms::constant(int64_t value) {
  LaunchExpr expr;
  expr.value = value;
  return expr;
}

LaunchExpr terms::dim(int64_t argument, int64_t dimension) {
  LaunchExpr expr;
  expr.kind = Kind::Dim;
  expr.argument = argument;
  expr.value = dimension;
  return expr;
}

LaunchExpr terms::scalar(int64_t argument) {
  LaunchExpr expr;
  expr.kind = Kind::Scalar;
  expr.argument = argument;
  return expr;
}

std::optional<int64_t> terms::valueOf(const LaunchExpr &expr) {
  return expr.kind == Kind::Constant ? std::optional(expr.value) : std::nullopt;
}

/// The result of two constants; nothing where it is no number of 64 bits.
static std::optional<int64_t> fold(Kind kind, int64_t lhs, int64_t rhs) {
  int64_t result;
  switch (kind) {
  case Kind::Add:
    return llvm::AddOverflow(lhs, rhs, result) ? std::nullopt
                                               : std::optional(result);
  case Kind::Sub:
    return llvm::SubOverflow(lhs, rhs, result) ? std::nullopt
                                               : std::optional(result);
  case Kind::Mul:
    return llvm::MulOverflow(lhs, rhs, result) ? std::nullopt
                                               : std::optional(result);
  case Kind::Min:
    return std::min(lhs, rhs);
  case Kind::Max:
    return std::max(lhs, rhs);
  case Kind::FloorDiv:
    return rhs > 0 ? std::optional(llvm::divideFloorSigned(lhs, rhs))
                   : std::nullopt;
  case Kind::Mod:
    return rhs > 0 ? std::optional(llvm::mod(lhs, rhs)) : std::nullopt;
  default:
    return std::nullopt;
  }
}

LaunchExpr terms::binary(Kind kind, LaunchExpr lhs, LaunchExpr rhs) {
  if (valueOf(lhs) && valueOf(rhs))
    if (std::optional<int64_t> value = fold(kind, lhs.value, rhs.value))
      return constant(*value);
  bool isSum = kind == Kind::Add || kind == Kind::Sub;
  if ((isSum && valueOf(rhs) == 0) || (kind == Kind::Mul && valueOf(rhs) == 1))
    return lhs;
  if ((kind == Kind::Add && valueOf(lhs) == 0) ||
      (kind == Kind::Mul && valueOf(lhs) == 1))
    return rhs;
  LaunchExpr expr;
  expr.kind = kind;
  expr.operands = {std::move(lhs), std::move(rhs)};
  return expr;
}

LaunchExpr terms::add(LaunchExpr lhs, LaunchExpr rhs) {
  return binary(Kind::Add, std::move(lhs), std::move(rhs));
}

LaunchExpr terms::sub(LaunchExpr lhs, LaunchExpr rhs) {
  return binary(Kind::Sub, std::move(lhs), std::move(rhs));
}

LaunchExpr terms::isLess(LaunchExpr lhs, LaunchExpr rhs) {
  LaunchExpr distance = sub(std::move(rhs), std::move(lhs));
  LaunchExpr positive = binary(Kind::Max, std::move(distance), constant(0));
  return binary(Kind::Min, std::move(positive), constant(1));
}

LaunchExpr terms::isEqual(LaunchExpr lhs, LaunchExpr rhs) {
  return logicalNot(logicalOr(isLess(lhs, rhs), isLess(rhs, lhs)));
}

LaunchExpr terms::logicalNot(LaunchExpr condition) {
  return sub(constant(1), std::move(condition));
}

LaunchExpr terms::logicalAnd(LaunchExpr lhs, LaunchExpr rhs) {
  if (valueOf(lhs))
    return lhs.value ? rhs : lhs;
  if (valueOf(rhs))
    return rhs.value ? lhs : rhs;
  return binary(Kind::Min, std::move(lhs), std::move(rhs));
}

LaunchExpr terms::logicalOr(LaunchExpr lhs, LaunchExpr rhs) {
  if (valueOf(lhs))
    return lhs.value ? lhs : rhs;
  if (valueOf(rhs))
    return rhs.value ? rhs : lhs;
  return binary(Kind::Max, std::move(lhs), std::move(rhs));
}

LaunchExpr terms::select(LaunchExpr condition, LaunchExpr ifTrue,
                         LaunchExpr ifFalse) {
  if (valueOf(condition))
    return condition.value ? ifTrue : ifFalse;
  LaunchExpr distance = sub(std::move(ifTrue), ifFalse);
  return add(binary(Kind::Mul, std::move(condition), std::move(distance)),
             std::move(ifFalse));
}

size_t terms::count(const LaunchExpr &expr) {
  size_t number = 1;
  for (const LaunchExpr &operand : expr.operands)
    number += count(operand);
  return number;
}

size_t terms::depth(const LaunchExpr &expr) {
  size_t deepest = 0;
  for (const LaunchExpr &operand : expr.operands)
    deepest = std::max(deepest, depth(operand));
  return deepest + 1;
}
