//===- CaptureSums.h - what gradients of captures are sums of --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An attn.capture_add adds once for each batch entry b, head h, query i and key
// j. Where it adds to says what may be summed before, and who owns the sums:
//
//   form       the indices are                       is summed first
//   Rows       of b, h and i alone                   over the keys of a query
//   Keys       of b, h and j alone                   over the queries of a key
//   Distances  of b, h and i - j alone, or those     over pairs that far apart
//              of digits of i and j
//   Pairs      i and j, the last two, of b and h     nothing but b and h
//   Table      anything, but i and j themselves are  over all pairs, or those
//              not both among them; few distances    of a query or a key
//              behind a mask
//
// An index is one of b, h, i and j themselves, or computed: of b and h, or of
// distances, as in clamp(j - i, -8, 8) + 8 (PositionDigits.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_CAPTURESUMS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_CAPTURESUMS_H

#include "ClampedDistance.h"
#include "PositionDigits.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/LLVM.h"

namespace attn {

/// What an index is: a position itself, or what it is computed from.
enum class IndexKind { Batch, Head, Query, Key, Uniform, Distance, Other };

enum class SumForm { Rows, Keys, Distances, Pairs, Table };

/// One attn.capture_add.
struct CaptureSum {
  CaptureAddOp op;
  unsigned capture; // its number
  SumForm form;
  SmallVector<IndexKind> kinds; // of the indices
  /// Of the digits whose differences are distances.
  SmallVector<int64_t> scales;
  /// The distance that an index is, plus a number that all pairs of a batch
  /// entry and a head share: its digit, and whether of i less j.
  struct OwnDigit {
    unsigned digit;
    bool isQueryLessKey;
  };
  SmallVector<std::optional<OwnDigit>> ownDigits;

  /// The first dimension with an index of that kind.
  std::optional<unsigned> find(IndexKind kind) const;
  /// Of a table, the dimension that is numbered by queries or keys.
  std::optional<unsigned> findTableRow() const;
  /// The dimensions that are not numbered by batch entries, heads, queries or
  /// keys.
  SmallVector<unsigned> getTableDims() const;
  Value getIndex(unsigned dimension) const {
    return CaptureAddOp(op).getIndices()[dimension];
  }
};

/// The additions of a pullback, or why one of them has no form.
FailureOr<SmallVector<CaptureSum>> matchCaptureSums(AttentionBackwardOp op);

/// A query or a key over a constant.
struct PositionQuotient {
  bool isKey;
  int64_t divisor;
};

/// What numbers the elements of a table, where it is one of these.
std::optional<ClampedDistance> findElementDistance(const CaptureSum &sum);
std::optional<PositionQuotient> findElementQuotient(const CaptureSum &sum);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_CAPTURESUMS_H
