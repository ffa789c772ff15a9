//===- KeyLoops.h - the loops over blocks of a kernel --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a tile program that go through blocks: of keys where the tile is
// one of queries, and of queries where the tile is one of keys. Rows are those
// of the tile, columns those of the block, in both.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_KEYLOOPS_H
#define ATTN_DIALECT_TILE_ANALYSIS_KEYLOOPS_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/BlockLoops.h"

namespace attn::tile {

/// True for a loop whose body works on a block that its induction variable
/// chooses: it loads a tile there, or asks for the coordinates.
bool isLoopOverBlocks(scf::ForOp loop);

/// The loops over blocks that stand directly in `block`; says in `reason` why
/// there is none, or why they are no chain.
FailureOr<BlockLoops> matchKeyLoops(Block *block, std::string &reason);

/// All loops over blocks under `root`, in order.
SmallVector<scf::ForOp> findLoopsOverBlocks(Operation *root);

/// The rows of the tile that `loops` multiply with their blocks; 0 where there
/// is no such product.
int64_t getNumTileRows(const BlockLoops &loops);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_KEYLOOPS_H
