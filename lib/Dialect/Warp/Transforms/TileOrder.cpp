//===- TileOrder.cpp - which tile a number stands for -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileOrder.h"

#include "attn/Dialect/Warp/Analysis/BlockNumbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

bool attn::warp::dependsOnBlock(KernelOp kernel, Value value) {
  SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (owner == kernel)
        return true;
      if (kernel->isAncestor(owner))
        values.insert(owner->operand_begin(), owner->operand_end());
      continue;
    }
    Operation *op = values[i].getDefiningOp();
    if (auto group = dyn_cast<GroupBoundsOp>(op)) {
      values.insert(group.getWhole(values[i]));
      continue;
    }
    if (kernel->isAncestor(op))
      op->walk([&](Operation *inner) {
        values.insert(inner->operand_begin(), inner->operand_end());
      });
  }
  return false;
}

bool attn::warp::hasEvenTiles(KernelOp kernel) {
  WalkResult walk = kernel.walk([&](scf::ForOp loop) {
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound()})
      if (dependsOnBlock(kernel, bound))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

/// Heads of a group, at most: also where loops add to memory and nobody asks
/// how much.
static constexpr int64_t maxHeads = 16, maxHeadsOfSums = 4;
/// Tiles of the last group, where nobody says how many blocks there are at a
/// time: two for each of the two blocks that about 128 multiprocessors hold.
static constexpr int64_t tilesAtEnd = 512;

/// value = quotient * divisor + remainder, of numbers that are not negative.
static std::pair<Value, Value> divide(OpBuilder &b, Location loc, Value value,
                                      Value divisor) {
  Value quotient = b.createOrFold<arith::DivUIOp>(loc, value, divisor);
  Value below = b.createOrFold<arith::MulIOp>(loc, quotient, divisor);
  return {quotient, b.createOrFold<arith::SubIOp>(loc, value, below)};
}

TileOrder::TileOrder(OpBuilder &builder, KernelOp kernel,
                     ArrayRef<CopiedTile> copied)
    : builder(builder), loc(kernel.getLoc()), nx(kernel.getGridX()),
      ny(kernel.getGridY()), nz(kernel.getGridZ()) {
  for (CopiedTile tile : copied) {
    auto loop = dyn_cast<scf::ForOp>(tile.copy->getParentOp());
    if (!loop)
      continue;
    loopsOverHeads |= isa<scf::ForOp>(loop->getParentOp());
    SlotType slot = tile.copy.getSlot().getType();
    bool isRow = slot.getShape()[0] == 1; // of numbers, one for each query
    int64_t rows = isRow ? slot.getShape()[1] : slot.getShape()[0];
    copies.insert({tile.copy.getView(),
                   {isRow ? 1 : 2, slot.getLayout().bytes() / rows}});
  }
  kernel.walk([&](StoreOp store) {
    auto type = cast<MemRefType>(store.getView().getType());
    int64_t columns = type.getShape().back();
    if (store.getAccumulate() && !ShapedType::isDynamic(columns) &&
        store->getParentOfType<scf::ForOp>())
      sums.insert(
          {store.getView(), {2, columns * type.getElementTypeBitWidth() / 8}});
  });
}

Value TileOrder::countTiles() {
  tiles = builder.createOrFold<arith::MulIOp>(loc, nx, ny);
  tiles = builder.createOrFold<arith::MulIOp>(loc, tiles, nz);
  return tiles;
}

static int64_t getRank(Value view) {
  return cast<MemRefType>(view.getType()).getRank();
}

Value TileOrder::sizeOf(Value view, int64_t dim) {
  return toInt(builder.createOrFold<memref::DimOp>(loc, view, dim));
}

Value TileOrder::isTile(Value tile) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                               toInt(tile), toInt(tiles));
}

Value TileOrder::toInt(Value index) {
  return builder.createOrFold<arith::IndexCastOp>(loc, builder.getI32Type(),
                                                  index);
}

Value TileOrder::toIndex(Value value) {
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    value);
}

Value TileOrder::toColumn(Value value) {
  Value column = toIndex(value);
  if (std::optional<int64_t> most = getMostBelow(nx))
    setMost(column.getDefiningOp(), *most);
  return column;
}

Value TileOrder::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

Value TileOrder::plus(Value a, Value b) {
  return arith::AddIOp::create(builder, loc, a, b);
}

Value TileOrder::minus(Value a, Value b) {
  return arith::SubIOp::create(builder, loc, a, b);
}

Value TileOrder::times(Value a, Value b) {
  return arith::MulIOp::create(builder, loc, a, b);
}

Value TileOrder::over(Value a, Value b) {
  return arith::DivUIOp::create(builder, loc, a, b);
}

Value TileOrder::atLeast1(Value value) {
  return arith::MaxUIOp::create(builder, loc, value, constant(1));
}

/// KiB of a head. In pieces of 16 bytes first, so that lengths of 2^24 do not
/// overflow.
Value TileOrder::measureHead(Value view, Rows rows) {
  constexpr int64_t kib = 1024;
  int64_t unit = std::min(rows.bytes, layout::chunkBytes);
  Value units = times(sizeOf(view, getRank(view) - rows.ownDims),
                      constant(rows.bytes / unit));
  return over(units, constant(kib / unit));
}

/// KiB of what loops copy and add up for a head, and how many share that.
std::pair<Value, Value> TileOrder::measureHeads() {
  Value size = constant(1), copied = copies.empty() ? heads : constant(1);
  for (auto [view, rows] : copies) {
    size = plus(size, measureHead(view, rows));
    Value own = constant(1);
    for (int64_t dim = 0; dim < getRank(view) - rows.ownDims; ++dim)
      own = times(own, sizeOf(view, dim));
    copied = arith::MaxUIOp::create(builder, loc, copied, own);
  }
  for (auto [view, rows] : sums)
    size = plus(size, measureHead(view, rows));
  // What a tile reads of all the heads that it goes through.
  if (loopsOverHeads)
    size = times(size, atLeast1(over(copied, atLeast1(heads))));
  return {size, atLeast1(over(heads, copied))};
}

void TileOrder::chooseGroups(Value numBlocks) {
  constexpr int64_t tilesPerBlock = 2;
  const int64_t cacheKiB = (sums.empty() ? 16 : 4) * 1024;
  Value blocks = toInt(numBlocks);
  heads = times(toInt(ny), toInt(nz));
  Value wanted = times(blocks, constant(tilesPerBlock));
  // Divisions take long, and the first copy waits for them: where there are no
  // more tiles than the last group has in any case none is done.
  Value isMore = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt,
                                       toInt(tiles), wanted);
  auto measure = [&](OpBuilder &, Location) {
    auto [size, ratio] = measureHeads();
    Value inGroup = arith::MinUIOp::create(
        builder, loc, atLeast1(over(constant(cacheKiB), size)),
        atLeast1(over(constant(maxHeads), ratio)));
    inGroup = times(inGroup, ratio);
    Value columns = toInt(nx);
    Value headsAtEnd = over(plus(wanted, minus(columns, constant(1))), columns);
    Value others = arith::MaxSIOp::create(
        builder, loc, minus(heads, headsAtEnd), constant(0));
    Value groups = over(others, inGroup);
    scf::YieldOp::create(builder, loc, ValueRange{inGroup, groups});
  };
  auto takeAll = [&](OpBuilder &, Location) {
    scf::YieldOp::create(builder, loc, ValueRange{heads, constant(0)});
  };
  auto chosen = scf::IfOp::create(builder, loc, isMore, measure, takeAll);
  group = chosen.getResult(0);
  fullGroups = chosen.getResult(1);
  lastGroup = minus(heads, times(fullGroups, group));
}

int64_t TileOrder::takeGroups() {
  heads = times(toInt(ny), toInt(nz));
  int64_t size = sums.empty() ? maxHeads : maxHeadsOfSums;
  group = constant(size);
  Value columns = toInt(nx);
  Value headsAtEnd = over(plus(columns, constant(tilesAtEnd - 1)), columns);
  Value others = arith::MaxSIOp::create(builder, loc, minus(heads, headsAtEnd),
                                        constant(0));
  fullGroups = over(others, group);
  lastGroup = minus(heads, times(fullGroups, group));
  return size;
}

Value TileOrder::clamp(Value tile) {
  Value last = arith::AddIOp::create(builder, loc, toInt(tiles), constant(-1));
  return arith::MinUIOp::create(builder, loc, toInt(tile), last);
}

TileOrder::Numbers TileOrder::decodeInRows(Value tile) {
  auto [outer, x] = divide(builder, loc, tile, toInt(nx));
  auto [z, y] = divide(builder, loc, outer, toInt(ny));
  return {toColumn(x), toIndex(y), toIndex(z)};
}

TileOrder::Numbers TileOrder::decodeInGroups(Value tile) {
  Value columns = toInt(nx);
  auto count = [&](OpBuilder &, Location) {
    Value number = over(tile, times(group, columns));
    number = arith::MinUIOp::create(builder, loc, number, fullGroups);
    scf::YieldOp::create(builder, loc, number);
  };
  auto takeFirst = [&](OpBuilder &, Location) {
    scf::YieldOp::create(builder, loc, constant(0));
  };
  Value isGrouped = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::ne, fullGroups, constant(0));
  Value number =
      scf::IfOp::create(builder, loc, isGrouped, count, takeFirst).getResult(0);
  Value isFull = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                       number, fullGroups);
  Value size = arith::SelectOp::create(builder, loc, isFull, group, lastGroup);
  Value first = times(number, group);
  auto [x, inSize] =
      divide(builder, loc, minus(tile, times(first, columns)), size);
  auto [z, y] = divide(builder, loc, plus(first, inSize), toInt(ny));
  return {toColumn(x), toIndex(y), toIndex(z)};
}
