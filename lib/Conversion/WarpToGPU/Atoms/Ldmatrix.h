//===- Ldmatrix.h - operands of the tensor cores from shared memory -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_LDMATRIX_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_LDMATRIX_H

#include "LaneAddress.h"

namespace attn::warp {

/// Reads 16-bit matrices of a slot with ldmatrix. One object serves one
/// operand of one mma, so that the lane's part of the address is computed once
/// per distinct xor of the swizzle; all the rest are constants.
class MatrixReader {
public:
  /// How the four 8x8 matrices m0 … m3 of one x4 lie in the tile, and whether
  /// they are transposed on the way.
  enum class Order {
    RowsFirst,    // m1 is below m0, m2 right of m0; as the A operand
    ColumnsFirst, // m1 is right of m0, m2 below m0; B from the key tile
    Transposed,   // rows first, transposed; B from the value tile
    ColumnsFirstTransposed // A from a tile with a row for each k
  };

  /// `firstColumn` is a multiple of 16.
  MatrixReader(OpBuilder &builder, Location loc, SlotType slot, Value base,
               Order order, Value firstRow = {}, Value firstColumn = {});

  /// The four matrices of the 16x16 box at a row (multiple of 8) and a column
  /// (multiple of 16), each as one i32 per lane.
  SmallVector<Value> read(int64_t row, int64_t column);
  /// The first two of the four, m0 and m1.
  SmallVector<Value> readHalf(int64_t row, int64_t column);
  /// The lane's pointer to shared memory for such a box.
  Value address(int64_t row, int64_t column) { return lane.at(row, column); }

private:
  SmallVector<Value> read(int64_t row, int64_t column, int64_t num);
  bool isTransposed() const {
    return order == Order::Transposed || order == Order::ColumnsFirstTransposed;
  }

  OpBuilder &builder;
  Location loc;
  Order order;
  LaneAddress lane;
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_LDMATRIX_H
