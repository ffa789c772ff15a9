//===- MaskReader.h - masks as formulas ----------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads what `tile.scores` hides as a `VisitProblem`: and, or, not,
// xor and select of comparisons of integers. Integers are sums, products with
// constants, minima, maxima, absolute values, selects, quotients and remainders
// by constants of the coordinates and of what is known before the loop. The
// cases of a select or of a minimum become disjuncts.
//
// Two kinds of data have bounds, too:
//
//   x(r)  elements read for the row, where they never decrease (or never
//         increase) with it: a sorted gather, a search, a function of them.
//         Then x lies between its values at the first and the last row of the
//         block, two symbols.
//   y(c)  a sorted gather at the key, or a search for it. A comparison with
//         something that does not depend on the key divides the keys at one
//         place: y(c) <= v exactly for c < U(v), a symbol. For a gather U is a
//         search, for a search for c in offsets it is the offset itself.
//
// Everything else is opaque: it may be anything. So is what is nested too deep,
// or has too many cases, to be read in a reasonable time.
//
// So is what may wrap around (IntegerSizes.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_MASKREADER_H
#define ATTN_DIALECT_TILE_ANALYSIS_MASKREADER_H

#include "attn/Dialect/Attn/IR/IntegerSizes.h"
#include "attn/Dialect/Tile/Analysis/VisitSet.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace attn::tile {

/// What a symbol of a problem is.
struct SymbolSource {
  enum class Kind {
    /// An integer from outside the loop.
    Scalar,
    /// floor(limit / divisor).
    Quotient,
    /// The least and the greatest of the values of a block's rows.
    LeastOfRows,
    GreatestOfRows,
    /// The number of keys c with y(c) <= floor(limit / divisor), y = `value`;
    /// where that is not known more (`KeysAtMost`, for bounds from above), or
    /// fewer (`KeysBelow`).
    KeysAtMost,
    KeysBelow
  };
  Kind kind = Kind::Scalar;
  /// The integer; or what the region computes of each row, or key.
  Value value;
  /// Whether the values grow with the row.
  bool isIncreasing = true;
  /// Of symbols.
  LinearForm limit = {};
  int64_t divisor = 1;
  /// The key minus what is searched for. Of symbols.
  LinearForm offset = {};

  bool operator==(const SymbolSource &other) const {
    return kind == other.kind && value == other.value &&
           isIncreasing == other.isIncreasing && limit == other.limit &&
           divisor == other.divisor && offset == other.offset;
  }
};

/// A mask, and what its symbols are.
struct MaskProblem {
  explicit MaskProblem(int64_t numRows, int64_t numColumns)
      : problem(numRows, numColumns), numTileRows(numRows) {}

  /// The problem of `rows` rows only, the first of which is `first`. What is
  /// known of all rows of the tile stays known of all of them.
  void restrictRows(Value first, int64_t rows);

  VisitProblem problem;
  int64_t numTileRows;
  llvm::MapVector<unsigned, SymbolSource> symbols;
  /// True if part of the mask is not understood at all.
  bool hasOpaque = false;
  /// True if that is so because it is too large; hasOpaque is then set, too.
  bool isTooLarge = false;
  /// The number of keys, if it is known: the loop ends at its last block.
  std::optional<LinearForm> numKeys;
};

/// Reads what `op`, in `loop`, whose step is 1, hides.
MaskProblem readMask(ScoresOp op, scf::ForOp loop);

/// The same, if the loop went through the blocks [lo, hi).
MaskProblem readMask(ScoresOp op, scf::ForOp loop, Value lo, Value hi);

/// A comparison in a score function: of the pairs that show, those for which it
/// holds and those for which it fails.
struct ComparisonProblem {
  MaskProblem problem;
  Formula holds, fails;
};

/// Reads a comparison of integers of the score function of `op`, in `loop`,
/// whose step is 1; without `rhs`, of `lhs` with `number`.
ComparisonProblem readComparison(ScoresOp op, scf::ForOp loop,
                                 arith::CmpIPredicate predicate, Value lhs,
                                 Value rhs, int64_t number = 0);

/// The scores of a loop over blocks that hide something; fails if there are
/// none, or several.
FailureOr<ScoresOp> findMaskedScores(scf::ForOp loop);

/// What the region of the mask of `op` is the conjunction of, in order, each
/// once; conjunctions that `isWhole` says so of are not taken apart.
SmallVector<Value> getConjuncts(
    ScoresOp op,
    llvm::function_ref<bool(Value)> isWhole = [](Value) { return false; });

/// True for integers as floats, and for the magnitudes of such.
bool isWholeNumber(Value value);

/// The integer that `value` is, or all elements of it.
std::optional<int64_t> getIntegerConstant(Value value);

/// Those of masks and of the code around them.
IntegerSizes getMaskIntegerSizes();

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_MASKREADER_H
