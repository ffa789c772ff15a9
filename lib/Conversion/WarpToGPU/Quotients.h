//===- Quotients.h - elements that are numbers of blocks --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_QUOTIENTS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_QUOTIENTS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// What a value is divided by, rounded down, if it is a quotient of that kind,
/// or of such a one.
struct Quotient {
  Value dividend;
  int64_t divisor;

  static std::optional<Quotient> match(Value value);
};

/// Elements (base + constant) / divisor. Each is one of few numbers, which
/// follow one another; one test of the base tells which of two.
struct QuotientRow {
  /// The least of the numbers (i32), and how many there are.
  Value first;
  int64_t count = 0;
  /// Of each element its number, less the least, and whether it is the one
  /// behind that (i1); no value where that cannot be.
  SmallVector<std::pair<int64_t, Value>> places;

  /// None if `values` are not of that form, or of nearly as many numbers as
  /// they are. Dividends do not wrap around.
  static std::optional<QuotientRow> match(OpBuilder &builder, Location loc,
                                          ArrayRef<Value> values);
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_QUOTIENTS_H
