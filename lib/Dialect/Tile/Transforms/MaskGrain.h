//===- MaskGrain.h - rows and columns of a mask that are alike -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask that sees its positions through quotients only, a captured block map
// at (i / 128, j / 128) say, is the same for all rows and all columns of a
// group: aligned groups of as many rows as the greatest common divisor of all
// divisors. One element of each tells everything. The ends of keys and of
// queries, which cut through groups, stand apart.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKGRAIN_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKGRAIN_H

#include "CellRange.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::tile {

/// What `tile.scores` hides is the conjunction of `mask`, a value of its
/// region, and of key < limit for all `keyLimits` and query < limit for all
/// `queryLimits`, i32 from outside of the loop. `mask` is the same for aligned
/// groups of `rows` rows and of `columns` columns of the scores, which divide
/// their shape.
struct MaskGrain {
  Value mask;
  SmallVector<Value> keyLimits, queryLimits;
  int64_t rows = 1, columns = 1;
};

/// The grain of the mask of `scores`, in `loop`: of blocks of `block` queries
/// and keys, aligned to these numbers; the rows are the keys if `isTransposed`.
MaskGrain findMaskGrain(ScoresOp scores, MaskCell block, bool isTransposed,
                        scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKGRAIN_H
