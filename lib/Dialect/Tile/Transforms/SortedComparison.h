//===- SortedComparison.h - sorted data of keys as bounds ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y(c) never decreases with the key c: a search for c, or a sorted gather at c.
// Compared with a value v that does not depend on the key it divides the keys:
//
//   y(c) <= v  exactly for  c <  above(v)
//   y(c) <  v  exactly for  c <  from(v)
//   y(c) == v  exactly for  from(v) <= c < above(v)
//
// For a search, y(c) <= v says that element v is beyond c: above(v) is element
// v, from(v) element v - 1, and no search is left. For a gather both are
// searches, for one value per row instead of one per key; keys after the end
// of memory read 0, whatever is before them, and are asked for apart.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_SORTEDCOMPARISON_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_SORTEDCOMPARISON_H

#include "ValueAxes.h"

#include "attn/Support/Predicates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// y(key) `predicate` limit.
struct SortedComparison {
  arith::CmpIOp op;
  arith::CmpIPredicate predicate;
  Value key; // the argument of the region
  Value view;
  SmallVector<Value> leading; // the same everywhere
  bool isSearch = false;
  Value limit; // the same for all keys

  /// Matches a comparison in a region of `scores`.
  static FailureOr<SortedComparison> match(arith::CmpIOp op, ScoresOp scores,
                                           const ValueAxes &axes);

  /// Replaces it.
  void replace(RewriterBase &rewriter);
};

/// y `predicate` limit as comparisons of x, where y <= limit exactly for
/// x < above, and y < limit for x < from; null is what the predicate does not
/// ask for.
Value compareWithBounds(OpBuilder &builder, Location loc,
                        arith::CmpIPredicate predicate, Value x, Value from,
                        Value above);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_SORTEDCOMPARISON_H
