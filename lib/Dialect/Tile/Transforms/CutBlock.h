//===- CutBlock.h - the block that the end of the keys cuts -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_CUTBLOCK_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_CUTBLOCK_H

#include "attn/Support/BlockLoops.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// A copy of `loop` over other visits, from the block that `last` stands for
/// downwards: visit n works on block max(last - n, first). Rows may have seen
/// no key before a masked step.
scf::ForOp addMirroredLoop(RewriterBase &rewriter, scf::ForOp loop,
                           Value lowerBound, Value upperBound, Value first,
                           Value last, ValueRange state);

/// Where the last loop of `chain` masks one block at most and the others none,
/// lets them visit the blocks from the last to the first, so that the masked
/// loop is over the first visit alone. False, and nothing changes, where that
/// is not so, or where the scores fall with the key.
bool bringCutBlockFirst(RewriterBase &rewriter, const BlockLoops &chain);

/// True if `loop` is over one block or none.
bool isOverOneBlockAtMost(scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_CUTBLOCK_H
