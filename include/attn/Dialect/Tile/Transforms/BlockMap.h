//===- BlockMap.h - which blocks a mask leaves, found at run time ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where no interval arithmetic tells which blocks a mask leaves (it reads a
// block map of the user's, documents in any order, …), two grids before the
// kernel find out. The kernel has tiles, of queries or of keys, and its loop
// goes through N blocks, of keys or of queries:
//
//   states[b, h, t, n]   0: the mask shows nothing of block n to tile t; 1: it
//                        shows something; 2: it shows everything; 0 again where
//                        rows of states end after the last block
//   counts[b, h, t, :]   P, the number of ones, and F, the number of twos
//   lists[b, h, t, :]    the P blocks with a one, ascending, then the F blocks
//                        with a two, ascending, then N, a block after all
//                        others; what stands after that is undefined
//
// Nothing shows to queries past the end. In a tile of queries they hide nothing
// either: what a kernel computes of them goes nowhere. Where blocks are ones of
// queries it goes into sums over these: there the mask says what they hide.
//
// b and h are there once where the mask does not depend on them; h numbers
// heads of queries. The three are allocations of the function, workspaces of a
// launch on a GPU: 5 bytes for each pair of a tile and a block.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_BLOCKMAP_H
#define ATTN_DIALECT_TILE_TRANSFORMS_BLOCKMAP_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>
#include <string>

namespace attn::tile {

struct BlockMap {
  /// memref<B x H x T x 2 x i32> and memref<B x H x T x (N + 1) x i32>.
  Value counts, lists;
  /// Arguments of the grid for the tile at hand, or zero; so many in a row of
  /// `batch` are parts of one batch entry, which share its blocks.
  Value batch, head, tile;
  int64_t parts = 1;
  /// Set where the mask shows all or nothing of a block but for these limits,
  /// i32, that keys are below: nothing else is left to ask of blocks that are
  /// listed.
  std::optional<SmallVector<Value>> limits;

  /// The indices of the tile at hand, followed by `last`.
  SmallVector<Value> indicesOf(OpBuilder &builder, Value last) const;
};

/// Builds the map of what `scores` hides in `loop`, the loop of the kernel
/// `grid` over all blocks of keys, or of queries. Fails, with the reason in
/// `reason`, and changes nothing where they have another form.
FailureOr<BlockMap> buildBlockMap(RewriterBase &rewriter, KernelOp grid,
                                  scf::ForOp loop, ScoresOp scores,
                                  std::string &reason);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_TRANSFORMS_BLOCKMAP_H
