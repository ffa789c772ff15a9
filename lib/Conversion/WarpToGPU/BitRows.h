//===- BitRows.h - rows of truth values as words of a lane ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_BITROWS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_BITROWS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// A row of a fragment of truth values, a byte each in global memory, of which
/// a lane has two of each eight: as bits 0, 1, ... of a word.
struct BitRow {
  int64_t columns = 0;

  /// Whether rows of so many columns are read in this way.
  static bool fits(int64_t columns);
  /// Of the first column; `lane` is that of the first of the lane (i64). i1.
  Value isAligned(OpBuilder &builder, Location loc, Value lane) const;
  /// The word; each lane of the warp reads a part of the row, which has to be
  /// aligned.
  Value load(OpBuilder &builder, Location loc, Value lane) const;

private:
  /// What a lane reads.
  int64_t bytes() const { return columns / 4; }
  int64_t alignment() const;
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_BITROWS_H
