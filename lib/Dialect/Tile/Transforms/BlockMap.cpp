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
// evaluates the mask a few rows at a time, so that one warp can hold them. The
// second one has a block for each query block, which makes the list. Lists in
// the order of key blocks, and not of arrival: two launches agree in every bit.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Transforms/BlockMap.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn::tile;

/// As many rows as the lanes of one warp take at once.
static constexpr int64_t rowsAtOnce = 16;
static constexpr int64_t statePartial = 1, stateFull = 2;

//===----------------------------------------------------------------------===//
// The mask
//===----------------------------------------------------------------------===//

namespace {
/// A mask with everything it is computed from inside the grid.
struct MaskProgram {
  scf::ForallOp grid;
  scf::ForOp loop;
  Value mask;
  int64_t numRows = 0, numColumns = 0;
  /// The tile of queries: its view and its first row.
  LoadOp query;
  /// In order; vector constants in front of the grid included.
  llvm::SetVector<Operation *> ops;
  bool usesBatch = false, usesHead = false;
};

class MaskReader {
public:
  MaskReader(MaskProgram &program, std::string &reason)
      : program(program), reason(reason) {}

  LogicalResult run();

private:
  LogicalResult fail(const Twine &why) {
    reason = why.str();
    return failure();
  }
  LogicalResult visit(Value value);
  LogicalResult visit(Operation *op);
  LogicalResult findQuery();

  MaskProgram &program;
  std::string &reason;
};
} // namespace

/// Nothing, or only reads of memory.
static bool onlyReads(Operation *op) {
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>()) {
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        if (!onlyReads(&inner))
          return false;
    return true;
  }
  return isMemoryEffectFree(op) || hasSingleEffect<MemoryEffects::Read>(op);
}

LogicalResult MaskReader::visit(Operation *op) {
  if (program.ops.contains(op))
    return success();
  if (!onlyReads(op) || isa<LoadOp>(op))
    return fail("the mask depends on '" + op->getName().getStringRef() + "'");
  for (Value operand : op->getOperands())
    if (failed(visit(operand)))
      return failure();
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (failed(visit(value)))
      return failure();
  for (Type type : op->getResultTypes()) {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector)
      continue;
    bool fits = vector.getRank() == 2 &&
                llvm::is_contained({int64_t(1), program.numRows},
                                   vector.getDimSize(0)) &&
                llvm::is_contained({int64_t(1), program.numColumns},
                                   vector.getDimSize(1));
    if (!fits)
      return fail("the mask is computed from other vectors than its rows and "
                  "columns");
  }
  program.ops.insert(op);
  return success();
}

LogicalResult MaskReader::visit(Value value) {
  scf::ForallOp grid = program.grid;
  if (value == program.loop.getInductionVar())
    return success();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == grid.getBody()) {
      program.usesBatch |= argument.getArgNumber() == 0;
      program.usesHead |= argument.getArgNumber() == 1;
      return success();
    }
    if (grid->isAncestor(argument.getOwner()->getParentOp()))
      return fail("the mask depends on a value that a loop carries");
    return success();
  }
  Operation *op = value.getDefiningOp();
  bool isInside = grid->isAncestor(op);
  if (!isInside && !isa<VectorType>(value.getType()))
    return success();
  return visit(op);
}

/// The tile whose first row the grid computes and that is loaded once.
LogicalResult MaskReader::findQuery() {
  for (auto load : program.grid.getBody()->getOps<LoadOp>()) {
    auto type = cast<VectorType>(load.getResult().getType());
    if (type.getDimSize(0) == program.numRows &&
        load.getIndices().size() == 4) {
      program.query = load;
      return visit(load.getIndices()[2]);
    }
  }
  return fail("the kernel loads no tile of queries in front of its loop");
}

LogicalResult MaskReader::run() {
  scf::ForallOp grid = program.grid;
  scf::ForOp loop = program.loop;
  auto type = dyn_cast<VectorType>(program.mask.getType());
  if (!type || type.getRank() != 2)
    return fail("the mask is no matrix");
  program.numRows = type.getDimSize(0);
  program.numColumns = type.getDimSize(1);
  if (grid.getRank() != 3 || !grid.isNormalized() || grid.getNumResults() != 0)
    return fail("the grid is not (batch, head, query block)");
  if (!isa<func::FuncOp>(grid->getParentOp()))
    return fail("the grid does not stand in a function");
  if (!isZeroInteger(loop.getLowerBound()) || !isOneInteger(loop.getStep()) ||
      !grid->isAncestor(loop) ||
      grid->isAncestor(loop.getUpperBound().getParentRegion()->getParentOp()))
    return fail("the loop does not run over all key blocks");
  // Reading the first row must not make the map depend on batch and head.
  if (failed(findQuery()) || failed(visit(program.mask)))
    return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {
class MapBuilder {
public:
  MapBuilder(RewriterBase &rewriter, MaskProgram &program)
      : b(rewriter), loc(program.loop.getLoc()), program(program),
        rows(program.numRows % rowsAtOnce == 0 ? rowsAtOnce : program.numRows) {
  }

  BlockMap build();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value integer(int64_t value, unsigned bits) {
    return arith::ConstantIntOp::create(b, loc, value, bits);
  }
  Value toI32(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  }
  Value allocate(Type element, Value last);
  scf::ForallOp beginGrid(Value x);
  VectorType retyped(Type type);
  Value cloneMask(IRMapping &mapping, Value row);
  Value anyOf(Value acc, Value vector);
  void buildStates();
  void buildLists();
  Value appendBlocks(ValueRange place, int64_t state, Value count);

  RewriterBase &b;
  Location loc;
  MaskProgram &program;
  int64_t rows; // at once
  Value batches, heads, queryBlocks, keyBlocks;
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

/// A grid (batch, head, x); the builder then stands in it.
scf::ForallOp MapBuilder::beginGrid(Value x) {
  auto grid = scf::ForallOp::create(
      b, loc, SmallVector<OpFoldResult>{batches, heads, x},
      /*outputs=*/ValueRange{}, /*mapping=*/std::nullopt);
  b.setInsertionPoint(grid.getTerminator());
  return grid;
}

/// The type with as many rows as are evaluated at once.
VectorType MapBuilder::retyped(Type type) {
  auto vector = cast<VectorType>(type);
  int64_t count = vector.getDimSize(0) == 1 ? 1 : rows;
  return VectorType::get({count, vector.getDimSize(1)},
                         vector.getElementType());
}

/// The mask of `rows` rows from `row`, an i32 relative to the query block's
/// first one.
Value MapBuilder::cloneMask(IRMapping &mapping, Value row) {
  for (Operation *op : program.ops) {
    Operation *copy = b.clone(*op, mapping);
    for (Value result : copy->getResults())
      if (isa<VectorType>(result.getType()))
        result.setType(retyped(result.getType()));
    if (auto constant = dyn_cast<arith::ConstantOp>(copy)) {
      if (auto splat = dyn_cast<DenseElementsAttr>(constant.getValue()))
        constant.setValueAttr(
            splat.resizeSplat(cast<ShapedType>(constant.getType())));
      continue;
    }
    auto coords = dyn_cast<CoordsOp>(copy);
    if (!coords || coords.getAxis() != 0)
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(coords);
    coords.getBaseMutable().assign(
        arith::AddIOp::create(b, loc, coords.getBase(), row));
  }
  return mapping.lookup(program.mask);
}

/// acc, or any element.
Value MapBuilder::anyOf(Value acc, Value vector) {
  return vector::MultiDimReductionOp::create(b, loc, vector, acc,
                                             ArrayRef<bool>{true, true},
                                             vector::CombiningKind::OR);
}

void MapBuilder::buildStates() {
  OpBuilder::InsertionGuard guard(b);
  Value pairs = b.createOrFold<arith::MulIOp>(loc, queryBlocks, keyBlocks);
  Value length = toI32(
      b.createOrFold<memref::DimOp>(loc, program.query.getView(), int64_t(2)));
  scf::ForallOp grid = beginGrid(pairs);
  Value pair = grid.getInductionVar(2);
  Value query = arith::DivUIOp::create(b, loc, pair, keyBlocks);
  Value key = arith::RemUIOp::create(b, loc, pair, keyBlocks);
  Value never = integer(0, 1);
  auto loop = scf::ForOp::create(b, loc, index(0), index(program.numRows),
                                 index(rows), ValueRange{never, never});
  b.setInsertionPointToStart(loop.getBody());

  IRMapping mapping;
  mapping.map(
      program.grid.getInductionVars(),
      ValueRange{grid.getInductionVar(0), grid.getInductionVar(1), query});
  mapping.map(program.loop.getInductionVar(), key);
  Value row = toI32(loop.getInductionVar());
  Value mask = cloneMask(mapping, row);
  Value first = toI32(mapping.lookupOrDefault(program.query.getIndices()[2]));
  Value coords =
      CoordsOp::create(b, loc, VectorType::get({rows, 1}, b.getI32Type()),
                       arith::AddIOp::create(b, loc, first, row), 0);
  Value limit = vector::BroadcastOp::create(b, loc, coords.getType(), length);
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, coords, limit);
  exists = vector::BroadcastOp::create(b, loc, mask.getType(), exists);
  Value ones = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(cast<ShapedType>(mask.getType()), true));
  Value seen = arith::AndIOp::create(b, loc, mask, exists);
  Value hidden = arith::XOrIOp::create(b, loc, mask, ones);
  hidden = arith::AndIOp::create(b, loc, hidden, exists);
  Value anySeen = anyOf(loop.getRegionIterArg(0), seen);
  Value anyHidden = anyOf(loop.getRegionIterArg(1), hidden);
  scf::YieldOp::create(b, loc, ValueRange{anySeen, anyHidden});

  b.setInsertionPointAfter(loop);
  Value state =
      arith::SelectOp::create(b, loc, loop.getResult(1),
                              integer(statePartial, 8), integer(stateFull, 8));
  state =
      arith::SelectOp::create(b, loc, loop.getResult(0), state, integer(0, 8));
  memref::StoreOp::create(
      b, loc, state, states,
      ValueRange{grid.getInductionVar(0), grid.getInductionVar(1), query, key});
}

/// Puts the blocks with `state` behind the first `count` of the list; gives the
/// new count.
Value MapBuilder::appendBlocks(ValueRange place, int64_t state, Value count) {
  auto loop = scf::ForOp::create(b, loc, index(0), keyBlocks, index(1), count);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value block = loop.getInductionVar(), position = loop.getRegionIterArg(0);
  auto at = [&](Value last) {
    SmallVector<Value> indices(place);
    indices.push_back(last);
    return indices;
  };
  Value found = memref::LoadOp::create(b, loc, states, at(block));
  Value matches = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, found,
                                        integer(state, 8));
  auto branch = scf::IfOp::create(
      b, loc, matches,
      [&](OpBuilder &, Location) {
        memref::StoreOp::create(b, loc, toI32(block), lists, at(position));
        Value next = arith::AddIOp::create(b, loc, position, index(1));
        scf::YieldOp::create(b, loc, next);
      },
      [&](OpBuilder &, Location) { scf::YieldOp::create(b, loc, position); });
  scf::YieldOp::create(b, loc, branch.getResult(0));
  return loop.getResult(0);
}

void MapBuilder::buildLists() {
  OpBuilder::InsertionGuard guard(b);
  scf::ForallOp grid = beginGrid(queryBlocks);
  SmallVector<Value> place = grid.getInductionVars();
  Value partial = appendBlocks(place, statePartial, index(0));
  Value all = appendBlocks(place, stateFull, partial);
  Value full = arith::SubIOp::create(b, loc, all, partial);
  SmallVector<Value> end(place);
  end.push_back(all);
  memref::StoreOp::create(b, loc, toI32(keyBlocks), lists, end);
  const std::array both = {partial, full};
  for (auto [number, count] : llvm::enumerate(both)) {
    SmallVector<Value> indices(place);
    indices.push_back(index(number));
    memref::StoreOp::create(b, loc, toI32(count), counts, indices);
  }
}

BlockMap MapBuilder::build() {
  OpBuilder::InsertionGuard guard(b);
  scf::ForallOp grid = program.grid;
  b.setInsertionPoint(grid);
  SmallVector<Value> sizes =
      getValueOrCreateConstantIndexOp(b, loc, grid.getMixedUpperBound());
  Value zero = index(0), one = index(1);
  batches = program.usesBatch ? sizes[0] : one;
  heads = program.usesHead ? sizes[1] : one;
  queryBlocks = sizes[2];
  keyBlocks = program.loop.getUpperBound();
  states = allocate(b.getI8Type(), keyBlocks);
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
  map.batch = program.usesBatch ? grid.getInductionVar(0) : zero;
  map.head = program.usesHead ? grid.getInductionVar(1) : zero;
  map.query = grid.getInductionVar(2);
  return map;
}

FailureOr<BlockMap> attn::tile::buildBlockMap(RewriterBase &rewriter,
                                              scf::ForallOp grid,
                                              scf::ForOp loop, Value mask,
                                              std::string &reason) {
  MaskProgram program;
  program.grid = grid;
  program.loop = loop;
  program.mask = mask;
  if (failed(MaskReader(program, reason).run()))
    return failure();
  return MapBuilder(rewriter, program).build();
}
