//===- VisitBounds.h - visit sets as index arithmetic --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the bounds of a visit set before the loop. Symbols become values: what
// stands outside the loop, elements read for the first and the last row of the
// block, searches in sorted memory. Where memory does not bear a bound out (an
// index is out of range), the bound is one that bounds nothing.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_VISITBOUNDS_H
#define ATTN_DIALECT_TILE_ANALYSIS_VISITBOUNDS_H

#include "attn/Dialect/Tile/Analysis/MaskReader.h"

namespace attn::tile {

/// Key blocks [lo, hi) are visited, of which [fullLo, fullHi) are full;
/// lo <= fullLo <= fullHi <= hi. Values of index type.
struct KeyBlockRange {
  Value lo, fullLo, fullHi, hi;
  /// False where fullLo is lo, or fullHi is hi, whatever the run time values.
  bool hasLower = false, hasUpper = false;
  /// No block is full, whatever the run time values.
  bool isAllMasked = false;
};

/// Key blocks [lo, hi) each; lo <= hi.
struct KeyBlockPiece {
  Value lo, hi;
};

/// Pieces that are disjoint, together what is visited.
struct KeyBlockPieces {
  SmallVector<KeyBlockPiece> masked, full;
};

/// Whether the visited blocks are one interval with the full ones in one piece,
/// whatever the symbols.
bool isOneInterval(const VisitSet &set);

/// Whether some key may be hidden in every visited block, whatever the symbols,
/// of a set that is one interval.
bool isAllMasked(const VisitSet &set);

/// Emits a set that is one interval within the bounds of `loop`.
KeyBlockRange emitRange(OpBuilder &builder, const MaskProblem &problem,
                        const VisitSet &set, scf::ForOp loop);

/// The same within [lo, hi), of which `loop` may be a part.
KeyBlockRange emitRange(OpBuilder &builder, const MaskProblem &problem,
                        const VisitSet &set, scf::ForOp loop, Value lo,
                        Value hi);

/// Emits any other set.
KeyBlockPieces emitPieces(OpBuilder &builder, const MaskProblem &problem,
                          const VisitSet &set, scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_VISITBOUNDS_H
