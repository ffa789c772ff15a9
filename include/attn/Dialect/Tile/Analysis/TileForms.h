//===- TileForms.h - the forms of a tile program ----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_TILEFORMS_H
#define ATTN_DIALECT_TILE_ANALYSIS_TILEFORMS_H

#include "attn/Support/LLVM.h"

namespace attn::tile {

/// In the order of the passes. Each allows what those before it allow.
enum class TileForm {
  Stepped,    // one loop through all key blocks, from the first to the last
  Listed,     // loops may take their blocks from lists
  Peeled,     // several loops, over the blocks that the mask shows
  Shared,     // without tile.share_blocks: loops over a share of these blocks
  Grouped,    // bounds may differ between parts of the rows
  Ranged,     // masks may compare keys with ranges of their rows
  Reversed,   // loops may go from the last block to the first
  Folded,     // exponentials may be exp2 with folded scales
  Overlapped, // a step may use the weights of the step before
  Expanded,   // without tile.scores: masks are code of vectors
  Lazy,       // a softmax may stand under a condition
  Flat,       // without tile.online_softmax
};

/// Checks that the program under `root` has the form, or one before it, for the
/// pass of that name.
LogicalResult requireForm(Operation *root, TileForm form, StringRef pass);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_TILEFORMS_H
