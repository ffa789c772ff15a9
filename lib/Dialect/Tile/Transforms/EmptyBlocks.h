//===- EmptyBlocks.h - tiles of which nothing shows -----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel writes where its loop over blocks visits none: a grid of
// its own writes that, before the kernel, whose blocks are then idle.
// Zeros are written faster than computed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_EMPTYBLOCKS_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_EMPTYBLOCKS_H

#include "attn/Dialect/Tile/Transforms/BlockMap.h"

namespace attn::tile {

/// Puts a grid before `grid` that writes the results of all tiles for which
/// `map` lists no block; those of `grid`, with `loop` over all blocks, are idle
/// from then on.
void separateEmptyBlocks(RewriterBase &rewriter, KernelOp grid, scf::ForOp loop,
                         const BlockMap &map);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_EMPTYBLOCKS_H
