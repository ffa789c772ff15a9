//===- Digits.h - indices by quotients and remainders ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_DIGITS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_DIGITS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// A sum of numbers times factors, which wraps around as they do: values that
/// are not taken apart, quotients of offsets by constants, and a constant.
struct DigitSum {
  struct Term {
    Value value;
    int64_t factor;

    bool operator==(const Term &other) const {
      return value == other.value && factor == other.factor;
    }
  };
  SmallVector<Term> terms, quotients;
  int64_t constant = 0;

  static DigitSum split(Value value);
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_DIGITS_H
