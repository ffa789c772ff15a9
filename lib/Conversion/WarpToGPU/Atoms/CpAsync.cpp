//===- CpAsync.cpp - cp.async, 16 bytes at a time -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chunks of a tile are shared out so that neighbouring threads copy
// neighbouring chunks of a row: L lanes per row, where L is the largest power
// of two that divides the chunks of a row (at most a warp). Each thread keeps
// its place in the row and walks down the rows, T / L at a time, and over the
// blocks of L chunks. As L is a multiple of the swizzle's period, the xor
// stays inside a block.
//
// A tile in panels has one block per panel.
//
// What lies outside the memref is written as zero: such a copy reads 0 bytes
// of its source, whose address is then never used.
//
//===----------------------------------------------------------------------===//

#include "CpAsync.h"

#include "../Fragments.h"
#include "../Integers.h"
#include "../View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

/// Copies of one thread.
class TileCopier {
public:
  TileCopier(OpBuilder &builder, Location loc, View view, SlotType slot,
             Value base, int64_t threads, int64_t rows)
      : builder(builder), loc(loc), ints(builder, loc), addresses(builder, loc),
        view(std::move(view)), tile(layoutOf(slot)), base(base), rows(rows) {
    lanesPerRow = std::min<int64_t>(layout::warpSize,
                                    tile.chunksPerRow() & -tile.chunksPerRow());
    rowsPerPass = threads / lanesPerRow;
  }

  void run(ValueRange indices);

private:
  void copyRow(Value row, int64_t firstRow, Value source);
  Value size(int64_t block, Value inRows);

  OpBuilder &builder;
  Location loc;
  Integers ints;
  Addresses addresses;
  View view;
  layout::SharedTile tile;
  Value base;
  int64_t rows, lanesPerRow, rowsPerPass;
  // Of the running thread, i32.
  Value laneChunk, laneRow, rowsLeft, columnsLeft;
  // The row's number, where rows may be before the first one.
  Value rowNumber;
  // Columns of the memref that are known to be there from the tile's first
  // column on.
  std::optional<int64_t> knownColumns;
};

} // namespace

/// No box begins before a memref but those whose index says so, by a limit.
static bool mayBeNegative(Value index) {
  auto limited = index.getDefiningOp<arith::MaxSIOp>();
  if (!limited)
    return false;
  std::optional<int64_t> limit = getConstantIntValue(limited.getRhs());
  return limit && *limit < 0;
}

void TileCopier::run(ValueRange indices) {
  unsigned rank = view.type.getRank();
  unsigned rowDim = rank - 2, columnDim = rank - 1;
  Value thread = ints.thread();
  laneChunk = ints.rem(thread, lanesPerRow);
  laneRow = ints.div(thread, lanesPerRow);

  SmallVector<Value> at;
  for (Value index : indices)
    at.push_back(addresses.fromIndex(index));
  knownColumns = view.knownLeft(columnDim, indices[columnDim]);

  // The lane's first element, and how much of the memref is left from there on.
  at[rowDim] = addresses.add(at[rowDim], addresses.fromInt(laneRow));
  at[columnDim] = addresses.add(
      at[columnDim],
      addresses.fromInt(ints.mul(laneChunk, tile.elementsPerChunk())));
  rowsLeft = view.left(builder, loc, rowDim, at[rowDim]);
  columnsLeft = view.left(builder, loc, columnDim, at[columnDim]);
  if (mayBeNegative(indices[rowDim]))
    rowNumber = at[rowDim];

  Value source = view.addressOf(builder, loc, at);
  Value step =
      addresses.mul(view.strides[rowDim], rowsPerPass * view.elementBytes);
  for (int64_t row = 0; row < rows; row += rowsPerPass) {
    if (row != 0)
      source = addresses.add(source, step);
    OpBuilder::InsertionGuard guard(builder);
    if (row + rowsPerPass > rows) {
      // The last pass has threads to spare.
      auto branch =
          scf::IfOp::create(builder, loc, ints.lessThan(laneRow, rows - row),
                            /*withElseRegion=*/false);
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    copyRow(ints.add(laneRow, row), row, source);
  }
}

/// Bytes to read for the lane's chunk of a block: 16 or 0.
Value TileCopier::size(int64_t block, Value inRows) {
  int64_t perChunk = tile.elementsPerChunk();
  int64_t begin = block * lanesPerRow * perChunk;
  int64_t end = begin + lanesPerRow * perChunk;
  if (knownColumns && begin >= *knownColumns)
    return ints.constant(0);
  Value inside = inRows;
  if (!knownColumns || end > *knownColumns) {
    Value inColumns =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                              columnsLeft, ints.constant(begin + perChunk));
    inside = arith::AndIOp::create(builder, loc, inRows, inColumns);
  }
  return arith::SelectOp::create(builder, loc, inside,
                                 ints.constant(layout::chunkBytes),
                                 ints.constant(0));
}

/// All blocks of one row; `firstRow` is the row of lane 0.
void TileCopier::copyRow(Value row, int64_t firstRow, Value source) {
  // Rows a multiple of 8 apart have the same xor: then the lane's part is the
  // same in every pass and only a constant differs.
  bool sameXor = rowsPerPass % 8 == 0;
  Value swizzled = sameXor ? laneRow : row;
  Value chunk =
      ints.bitXor(laneChunk, ints.rem(ints.div(swizzled, tile.rowsPerXor()),
                                      tile.period()));
  int64_t rowBytes = tile.chunksPerRow() * layout::chunkBytes;
  Value offset = ints.add(ints.mul(swizzled, rowBytes),
                          ints.mul(chunk, layout::chunkBytes));
  Value inRows = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                       rowsLeft, ints.constant(firstRow));
  if (rowNumber) {
    Value isThere =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                              rowNumber, addresses.constant(-firstRow));
    inRows = arith::AndIOp::create(builder, loc, inRows, isThere);
  }
  Value destination = ints.toPointer(ints.add(base, offset));
  Value pointer = addresses.toPointer(source);
  int64_t firstByte = sameXor ? firstRow * rowBytes : 0;
  bool panels = tile.panelBytes != 0;
  for (int64_t block = 0, e = panels ? tile.numPanels()
                                     : tile.chunksPerRow() / lanesPerRow;
       block < e; ++block) {
    int64_t blockByte = block * lanesPerRow * layout::chunkBytes;
    int64_t toByte =
        firstByte + (panels ? block * tile.rows * rowBytes : blockByte);
    Value to = offsetBy(builder, loc, destination, toByte);
    Value from = offsetBy(builder, loc, pointer, blockByte);
    NVVM::CpAsyncOp::create(builder, loc, to, from, layout::chunkBytes,
                            NVVM::LoadCacheModifierKind::CG,
                            size(block, inRows));
  }
}

/// Each thread copies one element, wherever it lies.
static void copyRow(OpBuilder &builder, Location loc, const View &view,
                    ValueRange indices, const layout::SharedTile &tile,
                    Value base, int64_t threads) {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  unsigned columnDim = view.type.getRank() - 1;
  for (int64_t column = 0; column < tile.columns; column += threads) {
    Value own = ints.add(ints.thread(), column);
    SmallVector<Value> at;
    for (Value index : indices)
      at.push_back(addresses.fromIndex(index));
    at[columnDim] = addresses.add(at[columnDim], addresses.fromInt(own));
    Value left = view.left(builder, loc, columnDim, at[columnDim]);
    Value isInside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sgt, left, ints.constant(0));
    Value size = arith::SelectOp::create(builder, loc, isInside,
                                         ints.constant(tile.elementBytes),
                                         ints.constant(0));
    OpBuilder::InsertionGuard guard(builder);
    if (column + threads > tile.columns) {
      auto branch =
          scf::IfOp::create(builder, loc, ints.lessThan(own, tile.columns),
                            /*withElseRegion=*/false);
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    Value to = ints.toPointer(ints.add(base, ints.mul(own, tile.elementBytes)));
    NVVM::CpAsyncOp::create(
        builder, loc, to, addresses.toPointer(view.addressOf(builder, loc, at)),
        tile.elementBytes, NVVM::LoadCacheModifierKind::CA, size);
  }
}

LogicalResult attn::warp::emitTileCopy(OpBuilder &builder, Location loc,
                                       Value memref, ValueRange indices,
                                       SlotType slot, Value base,
                                       int64_t threads, int64_t firstRow,
                                       int64_t rows) {
  FailureOr<View> view = View::get(builder, loc, memref);
  if (failed(view))
    return failure();
  layout::SharedTile tile = layoutOf(slot);
  if (view->type.getRank() < (tile.rows == 1 ? 1 : 2) || !view->isContiguous())
    return emitError(loc) << "expected a memref of rank 2 or more whose "
                             "innermost stride is 1, got "
                          << view->type;
  if (tile.rows == 1) {
    copyRow(builder, loc, *view, indices, tile, base, threads);
    return success();
  }
  Integers ints(builder, loc);
  Value first =
      ints.add(base, firstRow * tile.chunksPerRow() * layout::chunkBytes);
  TileCopier(builder, loc, std::move(*view), slot, first, threads, rows)
      .run(indices);
  return success();
}

void attn::warp::emitCommit(OpBuilder &builder, Location loc) {
  NVVM::CpAsyncCommitGroupOp::create(builder, loc);
}

void attn::warp::emitWait(OpBuilder &builder, Location loc, int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(builder, loc, pending);
}
