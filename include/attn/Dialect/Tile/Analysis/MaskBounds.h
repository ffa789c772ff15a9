//===- MaskBounds.h - which keys a mask can show -------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask of a block of scores is a conjunction. Conjuncts that compare affine
// expressions of the coordinates are half planes
//
//   row * r + column * j + (terms + constant) >= 0
//
// over the row r of the block (0 to M - 1), the key j, and integers that are
// the same for the whole loop over the key blocks; among them the first row of
// the block. Every half plane bounds the key blocks that show anything, and
// those that show everything, by integers computed before the loop:
//
//   column < 0, d = -column: key j shows iff  d j <= row r + U
//     something shows in block n  iff  n < ceil((floor((U + max) / d) + 1) / N)
//     everything shows            iff  n < floor((floor((U + min) / d) + 1) /
//     N)
//
// where max and min are the extremes of row * r; the other signs are alike.
//
// Coordinates are i32 and assumed not to wrap around.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_MASKBOUNDS_H
#define ATTN_DIALECT_TILE_ANALYSIS_MASKBOUNDS_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::tile {

/// row * r + column * j + sum of coefficient * value + constant, the values
/// being integers (i32 or index) from outside the loop.
struct AffineForm {
  int64_t row = 0;
  int64_t column = 0;
  int64_t constant = 0;
  SmallVector<std::pair<Value, int64_t>, 2> terms;

  AffineForm &operator+=(const AffineForm &other);
  AffineForm &operator*=(int64_t factor);
};

/// The conjuncts of a mask.
struct MaskConditions {
  /// Each is a half plane: form >= 0.
  SmallVector<AffineForm> halfPlanes;
  /// True if there are conjuncts that are no half planes.
  bool hasOpaque = false;
  int64_t numRows = 0, numColumns = 0; // of a block
};

/// The step over one block of keys in a loop.
struct MaskedStep {
  OnlineSoftmaxOp softmax;
  /// select mask, scores, -inf: the scores of `softmax`.
  Operation *select = nullptr;
  MaskConditions conditions;
};

/// Matches a loop over key blocks with one online softmax of masked scores.
FailureOr<MaskedStep> matchMaskedStep(scf::ForOp loop);

/// The conjuncts of `mask`, an MxN vector of i1 in `loop`.
MaskConditions analyzeMask(Value mask, scf::ForOp loop);

/// Key blocks [lo, hi) show something, [fullLo, fullHi) everything;
/// lo <= fullLo <= fullHi <= hi. Values of index type.
struct KeyBlockRange {
  Value lo, fullLo, fullHi, hi;
  /// False where fullLo is lo, or fullHi is hi, whatever the run time values.
  bool hasLower = false, hasUpper = false;
};

/// Emits the range within the bounds of `loop` (of step 1) at `builder`. With
/// opaque conjuncts there is nothing that shows everything.
KeyBlockRange emitRange(OpBuilder &builder, const MaskConditions &conditions,
                        scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_MASKBOUNDS_H
