//===- KeySlope.h - scores that change by a slope along keys -*- C++ -*-===//
//-*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Score functions of the form
//
//   y = scale * x + slope * j + (what is the same for all keys of a row)
//   y = scale * x + slope * |j - i - peak| + (the same)
//
// where x is the product of query and key, i and j their positions, and scale
// and slope are the same for all rows and keys of a head: the bias of ALiBi
// (Press et al., "Train Short, Test Long", section 3), or any other that is
// linear. And masks that show each row one interval of keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_KEYSLOPE_H
#define ATTN_DIALECT_ATTN_IR_KEYSLOPE_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"
#include <optional>

namespace attn {

/// constant * (product of factors), all of f32.
struct ConstantTerm {
  double constant = 1.0;
  SmallVector<Value> factors;
};

/// An offset of a key from the row's position: constant + sum of values, each
/// so many times.
struct KeyOffset {
  int64_t constant = 0;
  llvm::SmallMapVector<Value, int64_t, 4> values;

  /// This less `other`, if that is a number.
  std::optional<int64_t> minus(const KeyOffset &other) const;
};

struct KeySlope {
  /// What x, and what j, or a distance, is multiplied with: sums of terms.
  SmallVector<ConstantTerm> scale, slope;
  /// Where the distance is 0; none: it is the position that counts.
  std::optional<KeyOffset> peak;
};

/// Reads a score function, a region of (x, b, h, i, j, …); nothing if it has
/// another form, or no slope. Factors are defined in it or outside, values of
/// the peak outside, or captured.
std::optional<KeySlope> readKeySlope(Region &score);

/// What a mask shows of a row: i + lower <= j <= i + upper for all of them.
struct KeyInterval {
  SmallVector<KeyOffset> lower, upper;
};

/// Reads a mask, a region of (b, h, i, j, …): comparisons of positions of which
/// all hold. Nothing if it is of another form. Values are of i32, defined
/// outside or captured.
std::optional<KeyInterval> readKeyInterval(Region &mask);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_KEYSLOPE_H
