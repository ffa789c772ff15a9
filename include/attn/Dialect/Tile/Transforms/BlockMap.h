//===- BlockMap.h - which key blocks a mask leaves, found at run time -----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where no interval arithmetic tells which key blocks a mask leaves (it reads
// a block map of the user's, documents in any order, …), two grids before
// the kernel find out:
//
//   states[b, h, q, n]   0: no row of query block q sees a key of block n;
//                        1: some row sees some key; 2: every row sees every
//                        key; 0 again where rows of states end after the last
//                        block
//   counts[b, h, q, :]   P, the number of ones, and F, the number of twos
//   lists[b, h, q, :]    the P blocks with a one, ascending, then the F blocks
//                        with a two, ascending, then N, a block after all
//                        keys; what stands after that is undefined
//
// Rows past the query length count for nothing. b and h are there once where
// the mask does not depend on them. The three are allocations of the function:
// workspaces of a launch on a GPU.
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
  /// memref<B x H x Q x 2 x i32> and memref<B x H x Q x (N + 1) x i32>.
  Value counts, lists;
  /// The first three indices for the query block at hand; values of the grid.
  Value batch, head, query;
  /// Set where the mask shows all or nothing of a block but for these limits,
  /// i32, that keys are below: nothing else is left to ask of blocks that are
  /// listed.
  std::optional<SmallVector<Value>> limits;
};

/// Builds the map of what `scores` hides in `loop`, the loop over all key
/// blocks of the kernel `grid`. Fails, with the reason in `reason`, and changes
/// nothing where they have another form.
FailureOr<BlockMap> buildBlockMap(RewriterBase &rewriter, KernelOp grid,
                                  scf::ForOp loop, ScoresOp scores,
                                  std::string &reason);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_TRANSFORMS_BLOCKMAP_H
