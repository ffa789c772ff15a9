//===- QuotientComparison.h - quotients of positions as bounds --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// floor(x / m) never decreases with x. Compared with a value v it divides the
// integers:
//
//   floor(x / m) <  v  exactly for  x <  v m
//   floor(x / m) <= v  exactly for  x <  (v + 1) m
//
// Two numbers of the row in place of a quotient for each score. Products beyond
// 32 bits are the least or the greatest number, which no position is.
//
// |x| compared with v is two comparisons of x, with v and -v.
//
// x of 32 bits compared with v of 64, as captured numbers of PyTorch mostly
// are, is compared with the nearest number to v that 32 bits hold: one number
// of the row in place of two words for each score. A window of its own for each
// query, 8192 tokens, takes 0.82 (d = 64) and 0.85 (128) of the time (an H200).
// Of numbers of the columns there is one for every two scores of a lane:
// gradients at d = 64, with queries in columns, would take 1.12 times as long.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_QUOTIENTCOMPARISON_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_QUOTIENTCOMPARISON_H

#include "ValueAxes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// floor(position / divisor) `predicate` limit.
struct QuotientComparison {
  arith::CmpIOp op;
  arith::CmpIPredicate predicate;
  Value position; // sums and differences of row, key and what is uniform
  int64_t divisor = 1;
  Value limit; // the same for all keys
  /// The limit is a quotient by the same divisor of a row that is not negative:
  /// its product with the divisor does not wrap around.
  bool isLimitInside = false;

  /// Matches a comparison in a region of `scores`.
  static FailureOr<QuotientComparison> match(arith::CmpIOp op, ScoresOp scores,
                                             const ValueAxes &axes);

  /// Replaces it.
  void replace(RewriterBase &rewriter);
};

/// Replaces the comparison of the absolute value of a position with something,
/// in a region of `scores`; fails if it is none.
LogicalResult splitDistance(RewriterBase &rewriter, arith::CmpIOp op,
                            ScoresOp scores, const ValueAxes &axes);

/// Replaces the comparison of a position, made longer, with a longer number of
/// the row, in a region of `scores`; fails if it is none.
LogicalResult narrowComparison(RewriterBase &rewriter, arith::CmpIOp op,
                               ScoresOp scores, const ValueAxes &axes);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_QUOTIENTCOMPARISON_H
