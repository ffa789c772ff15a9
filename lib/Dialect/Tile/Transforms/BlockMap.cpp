//===- BlockMap.cpp - which key blocks a mask leaves, found at run time ---===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first grid has a block for each pair of a query and a key block, and
// evaluates the mask a few rows at a time, so that one warp can hold them; of
// rows and of columns that are alike (MaskGrain.h) one of each group. In the
// second one each block puts a few key blocks into the list of a query block,
// after those before, which it counts. Lists in the order of key blocks, and
// not of arrival: two launches agree in every bit.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/BlockMap.h"

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
/// As few columns as they can hold.
static constexpr int64_t leastColumns = 8;
/// Key blocks that one block of the second grid puts into a list; rows of
/// states are as long as whole groups of them.
static constexpr int64_t blocksAtOnce = 16;
static constexpr int64_t statePartial = 1, stateFull = 2;

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {
class MapBuilder {
public:
  MapBuilder(RewriterBase &rewriter, MaskProgram &program)
      : b(rewriter), loc(program.loop.getLoc()), program(program),
        numRows(program.numRows / program.grain.rows),
        numColumns(program.numColumns / program.grain.columns),
        rows(isSampled() || numRows % rowsAtOnce == 0 ? rowsAtOnce : numRows),
        columns(isSampled() ? std::max(numColumns, leastColumns) : numColumns) {
  }

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
  Value limitColumns(IRMapping &mapping, Value mask, Value keys, int64_t shift);
  Value anyOf(Value acc, Value vector);
  void buildStates();
  void buildLists();
  SmallVector<Value> loadStates(ValueRange place, Value begin);
  Value countState(ArrayRef<Value> found, int64_t state);
  void enterIfAny(Value count);
  Counts countBlocks(ValueRange place, Value part, Value parts);
  void appendBlocks(ValueRange place, ArrayRef<Value> found, int64_t state,
                    Value begin, Value position);

  RewriterBase &b;
  Location loc;
  MaskProgram &program;
  int64_t numRows, numColumns; // of groups that are alike
  int64_t rows, columns;       // at once
  Value batches, heads, queryBlocks, keyBlocks;
  Value groups; // of key blocks, as many as states are read at once
  Value states, counts, lists;
};
} // namespace

/// memref<batches x heads x query blocks x last>.
Value MapBuilder::allocate(Type element, Value last) {
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  for (Value size : {batches, heads, queryBlocks, last}) {
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

/// Those of `mask` whose key, `shift` after the first one of its group, is in
/// front of all limits.
Value MapBuilder::limitColumns(IRMapping &mapping, Value mask, Value keys,
                               int64_t shift) {
  for (Value limit : program.grain.limits) {
    Value bound = b.createOrFold<arith::SubIOp>(
        loc, mapping.lookupOrDefault(limit), integer(shift, 32));
    bound = vector::BroadcastOp::create(b, loc, keys.getType(), bound);
    Value isInside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, keys, bound);
    isInside = vector::BroadcastOp::create(b, loc, mask.getType(), isInside);
    mask = arith::AndIOp::create(b, loc, mask, isInside);
  }
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
  Value size = index(blocksAtOnce);
  Value width = b.createOrFold<arith::MulIOp>(loc, groups, size);
  Value pairs = b.createOrFold<arith::MulIOp>(loc, queryBlocks, width);
  Value length = toI32(
      b.createOrFold<memref::DimOp>(loc, program.query.getView(), int64_t(2)));
  KernelOp grid = beginKernel("_block_states", pairs);
  Value pair = grid.getNumber(2);
  Value query = arith::DivUIOp::create(b, loc, pair, width);
  Value key = arith::RemUIOp::create(b, loc, pair, width);
  IRMapping mapping;
  mapping.map(program.grid.getNumbers(),
              ValueRange{grid.getNumber(0), grid.getNumber(1), query});
  mapping.map(program.loop.getInductionVar(), key);
  for (Operation *op : program.ops)
    b.clone(*op, mapping);
  auto lookup = [&](Value value) { return mapping.lookupOrDefault(value); };
  Value keys = sample(lookup(program.keys.getBase()), integer(0, 32), 1);
  Value never = integer(0, 1);
  auto loop = scf::ForOp::create(b, loc, index(0), index(numRows), index(rows),
                                 ValueRange{never, never});
  b.setInsertionPointToStart(loop.getBody());
  Value row = toI32(loop.getInductionVar());
  ScoresOp scores = program.scores;
  Value mask = expandScalarCode(
      b, loop, scores.getMask(),
      {lookup(scores.getBatch()), lookup(scores.getHead()),
       sample(lookup(program.queries.getBase()), row, 0), keys},
      {rows, columns}, program.grain.mask, mapping);
  Value first = toI32(lookup(program.query.getIndices()[2]));
  Value coords = sample(first, row, 0);
  Value limit = vector::BroadcastOp::create(b, loc, coords.getType(), length);
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, coords, limit);
  exists = vector::BroadcastOp::create(b, loc, mask.getType(), exists);
  Value ones = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(cast<ShapedType>(mask.getType()), true));
  Value shown = limitColumns(mapping, mask, keys, 0);
  Value seen = arith::AndIOp::create(b, loc, shown, exists);
  shown = limitColumns(mapping, mask, keys, program.grain.columns - 1);
  Value hidden = arith::XOrIOp::create(b, loc, shown, ones);
  hidden = arith::AndIOp::create(b, loc, hidden, exists);
  Value anySeen = anyOf(loop.getRegionIterArg(0), seen);
  Value anyHidden = anyOf(loop.getRegionIterArg(1), hidden);
  scf::YieldOp::create(b, loc, ValueRange{anySeen, anyHidden});

  b.setInsertionPointAfter(loop);
  Value state =
      arith::SelectOp::create(b, loc, loop.getResult(1),
                              integer(statePartial, 8), integer(stateFull, 8));
  // The last group may have more blocks than there are.
  Value isBlock =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, key, keyBlocks);
  Value isSeen = arith::AndIOp::create(b, loc, loop.getResult(0), isBlock);
  state = arith::SelectOp::create(b, loc, isSeen, state, integer(0, 8));
  memref::StoreOp::create(
      b, loc, state, states,
      ValueRange{grid.getNumber(0), grid.getNumber(1), query, key});
  for (Block *block : {loop.getBody(), grid.getBody()})
    eraseDeadOps(b, block);
}

/// The states of `blocksAtOnce` key blocks from `begin` on.
SmallVector<Value> MapBuilder::loadStates(ValueRange place, Value begin) {
  SmallVector<Value> found;
  for (int64_t number = 0; number < blocksAtOnce; ++number) {
    SmallVector<Value> indices(place);
    indices.push_back(arith::AddIOp::create(b, loc, begin, index(number)));
    found.push_back(memref::LoadOp::create(b, loc, states, indices));
  }
  return found;
}

/// How many of `found` are `state`.
Value MapBuilder::countState(ArrayRef<Value> found, int64_t state) {
  Value sum;
  for (Value one : found) {
    Value matches = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, one,
                                          integer(state, 8));
    Value count = arith::ExtUIOp::create(b, loc, b.getI32Type(), matches);
    sum = sum ? arith::AddIOp::create(b, loc, sum, count) : count;
  }
  return sum;
}

/// How many key blocks are partial, and full, of those before part `part`,
/// and of all.
MapBuilder::Counts MapBuilder::countBlocks(ValueRange place, Value part,
                                           Value parts) {
  Value zero = integer(0, 32);
  auto loop = scf::ForOp::create(b, loc, index(0), parts, index(1),
                                 ValueRange{zero, zero, zero, zero});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  SmallVector<Value> found = loadStates(
      place, arith::MulIOp::create(b, loc, number, index(blocksAtOnce)));
  Value isInFront =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, part);
  SmallVector<Value> inFront, all;
  for (auto [which, state] :
       llvm::enumerate(std::array{statePartial, stateFull})) {
    Value sum = countState(found, state);
    Value counted = arith::SelectOp::create(b, loc, isInFront, sum, zero);
    inFront.push_back(
        arith::AddIOp::create(b, loc, loop.getRegionIterArg(which), counted));
    all.push_back(
        arith::AddIOp::create(b, loc, loop.getRegionIterArg(2 + which), sum));
  }
  llvm::append_range(inFront, all);
  scf::YieldOp::create(b, loc, inFront);
  return {{loop.getResult(0), loop.getResult(1)},
          {loop.getResult(2), loop.getResult(3)}};
}

/// Enters a branch that is taken where `count` is not 0.
void MapBuilder::enterIfAny(Value count) {
  Value isAny = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, count,
                                      integer(0, 32));
  auto branch = scf::IfOp::create(b, loc, isAny, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
}

/// Puts the key blocks from `begin` on whose state is `state` into the list,
/// from `position` on.
void MapBuilder::appendBlocks(ValueRange place, ArrayRef<Value> found,
                              int64_t state, Value begin, Value position) {
  OpBuilder::InsertionGuard guard(b);
  enterIfAny(countState(found, state));
  for (auto [number, one] : llvm::enumerate(found)) {
    Value count = countState(one, state);
    {
      OpBuilder::InsertionGuard inner(b);
      enterIfAny(count);
      Value block =
          arith::AddIOp::create(b, loc, begin, index(int64_t(number)));
      SmallVector<Value> indices(place);
      indices.push_back(toIndex(position));
      memref::StoreOp::create(b, loc, toI32(block), lists, indices);
    }
    position = arith::AddIOp::create(b, loc, position, count);
  }
}

void MapBuilder::buildLists() {
  OpBuilder::InsertionGuard guard(b);
  Value size = index(blocksAtOnce);
  // Where there is no key the list still has an end.
  Value parts = b.createOrFold<arith::MaxSIOp>(loc, groups, index(1));
  Value pairs = b.createOrFold<arith::MulIOp>(loc, queryBlocks, parts);
  KernelOp grid = beginKernel("_block_lists", pairs);
  Value pair = grid.getNumber(2);
  Value query = arith::DivUIOp::create(b, loc, pair, parts);
  Value part = arith::RemUIOp::create(b, loc, pair, parts);
  SmallVector<Value> place = {grid.getNumber(0), grid.getNumber(1), query};
  Counts counted = countBlocks(place, part, groups);
  Value hasBlocks =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, part, groups);
  auto branch = scf::IfOp::create(b, loc, hasBlocks, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value begin = arith::MulIOp::create(b, loc, part, size);
    SmallVector<Value> found = loadStates(place, begin);
    appendBlocks(place, found, statePartial, begin, counted.inFront[0]);
    appendBlocks(
        place, found, stateFull, begin,
        arith::AddIOp::create(b, loc, counted.all[0], counted.inFront[1]));
  }
  // What all parts know alike, all write.
  SmallVector<Value> behind(place);
  behind.push_back(
      toIndex(arith::AddIOp::create(b, loc, counted.all[0], counted.all[1])));
  memref::StoreOp::create(b, loc, toI32(keyBlocks), lists, behind);
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
  queryBlocks = sizes[2];
  keyBlocks = program.loop.getUpperBound();
  Value size = index(blocksAtOnce);
  groups = b.createOrFold<arith::CeilDivSIOp>(loc, keyBlocks, size);
  states =
      allocate(b.getI8Type(), b.createOrFold<arith::MulIOp>(loc, groups, size));
  counts = allocate(b.getI32Type(), index(2));
  lists = allocate(b.getI32Type(),
                   b.createOrFold<arith::AddIOp>(loc, keyBlocks, one));
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
  map.query = grid.getNumber(2);
  if (numRows == 1 && numColumns == 1)
    map.limits = program.grain.limits;
  return map;
}

FailureOr<BlockMap> attn::tile::buildBlockMap(RewriterBase &rewriter,
                                              KernelOp grid, scf::ForOp loop,
                                              ScoresOp scores,
                                              std::string &reason) {
  FailureOr<MaskProgram> program = readMaskProgram(grid, loop, scores, reason);
  if (failed(program))
    return failure();
  return MapBuilder(rewriter, *program).build();
}
