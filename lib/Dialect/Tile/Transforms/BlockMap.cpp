//===- BlockMap.cpp - which blocks a mask leaves, found at run time -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first grid has a block for each pair of a tile and a block of the loop,
// and evaluates the mask a few rows and columns at a time, so that one warp can
// hold them and its code is short; of rows and of columns that are alike
// (MaskGrain.h) one of each group, or where its code has bounds (CellBounds.h)
// those of as large a part of the block as may be. In the second one each block
// puts a few blocks of the loop into the list of a tile, after those before,
// which it counts. Lists in the order of blocks, and not of arrival: two
// launches agree in every bit.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/BlockMap.h"

#include "CellBounds.h"
#include "DeadOps.h"
#include "MaskProgram.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include <array>

using namespace mlir;
using namespace attn::tile;

/// As many rows as the lanes of one warp take at once.
static constexpr int64_t rowsAtOnce = 16;
/// As few columns as they can hold, and as many as are enough for each to have
/// scores to compute at the same time.
static constexpr int64_t leastColumns = 8, columnsAtOnce = 32;
/// Pairs that are alike, of which to evaluate one is as good as bounds.
static constexpr int64_t enoughAlike = 64;
/// Blocks that one block of the second grid puts into a list; rows of states
/// are as long as whole groups of them.
static constexpr int64_t blocksAtOnce = 16;
/// The sum of a group's states tells how many of each there are.
static constexpr int64_t fullBit = 5;
static constexpr int64_t statePartial = 1, stateFull = int64_t(1) << fullBit;
static_assert(blocksAtOnce < stateFull && blocksAtOnce * stateFull < (1 << 30));

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {
class MapBuilder {
public:
  MapBuilder(RewriterBase &rewriter, MaskProgram &program,
             const CellBounds *bounds)
      : b(rewriter), loc(program.loop.getLoc()), program(program),
        bounds(bounds), numRows(program.numRows / program.grain.rows),
        numColumns(program.numColumns / program.grain.columns),
        rows(isSampled() || numRows % rowsAtOnce == 0 ? rowsAtOnce : numRows),
        allColumns(isSampled() ? std::max(numColumns, leastColumns)
                               : numColumns),
        columns(allColumns % columnsAtOnce == 0 ? columnsAtOnce : allColumns) {}

  BlockMap build();

private:
  /// Of partial and of full blocks.
  struct Counts {
    std::array<Value, 2> inFront, all;
  };

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value integer(int64_t value, unsigned bits) {
    return arith::ConstantIntOp::create(b, loc, value, bits);
  }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }
  Value toI32(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  }
  Value allocate(Type element, Value last);
  KernelOp beginKernel(StringRef suffix, Value x);
  bool isSampled() const {
    return program.grain.rows != 1 || program.grain.columns != 1;
  }
  Value sample(Value base, Value first, int64_t axis);
  Value isBelow(Value positions, Value limit, Type mask);
  Value limitShown(IRMapping &mapping, Value mask, ValueRange positions,
                   bool isLast);
  Value anyOf(Value acc, Value vector);
  void buildStates();
  void buildLists();
  Value loadState(ValueRange place, Value block);
  std::array<Value, 2> countStates(Value sum);
  Counts countBlocks(ValueRange place, Value part, Value parts);
  void appendBlocks(ValueRange place, Value begin, ValueRange positions);

  RewriterBase &b;
  Location loc;
  MaskProgram &program;
  const CellBounds *bounds;    // of groups; null: each is alike
  int64_t numRows, numColumns; // of groups that are alike
  int64_t rows;                // at once
  int64_t allColumns, columns; // in all and at once
  Value batches, heads, tiles, blocks;
  Value groups; // of blocks, as many as states are read at once
  Value states, counts, lists;
};
} // namespace

/// memref<batches x heads x tiles x last>.
Value MapBuilder::allocate(Type element, Value last) {
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  for (Value size : {batches, heads, tiles, last}) {
    std::optional<int64_t> known = getConstantIntValue(size);
    shape.push_back(known.value_or(ShapedType::kDynamic));
    if (!known)
      sizes.push_back(size);
  }
  return memref::AllocOp::create(b, loc, MemRefType::get(shape, element),
                                 sizes);
}

/// A kernel of one warp over (batch, head, x), called like that of the program
/// with `suffix`; the builder then stands in it.
KernelOp MapBuilder::beginKernel(StringRef suffix, Value x) {
  std::string name = (program.grid.getSymName() + suffix).str();
  auto grid = KernelOp::create(
      b, loc, KernelOp::findName(program.grid->getBlock(), name),
      program.grid.getPlan().withOneWarp(), ValueRange{batches, heads, x});
  b.setInsertionPoint(grid.getTerminator());
  return grid;
}

/// The first coordinates of groups, from group number `first` on; after the
/// last group that one again.
Value MapBuilder::sample(Value base, Value first, int64_t axis) {
  bool isRow = axis == 0;
  auto type = VectorType::get({isRow ? rows : 1, isRow ? int64_t(1) : columns},
                              b.getI32Type());
  if (!isSampled())
    return CoordsOp::create(b, loc, type,
                            arith::AddIOp::create(b, loc, base, first), axis);
  auto splat = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getI32IntegerAttr(value)));
  };
  Value group = CoordsOp::create(b, loc, type, first, axis);
  Value last = splat((isRow ? numRows : numColumns) - 1);
  group = arith::MinSIOp::create(b, loc, group, last);
  Value size = splat(isRow ? program.grain.rows : program.grain.columns);
  Value offset = arith::MulIOp::create(b, loc, group, size);
  return arith::AddIOp::create(
      b, loc, vector::BroadcastOp::create(b, loc, type, base), offset);
}

/// Which of `positions`, rows or columns, are below a number, as `mask`.
Value MapBuilder::isBelow(Value positions, Value limit, Type mask) {
  Value limits =
      vector::BroadcastOp::create(b, loc, positions.getType(), limit);
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         positions, limits);
  return vector::BroadcastOp::create(b, loc, mask, isInside);
}

/// Those of `mask` for which the first ones of their groups, or the last ones,
/// are in front of all limits. `positions` are those of queries and of keys.
Value MapBuilder::limitShown(IRMapping &mapping, Value mask,
                             ValueRange positions, bool isLast) {
  const MaskGrain &grain = program.grain;
  int64_t sizes[] = {grain.rows, grain.columns};
  if (program.isTransposed())
    std::swap(sizes[0], sizes[1]);
  auto limit = [&](ArrayRef<Value> limits, unsigned which) {
    for (Value value : limits) {
      Value bound = b.createOrFold<arith::SubIOp>(
          loc, mapping.lookupOrDefault(value),
          integer(isLast ? sizes[which] - 1 : 0, 32));
      Value isInside = isBelow(positions[which], bound, mask.getType());
      mask = arith::AndIOp::create(b, loc, mask, isInside);
    }
  };
  limit(grain.queryLimits, 0);
  limit(grain.keyLimits, 1);
  return mask;
}

/// acc, or any element.
Value MapBuilder::anyOf(Value acc, Value vector) {
  return vector::MultiDimReductionOp::create(b, loc, vector, acc,
                                             ArrayRef<bool>{true, true},
                                             vector::CombiningKind::OR);
}

void MapBuilder::buildStates() {
  OpBuilder::InsertionGuard guard(b);
  bool isTransposed = program.isTransposed();
  Value size = index(blocksAtOnce);
  Value width = b.createOrFold<arith::MulIOp>(loc, groups, size);
  Value pairs = b.createOrFold<arith::MulIOp>(loc, tiles, width);
  Value length = toI32(
      b.createOrFold<memref::DimOp>(loc, program.query.getView(), int64_t(2)));
  KernelOp grid = beginKernel("_block_states", pairs);
  Value pair = grid.getNumber(2);
  Value tile = arith::DivUIOp::create(b, loc, pair, width);
  Value block = arith::RemUIOp::create(b, loc, pair, width);
  IRMapping mapping;
  mapping.map(program.grid.getNumbers(),
              ValueRange{grid.getNumber(0), grid.getNumber(1), tile});
  mapping.map(program.loop.getInductionVar(), block);
  for (Operation *op : program.ops)
    b.clone(*op, mapping);
  auto lookup = [&](Value value) { return mapping.lookupOrDefault(value); };
  Value never = integer(0, 1);
  auto outer = scf::ForOp::create(b, loc, index(0), index(allColumns),
                                  index(columns), ValueRange{never, never});
  b.setInsertionPointToStart(outer.getBody());
  Value firstColumn = toI32(outer.getInductionVar());
  Value column = sample(lookup(program.columns().getBase()), firstColumn, 1);
  auto loop = scf::ForOp::create(b, loc, index(0), index(numRows), index(rows),
                                 outer.getRegionIterArgs());
  b.setInsertionPointToStart(loop.getBody());
  Value row = toI32(loop.getInductionVar());
  ScoresOp scores = program.scores;
  Value positions[] = {sample(lookup(program.rows().getBase()), row, 0),
                       column};
  if (isTransposed)
    std::swap(positions[0], positions[1]);
  auto expand = [&](Value root) {
    return expandScalarCode(b, loop, scores.getMask(),
                            {lookup(scores.getBatch()),
                             lookup(scores.getHead()), positions[0],
                             positions[1]},
                            {rows, columns}, root, mapping);
  };
  Value mask = expand(bounds ? bounds->some : program.grain.mask);
  Value first = toI32(lookup(program.query.getIndices()[2]));
  Value coords =
      isTransposed ? sample(first, firstColumn, 1) : sample(first, row, 0);
  Value exists = isBelow(coords, length, mask.getType());
  Value ones = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(cast<ShapedType>(mask.getType()), true));
  Value shown = limitShown(mapping, mask, positions, /*isLast=*/false);
  Value seen = arith::AndIOp::create(b, loc, shown, exists);
  if (bounds)
    mask = expand(bounds->each);
  shown = limitShown(mapping, mask, positions, /*isLast=*/true);
  Value hidden = arith::XOrIOp::create(b, loc, shown, ones);
  if (!isTransposed)
    hidden = arith::AndIOp::create(b, loc, hidden, exists);
  Value anySeen = anyOf(loop.getRegionIterArg(0), seen);
  Value anyHidden = anyOf(loop.getRegionIterArg(1), hidden);
  scf::YieldOp::create(b, loc, ValueRange{anySeen, anyHidden});

  b.setInsertionPointAfter(loop);
  scf::YieldOp::create(b, loc, loop.getResults());

  b.setInsertionPointAfter(outer);
  Value state =
      arith::SelectOp::create(b, loc, outer.getResult(1),
                              integer(statePartial, 8), integer(stateFull, 8));
  // The last group may have more blocks than there are.
  Value isBlock =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, block, blocks);
  Value isSeen = arith::AndIOp::create(b, loc, outer.getResult(0), isBlock);
  state = arith::SelectOp::create(b, loc, isSeen, state, integer(0, 8));
  memref::StoreOp::create(
      b, loc, state, states,
      ValueRange{grid.getNumber(0), grid.getNumber(1), tile, block});
  for (Block *body : {loop.getBody(), outer.getBody(), grid.getBody()})
    eraseDeadOps(b, body);
}

/// The state of a block, as i32.
Value MapBuilder::loadState(ValueRange place, Value block) {
  SmallVector<Value> indices(place);
  indices.push_back(block);
  Value state = memref::LoadOp::create(b, loc, states, indices);
  return arith::ExtUIOp::create(b, loc, b.getI32Type(), state);
}

/// How many partial, and full, blocks there are by the sum of their states.
std::array<Value, 2> MapBuilder::countStates(Value sum) {
  return {arith::AndIOp::create(b, loc, sum, integer(stateFull - 1, 32)),
          arith::ShRUIOp::create(b, loc, sum, integer(fullBit, 32))};
}

/// How many blocks are partial, and full, of those before part `part`,
/// and of all.
MapBuilder::Counts MapBuilder::countBlocks(ValueRange place, Value part,
                                           Value parts) {
  Value zero = integer(0, 32);
  auto loop = scf::ForOp::create(b, loc, index(0), parts, index(1),
                                 ValueRange{zero, zero, zero, zero});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value begin = arith::MulIOp::create(b, loc, number, index(blocksAtOnce));
  Value sum = loadState(place, begin);
  for (int64_t next = 1; next < blocksAtOnce; ++next) {
    Value block = arith::AddIOp::create(b, loc, begin, index(next));
    sum = arith::AddIOp::create(b, loc, sum, loadState(place, block));
  }
  Value isInFront =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, part);
  SmallVector<Value> inFront, all;
  for (auto [which, count] : llvm::enumerate(countStates(sum))) {
    Value counted = arith::SelectOp::create(b, loc, isInFront, count, zero);
    inFront.push_back(
        arith::AddIOp::create(b, loc, loop.getRegionIterArg(which), counted));
    all.push_back(
        arith::AddIOp::create(b, loc, loop.getRegionIterArg(2 + which), count));
  }
  llvm::append_range(inFront, all);
  scf::YieldOp::create(b, loc, inFront);
  return {{loop.getResult(0), loop.getResult(1)},
          {loop.getResult(2), loop.getResult(3)}};
}

/// Puts the blocks of the part that begins with block `begin` into the list,
/// partial and full ones each from a position on.
void MapBuilder::appendBlocks(ValueRange place, Value begin,
                              ValueRange positions) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::ForOp::create(b, loc, index(0), index(blocksAtOnce),
                                 index(1), positions);
  b.setInsertionPointToStart(loop.getBody());
  Value block = arith::AddIOp::create(b, loc, begin, loop.getInductionVar());
  Value state = loadState(place, block);
  auto is = [&](arith::CmpIPredicate predicate, int64_t other) {
    return arith::CmpIOp::create(b, loc, predicate, state, integer(other, 32));
  };
  Value isAny = is(arith::CmpIPredicate::ne, 0);
  auto branch = scf::IfOp::create(b, loc, isAny, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value position = arith::SelectOp::create(
        b, loc, is(arith::CmpIPredicate::eq, statePartial),
        loop.getRegionIterArg(0), loop.getRegionIterArg(1));
    SmallVector<Value> indices(place);
    indices.push_back(toIndex(position));
    memref::StoreOp::create(b, loc, toI32(block), lists, indices);
  }
  SmallVector<Value> next;
  for (auto [position, count] :
       llvm::zip_equal(loop.getRegionIterArgs(), countStates(state)))
    next.push_back(arith::AddIOp::create(b, loc, position, count));
  scf::YieldOp::create(b, loc, next);
}

void MapBuilder::buildLists() {
  OpBuilder::InsertionGuard guard(b);
  Value size = index(blocksAtOnce);
  // Where there is no block the list still has an end.
  Value parts = b.createOrFold<arith::MaxSIOp>(loc, groups, index(1));
  Value pairs = b.createOrFold<arith::MulIOp>(loc, tiles, parts);
  KernelOp grid = beginKernel("_block_lists", pairs);
  Value pair = grid.getNumber(2);
  Value tile = arith::DivUIOp::create(b, loc, pair, parts);
  Value part = arith::RemUIOp::create(b, loc, pair, parts);
  SmallVector<Value> place = {grid.getNumber(0), grid.getNumber(1), tile};
  Counts counted = countBlocks(place, part, groups);
  Value hasBlocks =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, part, groups);
  auto branch = scf::IfOp::create(b, loc, hasBlocks, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value begin = arith::MulIOp::create(b, loc, part, size);
    // Full ones stand behind all partial ones.
    Value firstFull =
        arith::AddIOp::create(b, loc, counted.all[0], counted.inFront[1]);
    appendBlocks(place, begin, {counted.inFront[0], firstFull});
  }
  // What all parts know alike, all write.
  SmallVector<Value> behind(place);
  behind.push_back(
      toIndex(arith::AddIOp::create(b, loc, counted.all[0], counted.all[1])));
  memref::StoreOp::create(b, loc, toI32(blocks), lists, behind);
  for (auto [number, count] : llvm::enumerate(counted.all)) {
    SmallVector<Value> indices(place);
    indices.push_back(index(int64_t(number)));
    memref::StoreOp::create(b, loc, count, counts, indices);
  }
}

BlockMap MapBuilder::build() {
  OpBuilder::InsertionGuard guard(b);
  KernelOp grid = program.grid;
  b.setInsertionPoint(grid);
  OperandRange sizes = grid.getGrid();
  Value zero = index(0), one = index(1);
  batches = program.usesBatch ? sizes[0] : one;
  heads = program.usesHead ? sizes[1] : one;
  tiles = sizes[2];
  blocks = program.loop.getUpperBound();
  Value size = index(blocksAtOnce);
  groups = b.createOrFold<arith::CeilDivSIOp>(loc, blocks, size);
  states =
      allocate(b.getI8Type(), b.createOrFold<arith::MulIOp>(loc, groups, size));
  counts = allocate(b.getI32Type(), index(2));
  lists =
      allocate(b.getI32Type(), b.createOrFold<arith::AddIOp>(loc, blocks, one));
  buildStates();
  buildLists();

  auto function = cast<func::FuncOp>(grid->getParentOp());
  b.setInsertionPoint(function.getBody().front().getTerminator());
  for (Value memory : {states, counts, lists})
    memref::DeallocOp::create(b, loc, memory);
  BlockMap map;
  map.counts = counts;
  map.lists = lists;
  map.batch = program.usesBatch ? grid.getNumber(0) : zero;
  map.head = program.usesHead ? grid.getNumber(1) : zero;
  map.tile = grid.getNumber(2);
  if (numRows == 1 && numColumns == 1 && program.grain.queryLimits.empty() &&
      !bounds)
    map.limits = program.grain.keyLimits;
  return map;
}

FailureOr<BlockMap> attn::tile::buildBlockMap(RewriterBase &rewriter,
                                              KernelOp grid, scf::ForOp loop,
                                              ScoresOp scores,
                                              std::string &reason) {
  FailureOr<MaskProgram> program = readMaskProgram(grid, loop, scores, reason);
  if (failed(program))
    return failure();
  MaskGrain &grain = program->grain;
  if (grain.rows * grain.columns >= enoughAlike)
    return MapBuilder(rewriter, *program, nullptr).build();
  MaskCell block = {program->numRows, program->numColumns};
  if (program->isTransposed())
    std::swap(block.queries, block.keys);
  CellBounds bounds(rewriter, scores, block);
  if (!bounds)
    return MapBuilder(rewriter, *program, nullptr).build();
  // The whole mask, of which only the end of the keys stands apart.
  grain = {};
  if (Value below = scores.getBelow())
    grain.keyLimits.push_back(below);
  grain.rows = bounds.cell.queries;
  grain.columns = bounds.cell.keys;
  if (program->isTransposed())
    std::swap(grain.rows, grain.columns);
  return MapBuilder(rewriter, *program, &bounds).build();
}
