//===- MaskProgram.h - what a mask is computed from -----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKPROGRAM_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKPROGRAM_H

#include "MaskGrain.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace attn::tile {

/// Queries or keys of scores: `count` of them, from `base` on, along an axis.
struct MaskPositions {
  Value base;
  int64_t count = 0, axis = 0;

  /// Reads what `tile.scores` calls its queries, or its keys; of a tile with
  /// rows of several heads, one after the other, those of each head.
  static std::optional<MaskPositions> match(Value positions);
};

/// A mask with everything it is computed from inside the grid.
struct MaskProgram {
  KernelOp grid;
  scf::ForOp loop;
  ScoresOp scores;
  MaskPositions queries, keys; // of the scores
  /// Batch entries of the grid for one of the attention: parts that share keys.
  int64_t parts = 1;
  /// A tile or block of queries: its view and its first row.
  LoadOp query;
  /// The scalars that the region and the coordinates ask for, in order.
  llvm::SetVector<Operation *> ops;
  bool usesBatch = false, usesHead = false;
  /// The mask without `limits`, and how it is sampled.
  MaskGrain grain;

  /// Whether the loop is one over blocks of queries.
  bool isTransposed() const { return queries.axis == 1; }
  /// Those of the tile, and those of a block.
  const MaskPositions &rows() const { return isTransposed() ? keys : queries; }
  const MaskPositions &columns() const {
    return isTransposed() ? queries : keys;
  }
};

/// Reads the mask of `scores`, in `loop`, the loop of the kernel `grid` over
/// all blocks of keys, or of queries. Fails, with the reason in `reason`, where
/// another grid cannot compute it.
FailureOr<MaskProgram> readMaskProgram(KernelOp grid, scf::ForOp loop,
                                       ScoresOp scores, std::string &reason);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKPROGRAM_H
