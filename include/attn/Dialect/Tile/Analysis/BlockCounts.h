//===- BlockCounts.h - how many blocks a mask leaves ---------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Visit sets counted, where everything is known but the query block; and as
// text.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_BLOCKCOUNTS_H
#define ATTN_DIALECT_TILE_ANALYSIS_BLOCKCOUNTS_H

#include "attn/Dialect/Tile/Analysis/MaskReader.h"

namespace attn::tile {

/// What numbers the query blocks: a block number of the kernel, whose
/// product with the size of a block is the rows' first coordinate.
struct QueryNumbering {
  unsigned dimension;
  Value number;
};
std::optional<QueryNumbering> findQueryNumbering(KernelOp kernel);

/// Pairs of query and key blocks, of one head.
struct BlockCounts {
  int64_t all = 0, visited = 0, masked = 0;
};

/// Counts the pairs if their numbers and all symbols but the first row are
/// known.
std::optional<BlockCounts> countBlocks(const MaskProblem &problem,
                                       const VisitSet &set, scf::ForOp loop);

/// Writes the set as comment lines.
void printVisitSet(llvm::raw_ostream &os, const MaskProblem &problem,
                   const VisitSet &set, scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_BLOCKCOUNTS_H
