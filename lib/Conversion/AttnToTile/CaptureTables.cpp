//===- CaptureTables.cpp - sums by element of a captured table ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where nothing is known of the indices, a block of scores adds what goes back
// to bins, one for each element, or one for each element and row (`tile.bins`).
// A table of more elements than there is memory for is cut into chunks, each of
// which costs all scores once more (CaptureBins.cpp).
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"
#include "ClampedDistance.h"

#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "attn/Plan/Plan.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace attn;

SmallVector<Value> BackwardKernels::getTableSizes(const CaptureSum &sum) {
  return llvm::map_to_vector(sum.getTableDims(), [&](unsigned dim) -> Value {
    return b.createOrFold<memref::DimOp>(loc, captures[sum.capture], dim);
  });
}

/// The number of the element at those indices, of the type of the last one.
Value BackwardKernels::joinIndices(ArrayRef<Value> indices,
                                   ArrayRef<Value> sizes) {
  Value number = indices.front();
  for (auto [index, size] :
       llvm::zip(indices.drop_front(), sizes.drop_front())) {
    Value factor = toCoordinate(b, loc, size);
    Type type = index.getType();
    if (isa<VectorType>(number.getType()))
      factor = broadcast(factor, type);
    number = arith::MulIOp::create(b, loc, number, factor);
    if (number.getType() != type)
      number = broadcast(number, type);
    number = arith::AddIOp::create(b, loc, number, index);
  }
  return number;
}

/// The number of the element that each place of a block adds to, -1 for none.
Value BackwardKernels::readElement(OpBuilder &outer, const Step &step,
                                   const CaptureSum &sum,
                                   ArrayRef<Value> sizes) {
  SmallVector<Value> indices;
  for (unsigned dim : sum.getTableDims())
    indices.push_back(
        readPullback(outer, step, step.adjoint, sum.getIndex(dim)));
  auto type = cast<VectorType>(indices.front().getType());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, b.getI32IntegerAttr(value)));
  };
  Value element = joinIndices(indices, sizes);
  for (auto [index, size] : llvm::zip(indices, sizes)) {
    Value limit = broadcast(toCoordinate(b, loc, size), type);
    // Negative ones are large ones.
    Value isInside =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, limit);
    element = arith::SelectOp::create(b, loc, isInside, element, constant(-1));
  }
  return element;
}

/// Where an element is a quotient of a position by a constant: the positions of
/// which a chunk has elements.
BackwardKernels::ShownBox
BackwardKernels::findShownByQuotient(const PositionQuotient &quotient,
                                     Value chunk, int64_t count) {
  auto [isKey, divisor] = quotient;
  Value length = isKey ? keyLength : queryLength;
  Value width = arith::ConstantIndexOp::create(b, loc, count * divisor);
  auto limit = [&](Value number) {
    return toCoordinate(b, loc, arith::MinSIOp::create(b, loc, number, length));
  };
  Value begin = arith::MulIOp::create(b, loc, chunk, width);
  Value first = limit(begin);
  Value end = limit(arith::AddIOp::create(b, loc, begin, width));
  ShownBox shown;
  (isKey ? shown.firstKey : shown.firstQuery) = first;
  (isKey ? shown.keyEnd : shown.queryEnd) = end;
  return shown;
}

/// Where an element is the distance of two positions between limits: from rows
/// of a block a chunk has elements of a few distances, and of all beyond if it
/// has that limit.
BackwardKernels::ShownBox
BackwardKernels::findShownByDistance(const ClampedDistance &distance,
                                     const TableBlock &block, bool isKey) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto add = [&](Value value, int64_t more) -> Value {
    return arith::AddIOp::create(b, loc, value, number(more));
  };
  auto subtract = [&](Value lhs, Value rhs) -> Value {
    return arith::SubIOp::create(b, loc, lhs, rhs);
  };
  auto select = [&](arith::CmpIPredicate predicate,
                    std::optional<int64_t> limit, Value bound, Value beyond,
                    Value within) -> Value {
    if (!limit)
      return within;
    Value has = arith::CmpIOp::create(b, loc, predicate, number(*limit), bound);
    return arith::SelectOp::create(b, loc, has, beyond, within);
  };
  Value length = isKey ? queryLength : keyLength;
  Value end = add(block.firstElement, block.count);
  bool grows = (distance.sign > 0) == isKey; // with the passing position
  int64_t offset = grows ? -distance.offset : distance.offset;
  // passing = own + offset + element, or less the element.
  Value own = add(block.firstRow, offset);
  Value least =
      grows ? arith::AddIOp::create(b, loc, own, block.firstElement).getResult()
            : add(subtract(own, end), 1);
  Value most = add(grows ? add(arith::AddIOp::create(b, loc, own, end), -1)
                         : subtract(own, block.firstElement),
                   block.rows);
  auto openBelow = [&](Value first) {
    return select(arith::CmpIPredicate::sge, distance.least, block.firstElement,
                  grows ? c0 : length, first);
  };
  auto openAbove = [&](Value first) {
    return select(arith::CmpIPredicate::slt, distance.most, end,
                  grows ? length : c0, first);
  };
  Value first = grows ? openBelow(least) : openAbove(least);
  Value last = grows ? openAbove(most) : openBelow(most);
  auto limit = [&](Value value) {
    value = arith::MaxSIOp::create(b, loc, value, c0);
    value = arith::MinSIOp::create(b, loc, value, length);
    return toCoordinate(b, loc, value);
  };
  ShownBox shown;
  (isKey ? shown.firstQuery : shown.firstKey) = limit(first);
  (isKey ? shown.queryEnd : shown.keyEnd) = limit(last);
  return shown;
}

/// The keys and queries of which a chunk has elements: the others need not be
/// visited.
BackwardKernels::ShownBox BackwardKernels::findShown(const CaptureSum &sum,
                                                     Value chunk,
                                                     const TableBlock &block) {
  if (std::optional<ClampedDistance> distance = findElementDistance(sum))
    return findShownByDistance(*distance, block,
                               sum.find(IndexKind::Key).has_value());
  if (std::optional<PositionQuotient> quotient = findElementQuotient(sum))
    return findShownByQuotient(*quotient, chunk, block.count);
  return {};
}

/// Sums by batch entry, head, row or part of all rows, and element.
void BackwardKernels::sumElements(BinPass &pass) {
  OpBuilder::InsertionGuard guard(b);
  const CaptureSum &first = pass.sets.front().parts.front()->sum;
  bool isKey = first.find(IndexKind::Key).has_value();
  bool hasRows = first.findTableRow().has_value();
  PlanAttr plan = pass.plan;
  Value length = isKey ? keyLength : queryLength;
  Value passingLength = isKey ? queryLength : keyLength;
  int64_t rows = plan.getBlockQ();
  Value height = arith::ConstantIndexOp::create(b, loc, rows);
  Value numBlocks = ceilDiv(b, loc, length, height);
  // What tile.store_bins writes of a block.
  Value partsOfBlock = arith::ConstantIndexOp::create(b, loc, plan.getWarps());
  Value numStored =
      hasRows ? length
              : b.createOrFold<arith::MulIOp>(loc, numBlocks, partsOfBlock);
  Value numChunks = c1;
  for (BinSet &set : pass.sets) {
    set.sizes = getTableSizes(set.parts.front()->sum);
    Value numElements = multiplySizes(set.sizes);
    Value width = arith::ConstantIndexOp::create(b, loc, set.count);
    Value own = ceilDiv(b, loc, numElements, width);
    numChunks = numChunks == c1
                    ? own
                    : b.createOrFold<arith::MaxSIOp>(loc, numChunks, own);
    set.sums = allocate(f32, {batches, heads, numStored, numElements});
  }
  Value numSteps = ceilDiv(b, loc, passingLength, blockColumns);
  tile::KernelOp kernel = beginKernel(
      pass.sets.front().suffix + "_elements",
      ValueRange{batches, heads,
                 b.createOrFold<arith::MulIOp>(loc, numBlocks, numChunks)},
      plan);
  BlockNumbers block = readNumbers(kernel);
  SmallVector<Value> at = splitNumber(block.number, {numBlocks, numChunks});
  block.number = at[0];
  block.first = arith::MulIOp::create(b, loc, block.number, height);
  Value own = coordinates(block.first, rows, 0);
  Factors lhs = loadFactors(block, isKey, block.first, rows);
  RowNumbers numbers;
  if (!isKey)
    numbers = readRowNumbers(block, own);
  for (BinSet &set : pass.sets) {
    Value width = arith::ConstantIndexOp::create(b, loc, set.count);
    set.firstElement = arith::MulIOp::create(b, loc, at[1], width);
    SmallVector<int64_t> shape = {set.count};
    if (hasRows)
      shape.insert(shape.begin(), rows);
    set.bins = tile::BinsOp::create(b, loc, MemRefType::get(shape, f32));
  }
  ShownBox shown;
  // What one read adds says nothing of another.
  if (numChunks != c1 && pass.hasOneRead()) {
    const BinSet &set = pass.sets.front();
    shown = findShown(first, at[1],
                      {block.first, rows, set.firstElement, set.count});
  }
  auto loop = scf::ForOp::create(b, loc, c0, numSteps, c1);

  OpBuilder outer(loop);
  b.setInsertionPointToStart(loop.getBody());
  Step step = buildPassing(outer, block, isKey, own, lhs, numbers,
                           loop.getInductionVar(), shown);
  for (const BinSet &set : pass.sets)
    for (const CapturePart *part : set.parts) {
      Value added = buildAddition(outer, step, *part);
      Value number = readElement(outer, step, part->sum, set.sizes);
      if (numChunks != c1)
        number = arith::SubIOp::create(
            b, loc, number,
            broadcast(toCoordinate(b, loc, set.firstElement),
                      number.getType()));
      tile::ScatterAddOp::create(b, loc, added, set.bins, number);
    }

  b.setInsertionPointAfter(loop);
  Value firstStored =
      hasRows ? block.first
              : arith::MulIOp::create(b, loc, block.number, partsOfBlock)
                    .getResult();
  for (const BinSet &set : pass.sets)
    tile::StoreBinsOp::create(
        b, loc, set.bins, set.sums,
        ValueRange{block.batch, block.head, firstStored, set.firstElement});
}

/// Sums by batch entry, head and element of those by part of all rows.
Value BackwardKernels::sumPartsOfRows(const BinSet &set) {
  OpBuilder::InsertionGuard guard(b);
  Value numElements = multiplySizes(set.sizes);
  Value total = allocate(f32, {batches, heads, numElements});
  Value numParts = b.createOrFold<memref::DimOp>(loc, set.sums, 2);
  tile::KernelOp kernel = beginKernel(
      set.suffix + "_table",
      ValueRange{batches, heads, ceilDiv(b, loc, numElements, blockRows)});
  BlockNumbers block = readNumbers(kernel);
  Value elements = coordinates(block.first, numRows, 0);
  int64_t shape[] = {numRows, numColumns};
  Value zero = splat(b, loc, VectorType::get(shape, f32), 0.0);
  scf::ForOp loop =
      beginLoop(c0, ceilDiv(b, loc, numParts, blockColumns), zero);
  Value first =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value read = gather(set.sums,
                      {block.batch32, block.head32,
                       coordinates(first, numColumns, 1), elements},
                      shape);
  endLoop(loop, arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], read)
                    .getResult());
  tile::StoreOp::create(b, loc, sumColumns(loop.getResult(0)), total,
                        ValueRange{block.batch, block.head, block.first});
  return total;
}

void BackwardKernels::sumTables() {
  for (BinPass &pass : planBinPasses()) {
    sumElements(pass);
    for (BinSet &set : pass.sets) {
      CapturePart &first = *set.parts.front();
      first.workspace =
          first.sum.findTableRow() ? set.sums : sumPartsOfRows(set);
    }
  }
}
