//===- CellBounds.h - what a mask shows of many pairs --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the first query and the first key of a cell of the scores, whether the
// mask may show some pair of the cell, and whether it shows each: one
// evaluation tells of thousands of pairs. By the ranges of CellRange.h, so it
// may say "some pair" where there is none, and never the other way.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_CELLBOUNDS_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_CELLBOUNDS_H

#include "CellRange.h"

#include "attn/Dialect/Tile/Analysis/VisitSet.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// A value in the region of a mask that is read from memory for each query, or
/// for each key: an integer of 32 bits, or a boolean. Its ends in a cell are
/// arguments of the region, in this order.
struct DataRange {
  Value value;
  bool isOfQueries = false;
  Value least, greatest;
};

/// Values of the region of a mask: whether it shows some pair, and each pair,
/// of the cell whose first query and key the arguments of the region are. They
/// stay in the region as long as this lives.
class CellBounds {
public:
  /// Bounds of the mask of `scores`; those of a cell that divides `block`. With
  /// data, the cell is the block, the ends of all that is read for a query or a
  /// key are given, and what is not understood may be true or false.
  CellBounds(RewriterBase &rewriter, ScoresOp scores, MaskCell block,
             bool withData = false);
  ~CellBounds();
  CellBounds(const CellBounds &) = delete;
  CellBounds &operator=(const CellBounds &) = delete;

  /// False where the mask has code without a rule.
  explicit operator bool() const { return bool(some); }

  MaskCell cell;
  Value some, each;
  SmallVector<DataRange> data;

private:
  RewriterBase &rewriter;
  Block &region;
  Operation *before; // what is after it was added here; null: all
};

/// Whether the blocks that show something are best listed one by one, although
/// bounds of rows and keys are known of them: looks at a few tiles of a
/// sequence and compares what `set` has them visit. False where that depends on
/// more than positions. The mask is that of `scores`, with blocks of `block`;
/// `set` is one of keys, or of queries if `isOverQueries`.
bool isLooselyBounded(RewriterBase &rewriter, ScoresOp scores, MaskCell block,
                      const VisitSet &set, bool isOverQueries);

/// Whether ranges leave it open of many blocks what they show, of which each
/// pair tells: of the same few tiles. False where that depends on data.
bool hasLooseRanges(RewriterBase &rewriter, ScoresOp scores, MaskCell block,
                    bool isOverQueries);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_CELLBOUNDS_H
