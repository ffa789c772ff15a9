//===- PositionDigits.h - indices by distances in an image -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokens of an image in row order, or of a video, have their row and column as
// quotient and remainder of their position. These are digits of the position:
// of the scales 1 = s0 < s1 < ..., each of which divides the next one, digit m
// of i is i / s[m] % (s[m + 1] / s[m]), and the last one i / s[m]. In an image
// of 12 columns the scales are 1 and 12.
//
// An index by distances in an image, table[i / 12 - j / 12 + 15, i % 12 - j %
// 12 + 11], depends on the differences of the digits of i and j alone. So does
// one by i - j, which has no scale but 1.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_POSITIONDIGITS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_POSITIONDIGITS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/LLVM.h"
#include "llvm/ADT/DenseMap.h"

namespace attn {

/// Numbers, digit by digit of i and of j.
struct DigitForm {
  /// A sum of digits times these, and a number that is the same everywhere, if
  /// `isSum`.
  SmallVector<int64_t> query, key;
  bool isSum = false;
  std::optional<int64_t> constant; // that number, where it is known
  bool isOfDifferences = false;    // of digits of i less those of j

  bool isUniform() const;
  /// The digit whose difference, i less j, plus a number that is the same
  /// everywhere, is the value, or that number less the difference.
  std::optional<unsigned> getOwnDigit() const;
};

/// Reads the pullback of an attn.attention_backward.
class PositionDigits {
public:
  /// Finds the scales of what those indices are computed from.
  PositionDigits(Block &pullback, ValueRange indices);

  /// 1 alone, too, where there are no digits that all of them have.
  ArrayRef<int64_t> getScales() const { return scales; }
  DigitForm read(Value value);

private:
  /// Digits [begin, end) of i or of j as one number.
  struct Slice {
    bool isKey;
    unsigned begin, end;
  };
  std::optional<Slice> getSlice(const DigitForm &form) const;
  DigitForm makeForm(const Slice &slice) const;
  DigitForm makeUniform(std::optional<int64_t> constant) const;
  DigitForm compute(Value value);
  std::optional<DigitForm> add(Operation *op,
                               ArrayRef<DigitForm> operands) const;
  std::optional<DigitForm> divide(Operation *op);
  bool addScale(int64_t scale);

  Block &pullback;
  SmallVector<int64_t> scales = {1};
  llvm::DenseMap<Value, DigitForm> known;
  bool hasNewScale = false, isStuck = false;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_POSITIONDIGITS_H
