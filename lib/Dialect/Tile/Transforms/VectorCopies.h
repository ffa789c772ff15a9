//===- VectorCopies.h - what a score function says, beside it ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients of a table compute its indices in the step, as vectors, and the
// score function computes them, too: what is known of an operation of one is
// known of the same operation of the other.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_VECTORCOPIES_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_VECTORCOPIES_H

#include "attn/Dialect/Tile/IR/Tile.h"

namespace attn::tile {

/// The operations in the block of `scores` that compute for all pairs what
/// `op`, of its score function, computes for one.
SmallVector<Operation *, 2> findVectorCopies(Operation *op, ScoresOp scores);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_VECTORCOPIES_H
