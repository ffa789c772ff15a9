//===- Tma.h - copies of boxes by the tensor memory accelerator -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_TMA_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_TMA_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// A lane of the warp starts the copy of the rows of a tile from `firstRow` on
/// that a box has, in boxes of so many panels: one, or all of them; `barrier`
/// counts its bytes.
LogicalResult emitTensorCopy(OpBuilder &builder, Location loc, Value tensorMap,
                             int64_t boxPanels, ValueRange indices,
                             SlotType slot, Value base, Value barrier,
                             int64_t firstRow);
/// One thread (number 0 of `thread`) starts storing 64 rows of a slot, from
/// `row` on (i32), one box per panel: `columns` columns, the slot's first one
/// at `firstColumn` of the box at `indices`. With `accumulates` its elements
/// are added to those in memory.
void emitTensorStore(OpBuilder &builder, Location loc, Value tensorMap,
                     ValueRange indices, Value row, int64_t firstColumn,
                     int64_t columns, SlotType slot, Value base, Value thread,
                     bool accumulates);
/// Closes the group of the thread's stores by TMA.
void emitBulkCommit(OpBuilder &builder, Location loc);
/// Waits until all groups but the youngest `pending` have read shared memory.
void emitBulkWait(OpBuilder &builder, Location loc, int64_t pending);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_TMA_H
