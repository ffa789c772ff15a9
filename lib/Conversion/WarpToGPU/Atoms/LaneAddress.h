//===- LaneAddress.h - where a lane reads a slot --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_LANEADDRESS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_LANEADDRESS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// Addresses of one lane in a slot: a value per distinct xor of the swizzle,
/// and constants (see Ldmatrix.cpp).
class LaneAddress {
public:
  /// From its address in the box at row 0, column 0.
  LaneAddress(OpBuilder &builder, Location loc, layout::SharedTile tile,
              Value address)
      : builder(builder), loc(loc), tile(tile), address(address),
        pointers(tile.period()) {}
  /// From its place in the 8x8 box there, in a slot of f32.
  LaneAddress(OpBuilder &builder, Location loc, SlotType slot, Value base,
              Value row, Value rowInBox, Value column);

  /// The same from another row on, a multiple of 8, and another column, of 8;
  /// null is 0. Columns after it are less than 8.
  LaneAddress moved(OpBuilder &inner, Value row, Value column) const;

  /// Its place in the box at a row, a multiple of 8, and a column, of a chunk.
  Value at(int64_t row, int64_t column);

private:
  OpBuilder &builder;
  Location loc;
  layout::SharedTile tile;
  Value address; // i32
  SmallVector<Value> pointers;
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_LANEADDRESS_H
