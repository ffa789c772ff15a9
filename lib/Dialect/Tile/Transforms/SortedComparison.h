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
// searches, for one value per row instead of one per key; keys behind the end
// of memory read 0, whatever is in front of them, and are asked for apart.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_SORTEDCOMPARISON_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_SORTEDCOMPARISON_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/BlockLoops.h"
#include "attn/Support/Predicates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// What a broadcast stretches, or the value itself.
Value stripBroadcast(Value value);

/// What `mask` is the conjunction of, in order, each once; conjunctions that
/// `isWhole` says so of are not taken apart.
SmallVector<Value> getConjuncts(
    Value mask,
    llvm::function_ref<bool(Value)> isWhole = [](Value) { return false; });

/// `value` as a vector of this shape.
Value stretchTo(OpBuilder &builder, Value value, ArrayRef<int64_t> shape);

/// y(keys) `predicate` limit.
struct SortedComparison {
  arith::CmpIOp op;
  arith::CmpIPredicate predicate;
  Value keys; // tile.coords along the keys
  Value view;
  SmallVector<Value> leading; // i32 scalars
  bool isSearch = false;
  Value limit; // i32, or one per row

  /// Matches a comparison in one of `loops`.
  static FailureOr<SortedComparison> match(arith::CmpIOp op,
                                           const BlockLoops &loops);
};

/// Replaces comparisons; what is the same for several is computed once.
class SortedComparisons {
public:
  explicit SortedComparisons(RewriterBase &rewriter) : rewriter(rewriter) {}

  /// Computes the bounds in front of `head`.
  void replace(const SortedComparison &comparison, scf::ForOp head);

private:
  /// One value per row, or one for all.
  struct Bounds {
    Value from, above;
    Value size; // of the memory; null for a search
  };
  Bounds getBounds(const SortedComparison &comparison, scf::ForOp head);

  RewriterBase &rewriter;
  SmallVector<std::pair<SortedComparison, Bounds>> known;
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_SORTEDCOMPARISON_H
