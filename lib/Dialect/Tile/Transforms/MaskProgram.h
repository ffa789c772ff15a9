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

/// A mask with everything it is computed from inside the grid.
struct MaskProgram {
  KernelOp grid;
  scf::ForOp loop;
  ScoresOp scores;
  CoordsOp queries, keys; // of the scores
  int64_t numRows = 0, numColumns = 0;
  /// A tile or block of queries: its view and its first row.
  LoadOp query;
  /// The scalars that the region and the coordinates ask for, in order.
  llvm::SetVector<Operation *> ops;
  bool usesBatch = false, usesHead = false;
  /// The mask without `limits`, and how it is sampled.
  MaskGrain grain;

  /// Whether the loop is one over blocks of queries.
  bool isTransposed() { return queries.getAxis() == 1; }
  /// Those of the tile, and those of a block.
  CoordsOp rows() { return isTransposed() ? keys : queries; }
  CoordsOp columns() { return isTransposed() ? queries : keys; }
};

/// Reads the mask of `scores`, in `loop`, the loop of the kernel `grid` over
/// all blocks of keys, or of queries. Fails, with the reason in `reason`, where
/// another grid cannot compute it.
FailureOr<MaskProgram> readMaskProgram(KernelOp grid, scf::ForOp loop,
                                       ScoresOp scores, std::string &reason);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKPROGRAM_H
