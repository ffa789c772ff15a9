//===- SlotWriter.h - fragments into shared memory --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_SLOTWRITER_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_SLOTWRITER_H

#include "Fragments.h"
#include "Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace attn::warp {

/// Where a lane has a pair of columns of a tile: those of an `acc` fragment.
class PairAddresses {
public:
  PairAddresses(OpBuilder &builder, Location loc,
                const layout::Fragment &fragment, SlotType slotType, Value slot)
      : builder(builder), loc(loc), ints(builder, loc), fragment(fragment),
        tile(layoutOf(slotType)), slot(slot) {}

  /// Of the column tile at a row and a column, multiples of 8; both are counted
  /// from the first of the warp.
  Value at(int64_t row, int64_t column);

private:
  OpBuilder &builder;
  Location loc;
  Integers ints;
  layout::Fragment fragment;
  layout::SharedTile tile;
  Value slot;
  Value laneAddress; // of the running thread
};

/// Writes what a warp has of an `acc` fragment to a slot, as many of its
/// columns as the slot has.
class SlotWriter {
public:
  SlotWriter(OpBuilder &builder, Location loc, FragType frag, SlotType slotType,
             ValueRange values, Value slot)
      : builder(builder), loc(loc), ints(builder, loc), frag(frag),
        fragment(layoutOf(frag)), slotType(slotType), tile(layoutOf(slotType)),
        values(values), slot(slot),
        addresses(builder, loc, fragment, slotType, slot),
        columns(8 * fragment.columnSteps()),
        perPart(std::min(columns, slotType.getShape()[1])) {}

  void write(int64_t firstColumn);

private:
  int64_t rowOf(int64_t step) const {
    return step * fragment.rowWarps() * layout::groupRows;
  }
  void writeMatrices(int64_t firstColumn);
  void writePairs(int64_t firstColumn);

  OpBuilder &builder;
  Location loc;
  Integers ints;
  FragType frag;
  layout::Fragment fragment;
  SlotType slotType;
  layout::SharedTile tile;
  ValueRange values;
  Value slot;
  PairAddresses addresses;
  int64_t columns, perPart;
  SmallVector<Value> elements;
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_SLOTWRITER_H
