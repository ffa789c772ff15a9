//===- CpAsync.h - cp.async, 16 bytes at a time -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_CPASYNC_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_CPASYNC_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// Starts the copies of `rows` rows of a tile, from `firstRow` on, both
/// multiples of 8, in pieces of 16 bytes; of a tile of one row in pieces of one
/// element. `base` is the address of the slot.
LogicalResult emitTileCopy(OpBuilder &builder, Location loc, Value memref,
                           ValueRange indices, SlotType slot, Value base,
                           int64_t threads, int64_t firstRow, int64_t rows);
void emitCommit(OpBuilder &builder, Location loc);
/// Waits until at most `pending` of the thread's youngest groups are
/// unfinished.
void emitWait(OpBuilder &builder, Location loc, int64_t pending);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_CPASYNC_H
