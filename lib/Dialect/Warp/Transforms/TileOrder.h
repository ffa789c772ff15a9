//===- TileOrder.h - which tile a number stands for -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order of tiles that are drawn: longest first, which is the order of x
// (the tile room sees to it). But the keys that blocks read at the same time
// should stay in the cache, so heads (all combinations of y and z) come in
// groups, and x goes from end to end in one group after the other:
//
//   tile - first of group = x * size + head in group
//
// A group has as many heads as have 16 MiB of copied tiles, at most 16 (timed
// at s = 512 to 4096; where all is small the cache is filled for the first
// time, better not all at once). Where loops also add sums to memory (the
// gradients of queries), 4 MiB of both: at d = 128, s = 1024 an H100 is 1.07
// times as fast as with 16. The last group, whose end is that of the
// kernel, has two tiles for each block at least: of fewer, which would all
// start together, the longest would be left over.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_TILEORDER_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_TILEORDER_H

#include "CopiedTiles.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include <array>

namespace attn::warp {

/// Whether a value is computed from the block's numbers.
bool dependsOnBlock(KernelOp kernel, Value value);
/// Whether no loop has bounds that do: all tiles take equally long.
bool hasEvenTiles(KernelOp kernel);

/// The blocks of a kernel, numbered; values are computed where the builder
/// stands.
class TileOrder {
public:
  /// x, y and z of a block.
  using Numbers = std::array<Value, 3>;

  TileOrder(OpBuilder &builder, KernelOp kernel, ArrayRef<CopiedTile> copied);

  /// How many there are; to be asked for once, before the kernel.
  Value countTiles();
  /// The sizes of groups, for that many blocks that stay.
  void chooseGroups(Value numBlocks);
  /// The sizes of groups for blocks that each take one tile: 16 heads, 4 where
  /// loops add sums to memory, and a last group of 512 tiles or more.
  int64_t takeGroups();
  Value isTile(Value tile);
  /// The number in i32, as grids have fewer than 2^31 blocks; after the last
  /// tile that of the last, so that what is computed from it reads existing
  /// memory.
  Value clamp(Value tile);
  /// A number in i32.
  Value toInt(Value index);
  /// Of a number that was clamped: x varies fastest, then y.
  Numbers decodeInRows(Value tile);
  /// Of a number that was clamped: group after group.
  Numbers decodeInGroups(Value tile);

private:
  /// The rows of a view: how many of its last dimensions are not of heads, and
  /// the bytes of one.
  struct Rows {
    int64_t ownDims, bytes;
  };

  Value measureHead(Value view, Rows rows);
  std::pair<Value, Value> measureHeads();
  Value sizeOf(Value view, int64_t dim);
  Value toIndex(Value value);
  /// A number of blocks along x.
  Value toColumn(Value value);
  Value constant(int64_t value);
  Value plus(Value a, Value b);
  Value minus(Value a, Value b);
  Value times(Value a, Value b);
  Value over(Value a, Value b); // unsigned
  Value atLeast1(Value value);

  OpBuilder &builder;
  Location loc;
  /// Views that loops copy tiles from, and those that they add sums to.
  llvm::MapVector<Value, Rows> copies, sums;
  bool loopsOverHeads = false; // around the loops that copy
  Value nx, ny, nz, tiles;
  // In i32. Heads: all of them, of a group, of the last one.
  Value heads, group, lastGroup, fullGroups;
};

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_TILEORDER_H
