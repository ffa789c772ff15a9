//===- CaptureDistances.cpp - sums by distance of query and key -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is added to table[i - j] is summed over a block of M x W scores and all
// that follow it down and to the right: in these a place of the block has one
// distance, and one bias by distance. The sums are stored, and a second kernel
// sums their diagonals.
//
// So it is with distances in an image of C columns, of i / C and j / C and of
// i % C and j % C (PositionDigits.h), if the next block is a multiple of C
// further on: as many rows of the image as fit into M queries. Rows of a block
// after these are hidden. A larger image row, or frame of a video, has several
// blocks of rows. The second kernel takes the sum of each distance, one of each
// digit, from one place of each row of the blocks.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"
#include "FixedDistances.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The columns of a block of sumDiagonals. What it waits for are its loads, of
/// as many queries as keys in each step, which more columns share: 64, where
/// lanes have registers for them, and multiprocessors of any target memory.
int64_t BackwardKernels::countDiagonalColumns() {
  constexpr int64_t wide = 64, mostOfLane = 32, lanes = 32;
  constexpr int64_t mostBytes = 96 * 1024;
  int64_t bytes = (numRows + wide) * (paddedDim + paddedValueDim) *
                  (element.getIntOrFloatBitWidth() / 8);
  bool fits = bytes <= mostBytes &&
              numRows * wide <= mostOfLane * lanes * getPlanOfRows().getWarps();
  return fits ? std::max(wide, numColumns) : numColumns;
}

BackwardKernels::DistanceBlocks
BackwardKernels::cutScores(ArrayRef<int64_t> scales) {
  DistanceBlocks blocks;
  blocks.scales = llvm::to_vector(scales);
  int64_t period = blocks.getPeriod();
  blocks.step = period * std::max<int64_t>(numRows / period, 1);
  blocks.rowBlocks = llvm::divideCeil(blocks.step, numRows);
  blocks.width = std::gcd(numRows, countDiagonalColumns());
  Value step = arith::ConstantIndexOp::create(b, loc, blocks.step);
  Value width = arith::ConstantIndexOp::create(b, loc, blocks.width);
  blocks.numSteps = ceilDiv(b, loc, queryLength, step);
  blocks.shift =
      period == 1 ? paddedQueries
                  : b.createOrFold<arith::MulIOp>(loc, blocks.numSteps, step);
  blocks.numDiagonals =
      b.createOrFold<arith::AddIOp>(loc, ceilDiv(b, loc, blocks.shift, width),
                                    ceilDiv(b, loc, keyLength, width));
  return blocks;
}

/// Sums of blocks of scores whose queries and keys are a step further on from
/// one to the next: those of diagonal n begin n W - shift after the first query
/// of their step.
Value BackwardKernels::sumDiagonals(CapturePart &part, const Twine &suffix,
                                    const DistanceBlocks &blocks) {
  OpBuilder::InsertionGuard guard(b);
  int64_t width = blocks.width;
  Value blockWidth = arith::ConstantIndexOp::create(b, loc, width);
  Value step = arith::ConstantIndexOp::create(b, loc, blocks.step);
  Value rowBlocks = arith::ConstantIndexOp::create(b, loc, blocks.rowBlocks);
  Value numBlocks =
      b.createOrFold<arith::MulIOp>(loc, blocks.numDiagonals, rowBlocks);
  Value numStored = b.createOrFold<arith::MulIOp>(loc, numBlocks, blockRows);
  Value stored = allocate(f32, {batches, heads, numStored, blockWidth});
  tile::KernelOp kernel =
      beginKernel(suffix + "_diagonals", ValueRange{batches, heads, numBlocks},
                  getPlanWithoutRings(width));
  BlockNumbers block = readNumbers(kernel);
  Value diagonal = block.number, rowBlock = c0;
  if (blocks.rowBlocks > 1) {
    rowBlock =
        arith::DivSIOp::create(b, loc, block.number, blocks.numDiagonals);
    diagonal =
        arith::RemSIOp::create(b, loc, block.number, blocks.numDiagonals);
  }
  Value start = arith::MulIOp::create(b, loc, diagonal, blockWidth);
  Value offset = arith::SubIOp::create(b, loc, start, blocks.shift);
  Value firstRow =
      blocks.rowBlocks > 1
          ? arith::MulIOp::create(b, loc, rowBlock, blockRows).getResult()
          : c0;
  // The blocks of which a key is there. Some begin before the first one, where
  // steps are no multiple of the width.
  bool isAligned = blocks.step % width == 0;
  auto countSteps = [&](Value rows) -> Value {
    Value positive = arith::MaxSIOp::create(b, loc, rows, c0);
    return ceilDiv(b, loc, positive, step);
  };
  Value before = arith::SubIOp::create(b, loc, blocks.shift, start);
  Value low = countSteps(
      isAligned ? before
                : arith::SubIOp::create(
                      b, loc, before,
                      arith::ConstantIndexOp::create(b, loc, width - 1)));
  Value high = arith::MinSIOp::create(
      b, loc, blocks.numSteps,
      countSteps(arith::SubIOp::create(b, loc, keyLength, offset)));
  auto addFirst = [&](Value row) {
    return blocks.rowBlocks > 1
               ? arith::AddIOp::create(b, loc, row, firstRow).getResult()
               : row;
  };
  auto type = VectorType::get({numRows, width}, f32);
  // Of digits, positions that there are.
  Value base = c0, firstKeys = offset;
  if (blocks.getPeriod() > 1) {
    base = arith::MulIOp::create(b, loc, countSteps(before), step);
    firstKeys = arith::AddIOp::create(b, loc, base, offset);
  }
  BlockPositions first = {coordinates(addFirst(base), numRows, 0),
                          coordinates(firstKeys, width, 1)};
  scf::ForOp loop = beginLoop(low, high, splat(b, loc, type, 0.0));

  OpBuilder outer(b);
  Value stepStart = arith::MulIOp::create(b, loc, loop.getInductionVar(), step);
  Value row = addFirst(stepStart);
  Value column = arith::AddIOp::create(b, loc, stepStart, offset);
  // Which the loop keeps anyway: so copies know that there may be no key.
  if (!isAligned)
    column = arith::MaxSIOp::create(
        b, loc, column, arith::ConstantIndexOp::create(b, loc, 1 - width));
  Value queries = coordinates(row, numRows, 0);
  ScoreCoordinates at{block.batch32, block.head32, queries,
                      coordinates(column, width, 1)};
  ShownBox shown;
  if (blocks.step % numRows != 0) {
    Value stepEnd =
        toCoordinate(b, loc, arith::AddIOp::create(b, loc, stepStart, step));
    shown.queryEnd = arith::MinSIOp::create(b, loc, stepEnd, queryLength32);
  }
  if (!isAligned)
    shown.firstKey = toCoordinate(b, loc, c0);
  Factors lhs = loadFactors(block, /*isKey=*/false, row, numRows);
  Factors rhs = loadFactors(block, /*isKey=*/true, column, width);
  Step adjoints =
      buildAdjoints(outer, lhs, rhs, at, readRowNumbers(block, queries), shown);
  Value added = buildAddition(outer, adjoints, part);
  endLoop(loop,
          arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], added)
              .getResult());
  tile::StoreOp::create(b, loc, loop.getResult(0), stored,
                        ValueRange{block.batch, block.head, block.first, c0});
  expandAllScores(kernel);
  IRRewriter rewriter(kernel.getContext());
  readFixedDistances(rewriter, loop, {queries, at.keys}, first, blocks.step);
  return stored;
}

//===----------------------------------------------------------------------===//
// Distances
//===----------------------------------------------------------------------===//

/// How many numbers each digit of j less i has, those of the last digit first:
/// from 0 on, with the shift of the digit added.
SmallVector<Value>
BackwardKernels::countDistances(const DistanceBlocks &blocks) {
  int64_t period = blocks.getPeriod();
  Value width = arith::ConstantIndexOp::create(b, loc, blocks.width);
  if (period == 1)
    return {b.createOrFold<arith::MulIOp>(loc, blocks.numDiagonals, width)};
  Value size = arith::ConstantIndexOp::create(b, loc, period);
  SmallVector<Value> sizes = {
      b.createOrFold<arith::AddIOp>(loc, ceilDiv(b, loc, blocks.shift, size),
                                    ceilDiv(b, loc, keyLength, size))};
  for (size_t digit = blocks.scales.size() - 1; digit-- > 0;) {
    int64_t values = blocks.scales[digit + 1] / blocks.scales[digit];
    sizes.push_back(arith::ConstantIndexOp::create(b, loc, 2 * values - 1));
  }
  return sizes;
}

/// A number by which the difference j less i of a digit is stored as more.
Value BackwardKernels::getDistanceShift(const DistanceBlocks &blocks,
                                        unsigned digit) {
  if (digit + 1 < blocks.scales.size())
    return arith::ConstantOp::create(
        b, loc,
        b.getI32IntegerAttr(blocks.scales[digit + 1] / blocks.scales[digit] -
                            1));
  Value period = arith::ConstantIndexOp::create(b, loc, blocks.getPeriod());
  Value shift = blocks.shift;
  if (blocks.getPeriod() > 1)
    shift = b.createOrFold<arith::DivSIOp>(loc, shift, period);
  return toCoordinate(b, loc, shift);
}

/// What has the stored distances, in digits from the last one on, in the rows
/// of the blocks from `firstRow` on: numbers of M distances by N rows.
Value BackwardKernels::readDiagonals(Value stored, const BlockNumbers &block,
                                     const DistanceBlocks &blocks,
                                     ArrayRef<Value> distances,
                                     Value firstRow) {
  int64_t shape[] = {numRows, numColumns};
  auto integers = VectorType::get(shape, b.getI32Type());
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(integers, b.getI32IntegerAttr(value)));
  };
  auto add = [&](Value lhs, Value rhs) -> Value {
    return arith::AddIOp::create(b, loc, lhs, rhs);
  };
  auto divide = [&](Value value, int64_t divisor) -> Value {
    if (divisor == 1)
      return value;
    return arith::DivUIOp::create(b, loc, value, number(divisor));
  };
  auto getRest = [&](Value value, int64_t divisor) -> Value {
    return arith::RemUIOp::create(b, loc, value, number(divisor));
  };
  auto scale = [&](Value value, int64_t factor) -> Value {
    if (factor == 1)
      return value;
    return arith::MulIOp::create(b, loc, value, number(factor));
  };
  Value rows = broadcast(coordinates(firstRow, numColumns, 1), integers);
  Value isThere;
  auto require = [&](Value value, int64_t end) {
    Value holds = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                        value, number(end));
    isThere = isThere
                  ? arith::AndIOp::create(b, loc, isThere, holds).getResult()
                  : holds;
  };
  if (blocks.step % numColumns != 0)
    require(rows, blocks.step);
  // The key, counted from the step of its query less the shift.
  Value place;
  size_t last = blocks.scales.size() - 1;
  for (auto [digit, scaled] : llvm::enumerate(blocks.scales)) {
    Value key = divide(rows, scaled);
    if (digit != last)
      key = getRest(key, blocks.scales[digit + 1] / scaled);
    key = add(broadcast(distances[last - digit], integers), key);
    if (digit != last) {
      int64_t values = blocks.scales[digit + 1] / scaled;
      key = add(key, number(1 - values));
      require(key, values);
    }
    key = scale(key, scaled);
    place = place ? add(place, key) : key;
  }
  Value diagonal = arith::DivUIOp::create(b, loc, place, number(blocks.width));
  Value column = getRest(place, blocks.width);
  Value row = rows;
  if (blocks.rowBlocks > 1) {
    Value numDiagonals =
        broadcast(toCoordinate(b, loc, blocks.numDiagonals), integers);
    diagonal =
        add(diagonal,
            arith::MulIOp::create(b, loc, divide(rows, numRows), numDiagonals));
    row = getRest(rows, numRows);
  }
  Value storedRow = add(scale(diagonal, numRows), row);
  Value read =
      gather(stored, {block.batch32, block.head32, storedRow, column}, shape);
  if (!isThere)
    return read;
  Value zero = splat(b, loc, VectorType::get(shape, f32), 0.0);
  return arith::SelectOp::create(b, loc, isThere, read, zero);
}

/// Sums by distance, one digit to a dimension.
void BackwardKernels::sumDistances(CapturePart &part, const Twine &suffix) {
  OpBuilder::InsertionGuard guard(b);
  part.blocks = cutScores(part.sum.scales);
  const DistanceBlocks &blocks = part.blocks;
  Value stored = sumDiagonals(part, suffix, blocks);
  SmallVector<Value> sizes = countDistances(blocks);
  SmallVector<Value> dims = {batches, heads};
  llvm::append_range(dims, sizes);
  part.workspace = allocate(f32, dims);

  sizes.back() = ceilDiv(b, loc, sizes.back(), blockRows);
  tile::KernelOp kernel = beginKernel(
      suffix + "_distances", ValueRange{batches, heads, multiplySizes(sizes)});
  BlockNumbers block = readNumbers(kernel);
  SmallVector<Value> at = {block.first}, distances;
  if (sizes.size() > 1) {
    at = splitNumber(block.number, sizes);
    at.back() = arith::MulIOp::create(b, loc, at.back(), blockRows);
  }
  for (Value digit : ArrayRef<Value>(at).drop_back())
    distances.push_back(toCoordinate(b, loc, digit));
  distances.push_back(coordinates(at.back(), numRows, 0));
  int64_t shape[] = {numRows, numColumns};
  Value zero = splat(b, loc, VectorType::get(shape, f32), 0.0);
  Value numRowBlocks = arith::ConstantIndexOp::create(
      b, loc, llvm::divideCeil(blocks.step, numColumns));
  scf::ForOp loop = beginLoop(c0, numRowBlocks, zero);
  Value first =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value read = readDiagonals(stored, block, blocks, distances, first);
  endLoop(loop, arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], read)
                    .getResult());
  SmallVector<Value> indices = {block.batch, block.head};
  llvm::append_range(indices, at);
  tile::StoreOp::create(b, loc, sumColumns(loop.getResult(0)), part.workspace,
                        indices);
}

/// Some i and j of stored distances, in digits from the last one on.
ScoreCoordinates BackwardKernels::placeDistances(ScoreCoordinates at,
                                                 const DistanceBlocks &blocks,
                                                 ArrayRef<Value> distances) {
  // Of all of them; numbers and vectors may be mixed.
  SmallVector<int64_t> shape;
  for (Value distance : distances)
    if (auto type = dyn_cast<VectorType>(distance.getType())) {
      shape.resize(2, 1);
      for (unsigned axis : {0, 1})
        shape[axis] = std::max(shape[axis], type.getDimSize(axis));
    }
  Type type = b.getI32Type();
  if (!shape.empty())
    type = VectorType::get(shape, type);
  auto fill = [&](Value value) { return stretch(value, type); };
  Value zero = fill(arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0)));
  size_t last = blocks.scales.size() - 1;
  auto build = [&](bool isKey) -> Value {
    Value sum;
    for (auto [number, distance] : llvm::enumerate(distances)) {
      unsigned digit = last - number;
      Value less = fill(distance),
            shift = fill(getDistanceShift(blocks, digit));
      if (!isKey)
        std::swap(less, shift);
      Value part = arith::MaxSIOp::create(
          b, loc, arith::SubIOp::create(b, loc, less, shift), zero);
      if (blocks.scales[digit] > 1)
        part = arith::MulIOp::create(
            b, loc, part,
            fill(arith::ConstantOp::create(
                b, loc, b.getI32IntegerAttr(blocks.scales[digit]))));
      sum = sum ? arith::AddIOp::create(b, loc, sum, part).getResult() : part;
    }
    return sum;
  };
  at.queries = build(/*isKey=*/false);
  at.keys = build(/*isKey=*/true);
  return at;
}

/// The stored distance of the elements at `place`, a number or M of them, of a
/// dimension whose index is a distance and a number that all pairs share.
Value BackwardKernels::readOwnDistance(const CaptureSum &sum,
                                       const DistanceBlocks &blocks,
                                       unsigned dim, Value place,
                                       const ScoreCoordinates &at) {
  Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  int64_t shape[] = {numRows, 1};
  Value shared =
      readIndex(sum.getIndex(dim), {at.batch, at.head, none, none}, shape);
  Type type = shared.getType();
  Value distance = arith::SubIOp::create(b, loc, stretch(place, type), shared);
  Value shift =
      stretch(getDistanceShift(blocks, sum.ownDigits[dim]->digit), type);
  if (sum.ownDigits[dim]->isQueryLessKey)
    return arith::SubIOp::create(b, loc, shift, distance);
  return arith::AddIOp::create(b, loc, shift, distance);
}
