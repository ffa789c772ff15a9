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
// divisors. One element of each tells everything. The end of the keys, which
// cuts through groups, stands apart.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKGRAIN_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKGRAIN_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/BlockMap.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::tile {

/// A mask is the conjunction of `mask` and `limits`; `mask` is the same for
/// aligned groups of `rows` rows and of `columns` columns, which divide the
/// block. Where one of both is 1 x 1 there are no limits.
struct MaskGrain {
  Value mask;
  SmallVector<KeyLimit> limits;
  int64_t rows = 1, columns = 1;
};

/// The grain of `mask`, a matrix in `loop` whose first row and column are
/// multiples of its sizes.
MaskGrain findMaskGrain(Value mask, scf::ForOp loop, int64_t numRows,
                        int64_t numColumns);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_MASKGRAIN_H
