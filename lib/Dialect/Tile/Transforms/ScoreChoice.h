//===- ScoreChoice.h - what a score chooses ------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation of a score function that chooses (a minimum, a maximum, an
// absolute value, a comparison) does so by a comparison of integers. The blocks
// with a pair for which it holds, and those with one for which it fails, are
// visit sets (VisitSet.h): where one of them has a bound, the other outcome is
// that of all blocks beyond.
//
// What is compared may be more than sums of positions, min(8 + 3 log(d), 15):
// then a number D is searched for from which on, of all distances d >= D, it
// has one outcome (NumberRange.h), and the sets are those of d >= D.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_SCORECHOICE_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_SCORECHOICE_H

#include "attn/Dialect/Tile/Analysis/MaskReader.h"

#include <array>

namespace attn::tile {

/// Blocks before, or after, all those that a set has.
enum class Side { Before, After };

/// An operation of a score function that chooses.
struct Choice {
  size_t number; // of the operation
  ComparisonProblem comparison;
  /// The blocks with a pair for which it chooses the second operand, and the
  /// first; of a comparison, for which it fails, and holds.
  std::array<SmallVector<BlockInterval, 2>, 2> blocks;
  /// The only outcome of which anything is known.
  std::optional<bool> known = {};

  /// Whether all blocks on `side` of the others have `outcome`, and there may
  /// be one.
  bool isDecided(bool outcome, Side side) const;
};

/// Reads the choice of `op`, of a score function in `loop`; nothing if it makes
/// none.
std::optional<Choice> readChoice(Operation *op, size_t number, scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_SCORECHOICE_H
