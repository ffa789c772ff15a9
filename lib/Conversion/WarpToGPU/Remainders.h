//===- Remainders.h - comparisons of remainders -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The elements that a lane has of a row are one number plus constants c, and
// their remainders by a constant m repeat: (base + c) mod m == k says that c is
// (k - base) mod m, up to multiples of m. That is one remainder for a row, in
// place of one for each element, and the columns that it names are a word.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_REMAINDERS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_REMAINDERS_H

#include "attn/Layout/Fragments.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attn::warp {
struct Positions;

/// The constant that all elements are, or that an integer is.
std::optional<int64_t> getNumber(Value value);

/// A remainder of `dividend`, an integer of 32 bits or a fragment of such, by a
/// positive constant.
struct Remainder {
  Value dividend;
  int64_t divisor = 1;
  /// Never negative: what a floor leaves. Else it has the dividend's sign.
  bool isFloored = true;

  /// Recognises `and` with ones, `rem`, and what a quotient by the same
  /// constant leaves.
  static std::optional<Remainder> match(Value value);
};

/// Remainders of one value plus constants, compared with something; `coords`
/// are the places of the elements.
std::optional<SmallVector<Value>>
compareRemainders(arith::CmpIOp op, ArrayRef<Value> lhs, ArrayRef<Value> rhs,
                  ArrayRef<layout::Coord> coords, const Positions &positions,
                  OpBuilder &builder);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_REMAINDERS_H
