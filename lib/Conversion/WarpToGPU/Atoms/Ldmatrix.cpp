//===- Ldmatrix.cpp - operands of the tensor cores from shared memory ----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A slot's row has p chunks of 16 bytes (8 elements), stored at chunk xor x,
// where x depends on the row mod 8 only and is smaller than g = gcd(p, 8). One
// ldmatrix.x4 reads a 16x16 box, two chunk columns c, c + 1 with c even. A lane
// addresses one row of one of the four matrices: its row is laneRow (0 … 15)
// plus the box's row, its chunk is c + h with h = 0 or 1. So
//
//   chunk' = (c + h) xor x = (c - c mod g) + ((h xor x) xor (c mod g))
//
// and the byte offset is
//
//   laneRow 16 p + 16 ((h xor x) xor (c mod g))      a value per c mod g
//   + row 16 p + 16 (c - c mod g)                    a constant
//
// In panels p is that of a panel, and a panel further is a constant more. At
// most four values per operand; the constants go into the instruction.
//
// Slots lie at multiples of 128 bytes, 16 g or more, so the xor by c mod g may
// be the last step, after the slot's address was added: one value stays alive
// per operand, not four.
//
//===----------------------------------------------------------------------===//

#include "Ldmatrix.h"

#include "../Fragments.h"
#include "../Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// In the box at row 0, column 0.
static Value laneAddress(OpBuilder &builder, Location loc,
                         const layout::SharedTile &tile, Value base,
                         MatrixReader::Order order, Value firstRow,
                         Value firstColumn) {
  using Order = MatrixReader::Order;
  Integers ints(builder, loc);
  Value lane = ints.lane();
  Value inMatrix = ints.rem(lane, 8);
  // Lanes 8 i … 8 i + 7 address matrix i.
  Value low = ints.rem(ints.div(lane, 8), 2), high = ints.div(lane, 16);
  bool columnsFirst =
      order == Order::ColumnsFirst || order == Order::ColumnsFirstTransposed;
  Value laneRow = ints.add(inMatrix, ints.mul(columnsFirst ? high : low, 8));
  Value right = columnsFirst ? low : high;
  Value swizzle =
      ints.rem(ints.div(inMatrix, tile.rowsPerXor()), tile.period());
  Value chunk = ints.bitXor(right, swizzle);
  if (firstColumn) {
    // Of the row: whole periods, then what the swizzle is about.
    Value first =
        ints.add(ints.div(firstColumn, tile.elementsPerChunk()), right);
    Value inPeriod = ints.rem(first, tile.period());
    chunk = ints.add(ints.mul(ints.div(first, tile.period()), tile.period()),
                     ints.bitXor(inPeriod, swizzle));
  }
  if (firstRow)
    laneRow = ints.add(laneRow, firstRow);
  Value offset =
      ints.add(ints.mul(laneRow, tile.chunksPerRow() * layout::chunkBytes),
               ints.mul(chunk, layout::chunkBytes));
  // For a slot that stays (the query tile) LLVM would keep every address of the
  // tile over the loop instead of one and constants.
  return hideOrigin(builder, loc, ints.add(base, offset));
}

MatrixReader::MatrixReader(OpBuilder &builder, Location loc, SlotType slot,
                           Value base, Order order, Value firstRow,
                           Value firstColumn)
    : builder(builder), loc(loc), order(order),
      lane(builder, loc, layoutOf(slot),
           laneAddress(builder, loc, layoutOf(slot), base, order, firstRow,
                       firstColumn)) {}

SmallVector<Value> MatrixReader::read(int64_t row, int64_t column) {
  return read(row, column, 4);
}

SmallVector<Value> MatrixReader::readHalf(int64_t row, int64_t column) {
  return read(row, column, 2);
}

SmallVector<Value> MatrixReader::read(int64_t row, int64_t column,
                                      int64_t num) {
  Type i32 = builder.getI32Type();
  Type type = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                               SmallVector<Type>(num, i32));
  Value matrices = NVVM::LdMatrixOp::create(
      builder, loc, type, lane.at(row, column), num,
      isTransposed() ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> result;
  for (int64_t i = 0; i < num; ++i)
    result.push_back(
        LLVM::ExtractValueOp::create(builder, loc, i32, matrices, i));
  return result;
}
