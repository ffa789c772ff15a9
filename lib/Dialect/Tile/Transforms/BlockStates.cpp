//===- BlockStates.cpp - what a mask shows of a block ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockStates.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace attn::tile;

/// As many rows as the lanes of one warp take at once.
static constexpr int64_t rowsAtOnce = 16;
/// As few columns as they can hold, a multiple of which they take, and as many
/// as are enough for each to have scores to compute at the same time.
static constexpr int64_t leastColumns = 8, columnsAtOnce = 32;
/// As many rows, or columns, as there are registers for where a lane holds one
/// number of each.
static constexpr int64_t mostEnds = 128;

BlockStates::BlockStates(OpBuilder &b, MaskProgram &program,
                         const MaskGrain &grain, const CellBounds *bounds,
                         const IRMapping &mapping, Value length)
    : b(b), loc(program.loop.getLoc()), program(program), grain(grain),
      bounds(bounds), mapping(mapping), length(length),
      numRows(program.rows().count / grain.rows),
      numColumns(program.columns().count / grain.columns), rows(rowsAtOnce),
      allColumns(isSampled() ? llvm::alignTo(numColumns, leastColumns)
                             : numColumns),
      columns(allColumns % columnsAtOnce == 0 ? columnsAtOnce : allColumns) {}

bool BlockStates::isSampled() const {
  return grain.rows != 1 || grain.columns != 1 || numRows % rowsAtOnce != 0;
}

Value BlockStates::splat(Type type, int64_t value) {
  auto vector = cast<VectorType>(type);
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(vector,
                             b.getIntegerAttr(vector.getElementType(), value)));
}

/// The first coordinates of groups, from group number `first` on; after the
/// last group that one again.
Value BlockStates::sample(Value base, Value first, int64_t axis) {
  bool isRow = axis == 0;
  auto type = VectorType::get({isRow ? rows : 1, isRow ? int64_t(1) : columns},
                              b.getI32Type());
  if (!isSampled())
    return CoordsOp::create(b, loc, type,
                            arith::AddIOp::create(b, loc, base, first), axis);
  Value group = CoordsOp::create(b, loc, type, first, axis);
  Value last = splat(type, (isRow ? numRows : numColumns) - 1);
  group = arith::MinSIOp::create(b, loc, group, last);
  Value size = splat(type, isRow ? grain.rows : grain.columns);
  Value offset = arith::MulIOp::create(b, loc, group, size);
  return arith::AddIOp::create(
      b, loc, vector::BroadcastOp::create(b, loc, type, base), offset);
}

/// Which of `positions`, rows or columns, are below a number, as `mask`.
Value BlockStates::isBelow(Value positions, Value limit, Type mask) {
  Value limits =
      vector::BroadcastOp::create(b, loc, positions.getType(), limit);
  Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         positions, limits);
  return vector::BroadcastOp::create(b, loc, mask, isInside);
}

/// Those of `mask` for which the first ones of their groups, or the last ones,
/// are in front of all limits. `positions` are those of queries and of keys.
Value BlockStates::limitShown(Value mask, ValueRange positions, bool isLast) {
  int64_t sizes[] = {grain.rows, grain.columns};
  if (program.isTransposed())
    std::swap(sizes[0], sizes[1]);
  auto limit = [&](ArrayRef<Value> limits, unsigned which) {
    for (Value value : limits) {
      Value end = b.createOrFold<arith::SubIOp>(
          loc, lookup(value), integer(isLast ? sizes[which] - 1 : 0, 32));
      Value isInside = isBelow(positions[which], end, mask.getType());
      mask = arith::AndIOp::create(b, loc, mask, isInside);
    }
  };
  limit(grain.queryLimits, 0);
  limit(grain.keyLimits, 1);
  return mask;
}

/// acc, or any element.
Value BlockStates::anyOf(Value acc, Value vector) {
  return vector::MultiDimReductionOp::create(b, loc, vector, acc,
                                             ArrayRef<bool>{true, true},
                                             vector::CombiningKind::OR);
}

/// Leaves out what is left of a block that is known to be partial: of many
/// masks, that is seen at its first pairs.
void BlockStates::skipDecided(scf::ForOp loop) {
  OpBuilder::InsertionGuard guard(b);
  Block *body = loop.getBody();
  auto yield = cast<scf::YieldOp>(body->getTerminator());
  b.setInsertionPoint(yield);
  Value isPartial = arith::AndIOp::create(b, loc, loop.getRegionIterArg(0),
                                          loop.getRegionIterArg(1));
  auto branch = scf::IfOp::create(b, loc, yield.getOperandTypes(), isPartial,
                                  /*withElseRegion=*/true);
  Block *then = branch.thenBlock(), *otherwise = branch.elseBlock();
  b.setInsertionPointToEnd(then);
  scf::YieldOp::create(b, loc, loop.getRegionIterArgs());
  b.setInsertionPointToEnd(otherwise);
  scf::YieldOp::create(b, loc, yield.getOperands());
  otherwise->getOperations().splice(otherwise->begin(), body->getOperations(),
                                    body->begin(),
                                    isPartial.getDefiningOp()->getIterator());
  yield.getOperation()->setOperands(branch.getResults());
}

/// `root`, of the region of the mask, for rows and columns, as a vector of
/// `shape`. `more` stands for the ends of data.
Value BlockStates::expand(Operation *head, Value root, Value row, Value column,
                          ValueRange more, ArrayRef<int64_t> shape) {
  ScoresOp scores = program.scores;
  if (program.isTransposed())
    std::swap(row, column);
  SmallVector<Value> arguments;
  // Of a tile with rows of several heads none asks for the head.
  for (unsigned operand : {1, 2}) {
    Value number = scores->getOperand(operand);
    arguments.push_back(isa<VectorType>(number.getType()) ? integer(0, 32)
                                                          : lookup(number));
  }
  arguments.append({row, column});
  llvm::append_range(arguments, more);
  return expandScalarCode(b, head, scores.getMask(), arguments, shape, root,
                          mapping);
}

/// Which groups show a pair, and which hide one: of `some` some pairs show by
/// the mask, of `each` all do. `queries` are the queries at `positions`, of
/// which those behind the last show nothing.
SeenAndHidden BlockStates::compare(Value some, Value each, ValueRange positions,
                                   Value queries) {
  Value exists = isBelow(queries, length, some.getType());
  Value shown = limitShown(some, positions, /*isLast=*/false);
  Value seen = arith::AndIOp::create(b, loc, shown, exists);
  shown = limitShown(each, positions, /*isLast=*/true);
  Value hidden = arith::XOrIOp::create(b, loc, shown, splat(some.getType(), 1));
  if (!program.isTransposed())
    hidden = arith::AndIOp::create(b, loc, hidden, exists);
  return {seen, hidden};
}

/// `tiles` and `blocks` are their numbers, a column and a row of i32; the
/// builder stands before `head`.
SeenAndHidden BlockStates::buildMany(Operation *head, Value tiles, Value blocks,
                                     Value reversed, ArrayRef<int64_t> shape) {
  if (reversed)
    tiles = arith::SubIOp::create(
        b, loc, vector::BroadcastOp::create(b, loc, tiles.getType(), reversed),
        tiles);
  auto begin = [&](Value numbers, int64_t length) -> Value {
    return arith::MulIOp::create(b, loc, numbers,
                                 splat(numbers.getType(), length));
  };
  Value firstRows = begin(tiles, program.rows().count);
  Value firstColumns = begin(blocks, program.columns().count);
  auto move = [&](Value first, int64_t by) -> Value {
    if (by == 0)
      return first;
    return arith::AddIOp::create(b, loc, first, splat(first.getType(), by));
  };
  SeenAndHidden found;
  for (int64_t i = 0; i < numRows; ++i)
    for (int64_t j = 0; j < numColumns; ++j) {
      Value row = move(firstRows, i * grain.rows);
      Value column = move(firstColumns, j * grain.columns);
      Value positions[] = {row, column};
      if (program.isTransposed())
        std::swap(positions[0], positions[1]);
      Value some = expand(head, bounds ? bounds->some : grain.mask, row, column,
                          {}, shape);
      Value each =
          bounds ? expand(head, bounds->each, row, column, {}, shape) : some;
      SeenAndHidden group = compare(some, each, positions, positions[0]);
      for (auto [all, one] : llvm::zip(found, group))
        all = all ? arith::OrIOp::create(b, loc, all, one).getResult() : one;
    }
  return found;
}

SeenAndHidden BlockStates::build(ValueRange arguments) {
  OpBuilder::InsertionGuard guard(b);
  bool isTransposed = program.isTransposed();
  Value never = integer(0, 1);
  auto outer = scf::ForOp::create(b, loc, index(0), index(allColumns),
                                  index(columns), ValueRange{never, never});
  b.setInsertionPointToStart(outer.getBody());
  Value firstColumn = toI32(outer.getInductionVar());
  Value column = sample(lookup(program.columns().base), firstColumn, 1);
  auto loop = scf::ForOp::create(b, loc, index(0), index(numRows), index(rows),
                                 outer.getRegionIterArgs());
  b.setInsertionPointToStart(loop.getBody());
  Value firstRow = toI32(loop.getInductionVar());
  Value row = sample(lookup(program.rows().base), firstRow, 0);
  Value positions[] = {row, column};
  if (isTransposed)
    std::swap(positions[0], positions[1]);
  const int64_t shape[] = {rows, columns};
  Value some = expand(loop, bounds ? bounds->some : grain.mask, row, column,
                      arguments, shape);
  Value each =
      bounds ? expand(loop, bounds->each, row, column, arguments, shape) : some;
  Value first = toI32(lookup(program.query.getIndices()[2]));
  Value coords =
      isTransposed ? sample(first, firstColumn, 1) : sample(first, firstRow, 0);
  auto [seen, hidden] = compare(some, each, positions, coords);
  Value anySeen = anyOf(loop.getRegionIterArg(0), seen);
  Value anyHidden = anyOf(loop.getRegionIterArg(1), hidden);
  scf::YieldOp::create(b, loc, ValueRange{anySeen, anyHidden});
  skipDecided(loop);

  b.setInsertionPointAfter(loop);
  scf::YieldOp::create(b, loc, loop.getResults());
  return {outer.getResult(0), outer.getResult(1)};
}

/// The least, or the greatest, of all elements.
Value BlockStates::reduce(Value vector, bool isLeast) {
  Type element = cast<VectorType>(vector.getType()).getElementType();
  if (!element.isInteger(1)) {
    using Limits = std::numeric_limits<int32_t>;
    return vector::MultiDimReductionOp::create(
        b, loc, vector, integer(isLeast ? Limits::max() : Limits::min(), 32),
        ArrayRef<bool>{true, true},
        isLeast ? vector::CombiningKind::MINSI : vector::CombiningKind::MAXSI);
  }
  if (!isLeast)
    return anyOf(integer(0, 1), vector);
  Value isFalse =
      arith::XOrIOp::create(b, loc, vector, splat(vector.getType(), 1));
  Value any = anyOf(integer(0, 1), isFalse);
  return arith::XOrIOp::create(b, loc, any, integer(1, 1));
}

/// `positions` along one axis, and in place of those behind the last the last
/// one: what data say there, nothing or a quotient by it, is no end of theirs.
Value BlockStates::bound(Value positions, int64_t axis) {
  bool isQuery = (axis == 0) != program.isTransposed();
  auto keep = [&](Value limit) {
    Value last = b.createOrFold<arith::SubIOp>(loc, limit, integer(1, 32));
    last = vector::BroadcastOp::create(b, loc, positions.getType(), last);
    positions = arith::MinSIOp::create(b, loc, positions, last);
  };
  for (Value limit : isQuery ? grain.queryLimits : grain.keyLimits)
    keep(lookup(limit));
  if (isQuery) {
    Value base =
        lookup(axis == 0 ? program.rows().base : program.columns().base);
    Value first = toI32(lookup(program.query.getIndices()[2]));
    Value left = arith::SubIOp::create(b, loc, length, first);
    keep(arith::AddIOp::create(b, loc, base, left));
  } else if (Value below = program.scores.getBelow()) {
    keep(lookup(below)); // no limit of groups that a bound stands for
  }
  return positions;
}

/// What lanes hold of the ends of data along one axis, two for each of `here`.
ValueRange BlockStates::collectEnds(ArrayRef<DataRange> data, bool isRow,
                                    ArrayRef<unsigned> here) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> inits;
  const int64_t shape[] = {isRow ? rows : 1, isRow ? 1 : columns};
  for (unsigned number : here) {
    auto type = VectorType::get(shape, data[number].value.getType());
    bool isBoolean = type.getElementType().isInteger(1);
    using Limits = std::numeric_limits<int32_t>;
    inits.push_back(splat(type, isBoolean ? 1 : Limits::max()));
    inits.push_back(splat(type, isBoolean ? 0 : Limits::min()));
  }
  auto loop =
      scf::ForOp::create(b, loc, index(0), index(isRow ? numRows : allColumns),
                         index(isRow ? rows : columns), inits);
  b.setInsertionPointToStart(loop.getBody());
  Value first = toI32(loop.getInductionVar()), start = integer(0, 32);
  Value row = sample(lookup(program.rows().base), isRow ? first : start, 0);
  Value column =
      sample(lookup(program.columns().base), isRow ? start : first, 1);
  (isRow ? row : column) = bound(isRow ? row : column, isRow ? 0 : 1);
  // No value of data depends on the ends of another.
  SmallVector<Value> none, next;
  for (const DataRange &one : data)
    none.append(2, integer(0, one.value.getType().getIntOrFloatBitWidth()));
  for (auto [place, number] : llvm::enumerate(here)) {
    Value part = expand(loop, data[number].value, row, column, none, shape);
    Value least = loop.getRegionIterArg(2 * place);
    Value greatest = loop.getRegionIterArg(2 * place + 1);
    if (data[number].value.getType().isInteger(1)) {
      next.push_back(arith::AndIOp::create(b, loc, least, part));
      next.push_back(arith::OrIOp::create(b, loc, greatest, part));
    } else {
      next.push_back(arith::MinSIOp::create(b, loc, least, part));
      next.push_back(arith::MaxSIOp::create(b, loc, greatest, part));
    }
  }
  scf::YieldOp::create(b, loc, next);
  return loop.getResults();
}

SmallVector<Value> BlockStates::buildEnds(ArrayRef<DataRange> data) {
  // One number a row, or a column: as many as there are, that none waits.
  if (!isSampled() && numRows <= mostEnds)
    rows = numRows;
  if (allColumns <= mostEnds)
    columns = allColumns;
  std::array<SmallVector<unsigned>, 2> here; // rows, columns
  for (auto [number, one] : llvm::enumerate(data))
    here[one.isOfQueries == program.isTransposed()].push_back(number);
  std::array<ValueRange, 2> collected;
  for (unsigned axis : {0, 1})
    if (!here[axis].empty())
      collected[axis] = collectEnds(data, /*isRow=*/axis == 0, here[axis]);
  SmallVector<Value> ends(2 * data.size());
  for (unsigned axis : {0, 1})
    for (auto [place, number] : llvm::enumerate(here[axis]))
      for (bool isLeast : {true, false})
        ends[2 * number + !isLeast] =
            reduce(collected[axis][2 * place + !isLeast], isLeast);
  return ends;
}
