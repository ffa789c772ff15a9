//===- Tma.cpp - copies of boxes by the tensor memory accelerator ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor map has four dimensions, the innermost first: column, row, head,
// batch. One copy fills one panel, the last one also beyond the tensor's
// columns, with zeros; what lies outside counts as bytes that arrive. Where
// panels end with the rows there is a fifth dimension, column of the panel,
// row, panel, head, batch, and one copy fills them all: what issues copies is
// one thread, and each takes it its time.
//
// Stores go panel by panel; what lies outside is not written. One row is a box
// of its own, not swizzled.
//
//===----------------------------------------------------------------------===//

#include "Tma.h"

#include "../Fragments.h"
#include "../Integers.h"
#include "Mbarrier.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

static constexpr size_t mapRank = 4;

/// The coordinates of a box, the innermost first, i32.
static SmallVector<Value> coordinatesOf(Integers &ints, ValueRange indices) {
  SmallVector<Value> coordinates;
  for (Value index : llvm::reverse(indices))
    coordinates.push_back(ints.fromIndex(index));
  while (coordinates.size() < mapRank)
    coordinates.push_back(ints.constant(0));
  return coordinates;
}

static void emitTensor(OpBuilder &builder, Location loc, ValueRange operands,
                       StringRef text, StringRef constraints) {
  LLVM::InlineAsmOp::create(
      builder, loc, TypeRange(), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

LogicalResult attn::warp::emitTensorCopy(OpBuilder &builder, Location loc,
                                         Value tensorMap, int64_t boxPanels,
                                         ValueRange indices, SlotType slot,
                                         Value base, Value barrier,
                                         int64_t firstRow) {
  if (indices.size() > mapRank)
    return emitError(loc) << "expected a memref of at most " << mapRank
                          << " dimensions, got " << indices.size();
  Integers ints(builder, loc);
  layout::SharedTile tile = layoutOf(slot);
  SmallVector<Value> coordinates = coordinatesOf(ints, indices);
  Value column = coordinates.front();
  if (boxPanels > 1) {
    constexpr size_t panel = 2;
    coordinates.insert(coordinates.begin() + panel, ints.constant(0));
    SmallVector<Value> operands = {base, tensorMap, barrier};
    llvm::append_range(operands, coordinates);
    emitTensor(builder, loc, operands,
               "{ .reg .pred first; elect.sync _|first, -1; @first "
               "cp.async.bulk.tensor.5d.shared::cluster.global.tile."
               "mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6, $7}], "
               "[$2]; }",
               "r,l,r,r,r,r,r,r,~{memory}");
    return success();
  }
  // One row is one box.
  int64_t panels = tile.rows == 1 ? 1 : tile.numPanels();
  for (int64_t panel = 0; panel < panels; ++panel) {
    coordinates.front() = ints.add(column, panel * tile.panelColumns());
    int64_t row = panel * tile.rows + firstRow;
    SmallVector<Value> operands = {ints.add(base, row * tile.panelBytes),
                                   tensorMap, barrier};
    llvm::append_range(operands, coordinates);
    emitTensor(builder, loc, operands,
               "{ .reg .pred first; elect.sync _|first, -1; @first "
               "cp.async.bulk.tensor.4d.shared::cluster.global.tile."
               "mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], "
               "[$2]; }",
               "r,l,r,r,r,r,r,~{memory}");
  }
  return success();
}

void attn::warp::emitTensorStore(OpBuilder &builder, Location loc,
                                 Value tensorMap, ValueRange indices, Value row,
                                 int64_t firstColumn, int64_t columns,
                                 SlotType slot, Value base, Value thread,
                                 bool accumulates) {
  Integers ints(builder, loc);
  layout::SharedTile tile = layoutOf(slot);
  SmallVector<Value> coordinates = coordinatesOf(ints, indices);
  Value column = ints.add(coordinates[0], firstColumn);
  coordinates[1] = ints.add(coordinates[1], row);
  Value from = ints.add(base, ints.mul(row, tile.panelBytes));
  for (int64_t done = 0; done < columns; done += tile.panelColumns()) {
    int64_t panel = done / tile.panelColumns();
    coordinates.front() = ints.add(column, done);
    SmallVector<Value> operands = {
        ints.add(from, panel * tile.rows * tile.panelBytes), tensorMap, thread};
    llvm::append_range(operands, coordinates);
    std::string instruction =
        accumulates
            ? "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile."
              "bulk_group"
            : "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group";
    emitTensor(builder, loc, operands,
               "{ .reg .pred first; setp.eq.u32 first, $2, 0; @first " +
                   instruction + " [$1, {$3, $4, $5, $6}], [$0]; }",
               "r,l,r,r,r,r,r,~{memory}");
  }
}

void attn::warp::emitBulkCommit(OpBuilder &builder, Location loc) {
  emitStatement(builder, loc, "cp.async.bulk.commit_group;");
}

void attn::warp::emitBulkWait(OpBuilder &builder, Location loc,
                              int64_t pending) {
  emitStatement(
      builder, loc,
      ("cp.async.bulk.wait_group.read " + Twine(pending) + ";").str());
}
