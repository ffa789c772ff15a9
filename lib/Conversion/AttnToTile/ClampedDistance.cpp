//===- ClampedDistance.cpp - distances between limits ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClampedDistance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

namespace {
/// min(max(query * i + key * j + offset, least), most).
struct LimitedSum {
  int64_t query = 0, key = 0, offset = 0;
  std::optional<int64_t> least = std::nullopt, most = std::nullopt;

  bool isLimited() const { return least || most; }
  bool isConstant() const { return query == 0 && key == 0 && !isLimited(); }
  void add(int64_t number);
  void negate();
  void limit(int64_t number, bool isLeast);
};
} // namespace

void LimitedSum::add(int64_t number) {
  offset += number;
  if (least)
    *least += number;
  if (most)
    *most += number;
}

void LimitedSum::negate() {
  query = -query;
  key = -key;
  offset = -offset;
  std::swap(least, most);
  if (least)
    *least = -*least;
  if (most)
    *most = -*most;
}

/// Where limits cross, the last one holds.
void LimitedSum::limit(int64_t number, bool isLeast) {
  auto choose = [&](int64_t old) {
    return isLeast ? std::max(old, number) : std::min(old, number);
  };
  std::optional<int64_t> &own = isLeast ? least : most,
                         &other = isLeast ? most : least;
  own = own ? choose(*own) : number;
  if (other)
    other = choose(*other);
}

static std::optional<LimitedSum> read(Value value, Value query, Value key,
                                      unsigned depth = 0) {
  constexpr unsigned deepest = 16;
  if (value == query)
    return LimitedSum{1, 0};
  if (value == key)
    return LimitedSum{0, 1};
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return LimitedSum{0, 0, *constant};
  Operation *op = value.getDefiningOp();
  if (!op || depth == deepest)
    return std::nullopt;
  auto readOperand = [&](unsigned number) {
    return read(op->getOperand(number), query, key, depth + 1);
  };
  if (isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return readOperand(0);
  bool isSum = isa<arith::AddIOp>(op), isDifference = isa<arith::SubIOp>(op);
  bool isLeast = isa<arith::MaxSIOp>(op);
  if (!isSum && !isDifference && !isLeast && !isa<arith::MinSIOp>(op))
    return std::nullopt;
  std::optional<LimitedSum> lhs = readOperand(0), rhs = readOperand(1);
  if (!lhs || !rhs)
    return std::nullopt;
  if (isDifference)
    rhs->negate();
  if (lhs->isConstant())
    std::swap(lhs, rhs);
  if (!isSum && !isDifference) {
    if (!rhs->isConstant())
      return std::nullopt;
    lhs->limit(rhs->offset, isLeast);
    return lhs;
  }
  if (!rhs->isConstant() && (lhs->isLimited() || rhs->isLimited()))
    return std::nullopt;
  lhs->query += rhs->query;
  lhs->key += rhs->key;
  lhs->add(rhs->offset);
  return lhs;
}

std::optional<ClampedDistance>
attn::matchClampedDistance(Value value, Value query, Value key) {
  std::optional<LimitedSum> form = read(value, query, key);
  if (!form || std::abs(form->query) != 1 || form->key != -form->query)
    return std::nullopt;
  return ClampedDistance{form->query, form->offset, form->least, form->most};
}
