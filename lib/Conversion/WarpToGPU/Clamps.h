//===- Clamps.h - integers between limits -----------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_CLAMPS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_CLAMPS_H

#include "Offsets.h"

namespace attn::warp {

/// A minimum or maximum with `value`, to which `after` was added since.
struct Limit {
  Value value; // i32
  bool isLeast = false;
  int64_t after = 0;

  bool operator==(const Limit &other) const {
    return value == other.value && isLeast == other.isLeast &&
           after == other.after;
  }
};

/// base + constant, or what limits between the base and the constants made of
/// it.
struct Clamp {
  Offset offset;
  SmallVector<Limit> limits;

  static Clamp split(Value value);
};

/// Whether none of the limits changes anything (i1) where base + constant, in
/// whole numbers, is from `first` to `last` (i64).
Value areWithin(OpBuilder &builder, Location loc, ArrayRef<Limit> limits,
                Value first, Value last);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_CLAMPS_H
