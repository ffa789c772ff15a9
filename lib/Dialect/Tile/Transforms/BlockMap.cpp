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
// and looks at the mask: group by group where rows and columns are alike
// (MaskGrain.h), by bounds where its code has them (CellBounds.h), and else by
// what its data, of all rows and all columns of the block, say together, and
// pair by pair where that leaves open whether pairs are shown or hidden. Where
// groups, or parts with bounds, are few (a map of blocks) it has one for many
// pairs, of which each lane looks at some. In the second one each block
// puts a few blocks of the loop into the list of a tile, after those before,
// which it counts. Lists in the order of blocks, and not of arrival: two
// launches agree in every bit.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/BlockMap.h"

#include "BlockStates.h"
#include "CellBounds.h"
#include "DeadOps.h"
#include "MaskProgram.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include <array>

using namespace mlir;
using namespace attn::tile;

/// Pairs that are alike, of which to evaluate one is as good as bounds.
static constexpr int64_t enoughAlike = 64;
/// Blocks that one block of the second grid puts into a list; rows of states
/// are as long as whole groups of them.
static constexpr int64_t blocksAtOnce = 16;
/// Groups of a pair that one lane looks at.
static constexpr int64_t fewGroups = 8;
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
             const CellBounds *bounds, const CellBounds *dataBounds)
      : b(rewriter), loc(program.loop.getLoc()), program(program),
        bounds(bounds), dataBounds(dataBounds) {}

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
  SeenAndHidden look(const IRMapping &mapping, Value length);
  MaskGrain findCells(const CellBounds &bounds) const;
  MaskGrain findGroups() const;
  bool hasFewGroups() const;
  bool followsFromNumbers(Value &reversed) const;
  IRMapping cloneProgram(KernelOp grid, Value tile, Value block);
  Value choose(SeenAndHidden found, Value isBlock);
  void buildStates();
  void buildStatesAtOnce(Value reversed);
  void buildLists();
  Value loadState(ValueRange place, Value block);
  std::array<Value, 2> countStates(Value sum);
  Counts countBlocks(ValueRange place, Value part, Value parts);
  void appendBlocks(ValueRange place, Value begin, ValueRange positions);

  RewriterBase &b;
  Location loc;
  MaskProgram &program;
  /// Of the mask, which say all; or of a block, with what data say, which are
  /// asked first; or null.
  const CellBounds *bounds, *dataBounds;
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

/// Whether a block shows some pair, and whether it hides one.
SeenAndHidden MapBuilder::look(const IRMapping &mapping, Value length) {
  auto lookByBounds = [&](const CellBounds &bounds, ValueRange ends) {
    return BlockStates(b, program, findCells(bounds), &bounds, mapping, length)
        .build(ends);
  };
  if (bounds)
    return lookByBounds(*bounds, {});
  if (!dataBounds)
    return BlockStates(b, program, program.grain, nullptr, mapping, length)
        .build({});
  SmallVector<Value> ends =
      BlockStates(b, program, {}, nullptr, mapping, length)
          .buildEnds(dataBounds->data);
  SeenAndHidden rough = lookByBounds(*dataBounds, ends);
  // Pair by pair only where that leaves it open.
  Value isOpen = arith::AndIOp::create(b, loc, rough[0], rough[1]);
  auto branch = scf::IfOp::create(b, loc, SmallVector<Type>(2, b.getI1Type()),
                                  isOpen, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  SeenAndHidden exact =
      BlockStates(b, program, program.grain, nullptr, mapping, length)
          .build(ends);
  scf::YieldOp::create(b, loc, exact);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, rough);
  return {branch.getResult(0), branch.getResult(1)};
}

bool MapBuilder::hasFewGroups() const {
  MaskGrain grain = findGroups();
  int64_t rows = program.rows().count / grain.rows;
  int64_t columns = program.columns().count / grain.columns;
  return rows * columns <= fewGroups;
}

/// Cells of bounds as groups: the whole mask, of which only the end of the keys
/// stands apart.
MaskGrain MapBuilder::findCells(const CellBounds &bounds) const {
  MaskGrain cells;
  if (Value below = program.scores.getBelow())
    cells.keyLimits.push_back(below);
  cells.rows = bounds.cell.queries;
  cells.columns = bounds.cell.keys;
  if (program.isTransposed())
    std::swap(cells.rows, cells.columns);
  return cells;
}

/// What is looked at once.
MaskGrain MapBuilder::findGroups() const {
  return bounds ? findCells(*bounds) : program.grain;
}

/// Whether a position is `number`, or `reversed` minus that, times `count`. The
/// first position says what `reversed` is.
static bool isPlace(Value position, Value number, int64_t count,
                    std::optional<Value> &reversed) {
  while (auto cast = position.getDefiningOp<arith::IndexCastOp>())
    position = cast.getIn();
  auto product = position.getDefiningOp<arith::MulIOp>();
  if (!product || getConstantIntValue(product.getRhs()) != count)
    return false;
  Value from;
  if (auto difference = product.getLhs().getDefiningOp<arith::SubIOp>();
      difference && difference.getRhs() == number)
    from = difference.getLhs();
  else if (product.getLhs() != number)
    return false;
  if (reversed && *reversed != from)
    return false;
  reversed = from;
  return true;
}

/// Whether positions are all that depends on which tile and block it is.
/// `reversed`: what the numbers of tiles are taken from, or null.
bool MapBuilder::followsFromNumbers(Value &reversed) const {
  Value tile = program.grid.getNumber(2),
        block = program.loop.getInductionVar();
  const MaskPositions &rows = program.rows(), &columns = program.columns();
  std::optional<Value> ofTiles, ofBlocks;
  auto isQuery = [&](std::optional<Value> &reversed, Value number) {
    return isPlace(program.query.getIndices()[2], number, program.queries.count,
                   reversed);
  };
  if (!isPlace(rows.base, tile, rows.count, ofTiles) ||
      !isPlace(columns.base, block, columns.count, ofBlocks) || *ofBlocks ||
      !(program.isTransposed() ? isQuery(ofBlocks, block)
                               : isQuery(ofTiles, tile)))
    return false;
  reversed = *ofTiles;
  if (reversed &&
      program.grid->isAncestor(reversed.getParentRegion()->getParentOp()))
    return false;
  llvm::SmallDenseSet<Value> places = {tile, block};
  for (Operation *op : program.ops) {
    if (llvm::none_of(op->getOperands(),
                      [&](Value operand) { return places.contains(operand); }))
      continue;
    if (!isa<arith::MulIOp, arith::SubIOp, arith::IndexCastOp>(op))
      return false;
    places.insert(op->getResult(0));
  }
  bool asks = false;
  auto ask = [&](ValueRange values) {
    asks |= llvm::any_of(values, [&](Value v) { return places.contains(v); });
  };
  ScoresOp scores = program.scores;
  ask({scores->getOperand(1), scores->getOperand(2)});
  if (Value below = scores.getBelow())
    ask(below);
  ask(program.grain.keyLimits);
  ask(program.grain.queryLimits);
  scores.getMask().walk([&](Operation *op) { ask(op->getOperands()); });
  return !asks;
}

/// The state of a block, or those of several.
Value MapBuilder::choose(SeenAndHidden found, Value isBlock) {
  auto constant = [&](int64_t state) -> Value {
    auto type = dyn_cast<VectorType>(found[0].getType());
    if (!type)
      return integer(state, 8);
    type = VectorType::get(type.getShape(), b.getI8Type());
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getI8IntegerAttr(state)));
  };
  Value state = arith::SelectOp::create(
      b, loc, found[1], constant(statePartial), constant(stateFull));
  Value isSeen = arith::AndIOp::create(b, loc, found[0], isBlock);
  return arith::SelectOp::create(b, loc, isSeen, state, constant(0));
}

/// The scalars that the mask asks for, in `grid`, for a tile and a block.
IRMapping MapBuilder::cloneProgram(KernelOp grid, Value tile, Value block) {
  IRMapping mapping;
  // The first part of a batch entry.
  Value batch = b.createOrFold<arith::MulIOp>(loc, grid.getNumber(0),
                                              index(program.parts));
  mapping.map(program.grid.getNumbers(),
              ValueRange{batch, grid.getNumber(1), tile});
  mapping.map(program.loop.getInductionVar(), block);
  for (Operation *op : program.ops)
    b.clone(*op, mapping);
  return mapping;
}

/// A warp takes 16 tiles, those behind the last one as that one, and as many
/// blocks as stand in a group.
void MapBuilder::buildStatesAtOnce(Value reversed) {
  OpBuilder::InsertionGuard guard(b);
  constexpr int64_t tilesAtOnce = 16;
  const int64_t shape[] = {tilesAtOnce, blocksAtOnce};
  Value length = toI32(
      b.createOrFold<memref::DimOp>(loc, program.query.getView(), int64_t(2)));
  Value last = arith::SubIOp::create(b, loc, toI32(tiles), integer(1, 32));
  Value numBlocks = toI32(blocks);
  if (reversed)
    reversed = toI32(reversed);
  Value parts =
      b.createOrFold<arith::CeilDivSIOp>(loc, tiles, index(tilesAtOnce));
  KernelOp grid = beginKernel(
      "_block_states", b.createOrFold<arith::MulIOp>(loc, parts, groups));
  Value number = grid.getNumber(2);
  auto times = [&](Value number, int64_t factor) -> Value {
    return arith::MulIOp::create(b, loc, number, index(factor));
  };
  Value firstTile =
      times(arith::DivUIOp::create(b, loc, number, groups), tilesAtOnce);
  Value firstBlock =
      times(arith::RemUIOp::create(b, loc, number, groups), blocksAtOnce);
  // Which tile and block nobody asks of what is cloned here.
  IRMapping mapping = cloneProgram(grid, firstTile, firstBlock);
  auto count = [&](Value first, int64_t axis) -> Value {
    SmallVector<int64_t> sizes(2, 1);
    sizes[axis] = shape[axis];
    auto type = VectorType::get(sizes, b.getI32Type());
    return CoordsOp::create(b, loc, type, toI32(first), axis);
  };
  auto stretch = [&](Value value, Type type) -> Value {
    return vector::BroadcastOp::create(b, loc, type, value);
  };
  Value rows = count(firstTile, 0), columns = count(firstBlock, 1);
  rows = arith::MinSIOp::create(b, loc, rows, stretch(last, rows.getType()));
  SeenAndHidden found =
      BlockStates(b, program, findGroups(), bounds, mapping, length)
          .buildMany(grid.getTerminator(), rows, columns, reversed, shape);
  Value isBlock =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, columns,
                            stretch(numBlocks, columns.getType()));
  isBlock = stretch(isBlock, found[0].getType());
  StoreOp::create(
      b, loc, choose(found, isBlock), states,
      ValueRange{grid.getNumber(0), grid.getNumber(1), firstTile, firstBlock});
  grid->walk([&](Block *block) { eraseDeadOps(b, block); });
}

void MapBuilder::buildStates() {
  if (Value reversed;
      !dataBounds && hasFewGroups() && followsFromNumbers(reversed))
    return buildStatesAtOnce(reversed);
  OpBuilder::InsertionGuard guard(b);
  Value size = index(blocksAtOnce);
  Value width = b.createOrFold<arith::MulIOp>(loc, groups, size);
  Value pairs = b.createOrFold<arith::MulIOp>(loc, tiles, width);
  Value length = toI32(
      b.createOrFold<memref::DimOp>(loc, program.query.getView(), int64_t(2)));
  KernelOp grid = beginKernel("_block_states", pairs);
  Value pair = grid.getNumber(2);
  Value tile = arith::DivUIOp::create(b, loc, pair, width);
  Value block = arith::RemUIOp::create(b, loc, pair, width);
  SeenAndHidden found = look(cloneProgram(grid, tile, block), length);
  // The last group may have more blocks than there are.
  Value isBlock =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, block, blocks);
  memref::StoreOp::create(
      b, loc, choose(found, isBlock), states,
      ValueRange{grid.getNumber(0), grid.getNumber(1), tile, block});
  grid->walk([&](Block *block) { eraseDeadOps(b, block); });
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
  // Of a launch, which computes floored quotients.
  batches = program.usesBatch ? b.createOrFold<arith::FloorDivSIOp>(
                                    loc, sizes[0], index(program.parts))
                              : one;
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
  map.parts = program.parts;
  map.head = program.usesHead ? grid.getNumber(1) : zero;
  map.tile = grid.getNumber(2);
  const MaskGrain &grain = program.grain;
  bool isOneGroup = program.rows().count == grain.rows &&
                    program.columns().count == grain.columns && !bounds;
  if (isOneGroup && grain.queryLimits.empty())
    map.limits = grain.keyLimits;
  return map;
}

SmallVector<Value> BlockMap::indicesOf(OpBuilder &builder, Value last) const {
  Location loc = last.getLoc();
  Value count = arith::ConstantIndexOp::create(builder, loc, parts);
  Value entry = builder.createOrFold<arith::DivUIOp>(loc, batch, count);
  return {entry, head, tile, last};
}

FailureOr<BlockMap> attn::tile::buildBlockMap(RewriterBase &rewriter,
                                              KernelOp grid, scf::ForOp loop,
                                              ScoresOp scores,
                                              std::string &reason) {
  FailureOr<MaskProgram> program = readMaskProgram(grid, loop, scores, reason);
  if (failed(program))
    return failure();
  const MaskGrain &grain = program->grain;
  auto build = [&](const CellBounds *bounds, const CellBounds *dataBounds) {
    return MapBuilder(rewriter, *program, bounds, dataBounds).build();
  };
  if (grain.rows * grain.columns >= enoughAlike)
    return build(nullptr, nullptr);
  MaskCell block = {program->rows().count, program->columns().count};
  if (program->isTransposed())
    std::swap(block.queries, block.keys);
  if (!hasLooseRanges(rewriter, scores, block, program->isTransposed())) {
    CellBounds bounds(rewriter, scores, block);
    if (bounds)
      return build(&bounds, nullptr);
  }
  CellBounds dataBounds(rewriter, scores, block, /*withData=*/true);
  return build(nullptr, dataBounds ? &dataBounds : nullptr);
}
