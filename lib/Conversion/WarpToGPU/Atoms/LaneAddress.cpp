//===- LaneAddress.cpp - where a lane reads a slot ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneAddress.h"

#include "../Fragments.h"
#include "../Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Swizzle.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

LaneAddress::LaneAddress(OpBuilder &builder, Location loc, SlotType slot,
                         Value base, Value row, Value rowInBox, Value column)
    : LaneAddress(builder, loc, layoutOf(slot), Value()) {
  Integers ints(builder, loc);
  Value swizzle =
      ints.rem(ints.div(rowInBox, tile.rowsPerXor()), tile.period());
  Value chunk = ints.bitXor(ints.div(column, tile.elementsPerChunk()), swizzle);
  Value inChunk =
      ints.mul(ints.rem(column, tile.elementsPerChunk()), tile.elementBytes);
  Value offset =
      ints.add(ints.add(ints.mul(row, tile.chunksPerRow() * layout::chunkBytes),
                        ints.mul(chunk, layout::chunkBytes)),
               inChunk);
  address = hideOrigin(builder, loc, ints.add(base, offset));
}

LaneAddress LaneAddress::moved(OpBuilder &inner, Value row,
                               Value column) const {
  LaneAddress result(inner, loc, tile, address);
  Integers ints(inner, loc);
  if (row)
    result.address =
        ints.add(result.address,
                 ints.mul(row, tile.chunksPerRow() * layout::chunkBytes));
  if (column) {
    // Whole periods are added, the rest goes through the swizzle.
    Value bytes = ints.mul(column, tile.elementBytes);
    int64_t periodBytes = tile.period() * layout::chunkBytes;
    result.address =
        ints.add(ints.bitXor(result.address, ints.rem(bytes, periodBytes)),
                 ints.bitAnd(bytes, -periodBytes));
  }
  return result;
}

Value LaneAddress::at(int64_t row, int64_t column) {
  Integers ints(builder, loc);
  int64_t chunk = column / tile.elementsPerChunk();
  int64_t inPeriod = chunk % tile.period();
  Value &pointer = pointers[inPeriod];
  if (!pointer)
    pointer =
        ints.toPointer(ints.bitXor(address, inPeriod * layout::chunkBytes));
  int64_t panel = tile.panelBytes != 0 ? chunk / tile.chunksPerRow() : 0;
  int64_t inPanel = chunk - panel * tile.chunksPerRow();
  int64_t constant =
      ((panel * tile.rows + row) * tile.chunksPerRow() + inPanel - inPeriod) *
      layout::chunkBytes;
  return offsetBy(builder, loc, pointer, constant);
}
