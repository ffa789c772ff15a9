//===- BlockGrain.h - blocks of a mask that are alike --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A map of blocks shows the pairs of a block alike: `map[i / 64, j / 128] != 0`
// those of 64 queries and 128 keys. Tiles that lie in one such block are shown
// whole or left out; others have pairs that are tested one by one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_BLOCKGRAIN_H
#define ATTN_DIALECT_ATTN_IR_BLOCKGRAIN_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Region.h"

namespace attn {

/// So many aligned queries, and keys, are alike; 0: all of them, 1: that is not
/// known.
struct BlockGrain {
  int64_t queries = 0, keys = 0;

  /// Whether something is known: blocks of at least 16 are alike.
  bool isCoarse() const;
};

/// Of a mask, a region of (b, h, i, j, …). Comparisons of positions, and of
/// their distance, are left aside: few tiles lie on the edges that they draw.
BlockGrain findBlockGrain(Region &mask);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_BLOCKGRAIN_H
