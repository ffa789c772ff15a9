//===- BlockStates.h - what a mask shows of a block ----------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code of a kernel of one warp that tells whether a mask shows some pair of
// a block of the scores, and whether it hides one. It goes through a few rows
// and columns at a time, so that one warp can hold them and the code is short;
// of rows and of columns that are alike (MaskGrain.h) through one of each
// group, and of those whose code has bounds (CellBounds.h) through cells.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_BLOCKSTATES_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_BLOCKSTATES_H

#include "CellBounds.h"
#include "MaskProgram.h"

#include <array>

namespace attn::tile {

/// Of one pair that a block shows, and of one that it hides, whether there is
/// such a pair: two values of i1.
using SeenAndHidden = std::array<Value, 2>;

class BlockStates {
public:
  /// Of the mask of `program`, group by group of `grain`; where `bounds` is not
  /// null, groups are its cells. `mapping` has the block's values for those of
  /// the program; `length` is the number of queries.
  BlockStates(OpBuilder &b, MaskProgram &program, const MaskGrain &grain,
              const CellBounds *bounds, const IRMapping &mapping, Value length);

  /// `arguments` stand for what the region of the mask has besides positions
  /// and numbers of batch and head: the ends of `CellBounds::data`.
  SeenAndHidden build(ValueRange arguments);

  /// The same of many blocks, a vector of `shape`, without `arguments`. Tile n
  /// begins at position n times its length, or (`reversed` - n) times that if
  /// `reversed` is not null; block n at n times its length.
  SeenAndHidden buildMany(Operation *head, Value tiles, Value blocks,
                          Value reversed, ArrayRef<int64_t> shape);

  /// The ends of `CellBounds::data`, of all rows and columns of the block.
  SmallVector<Value> buildEnds(ArrayRef<DataRange> data);

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value integer(int64_t value, unsigned bits) {
    return arith::ConstantIntOp::create(b, loc, value, bits);
  }
  Value toI32(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  }
  Value lookup(Value value) { return mapping.lookupOrDefault(value); }
  /// Whether one of each group is looked at, or rows are too few.
  bool isSampled() const;
  Value splat(Type type, int64_t value);
  Value sample(Value base, Value first, int64_t axis);
  Value bound(Value positions, int64_t axis);
  Value isBelow(Value positions, Value limit, Type mask);
  Value limitShown(Value mask, ValueRange positions, bool isLast);
  SeenAndHidden compare(Value some, Value each, ValueRange positions,
                        Value queries);
  Value anyOf(Value acc, Value vector);
  Value expand(Operation *head, Value root, Value row, Value column,
               ValueRange more, ArrayRef<int64_t> shape);
  Value reduce(Value vector, bool isLeast);
  ValueRange collectEnds(ArrayRef<DataRange> data, bool isRow,
                         ArrayRef<unsigned> here);
  void skipDecided(scf::ForOp loop);

  OpBuilder &b;
  Location loc;
  MaskProgram &program;
  MaskGrain grain;
  const CellBounds *bounds; // of groups; null: each is alike
  IRMapping mapping;
  Value length;
  int64_t numRows, numColumns; // of groups that are alike
  int64_t rows;                // at once
  int64_t allColumns, columns; // in all and at once
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_BLOCKSTATES_H
