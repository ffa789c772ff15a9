//===- CaptureTables.cpp - sums by element of a captured table ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where nothing is known of the indices, each element asks all pairs of query
// and key which of them add to it: a block of the grid makes all scores of its
// batch entry and head for a few elements. That costs as many times the scores
// as the table has such blocks: it is for small tables.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// Of which a block of the grid has one sum for each row of scores.
static constexpr int64_t elementsOfBlock = 16;

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

/// Sums by element and row of a block of queries.
Value BackwardKernels::sumElements(CapturePart &part, const Twine &suffix,
                                   ArrayRef<Value> sizes) {
  OpBuilder::InsertionGuard guard(b);
  Value width = arith::ConstantIndexOp::create(b, loc, elementsOfBlock);
  Value numBlocks = ceilDiv(b, loc, multiplySizes(sizes), width);
  Value numStored = b.createOrFold<arith::MulIOp>(loc, numBlocks, width);
  Value stored = allocate(f32, {batches, heads, numStored, blockRows});
  Value queryBlocks = ceilDiv(b, loc, queryLength, blockRows);
  Value keyBlocks = ceilDiv(b, loc, keyLength, blockColumns);
  Value numSteps = b.createOrFold<arith::MulIOp>(loc, queryBlocks, keyBlocks);
  tile::KernelOp kernel =
      beginKernel(suffix + "_elements", ValueRange{batches, heads, numBlocks},
                  getPlanWithoutRings());
  BlockNumbers block = readNumbers(kernel);
  Value first = arith::MulIOp::create(b, loc, kernel.getNumbers()[2], width);
  Value zero = splat(b, loc, VectorType::get(numRows, f32), 0.0);
  auto type = VectorType::get({numRows, numColumns}, f32);
  scf::ForOp loop =
      beginLoop(c0, numSteps, SmallVector<Value>(elementsOfBlock, zero));

  OpBuilder outer(b);
  SmallVector<Value> at =
      splitNumber(loop.getInductionVar(), {queryBlocks, keyBlocks});
  Value row = arith::MulIOp::create(b, loc, at[0], blockRows);
  Value column = arith::MulIOp::create(b, loc, at[1], blockColumns);
  Value queries = coordinates(row, numRows, 0);
  ScoreCoordinates position{block.batch32, block.head32, queries,
                            coordinates(column, numColumns, 1)};
  Factors lhs = loadFactors(block, /*isKey=*/false, row, numRows);
  Factors rhs = loadFactors(block, /*isKey=*/true, column, numColumns);
  Step step =
      buildAdjoints(outer, lhs, rhs, position, readRowNumbers(block, queries));
  Value added = buildAdditions(outer, step, part)[0];
  Value element = readElement(outer, step, part.sum, sizes);
  Value none = splat(b, loc, type, 0.0);
  SmallVector<Value> sums;
  for (auto [i, before] : llvm::enumerate(loop.getRegionIterArgs())) {
    Value number = arith::AddIOp::create(
        b, loc, toCoordinate(b, loc, first),
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(i)));
    Value isElement =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, element,
                              broadcast(number, element.getType()));
    Value own = arith::SelectOp::create(b, loc, isElement, added, none);
    sums.push_back(arith::AddFOp::create(b, loc, before, sumColumns(own)));
  }
  endLoop(loop, sums);
  for (auto [i, sum] : llvm::enumerate(loop.getResults())) {
    Value place = arith::AddIOp::create(
        b, loc, first, arith::ConstantIndexOp::create(b, loc, i));
    tile::StoreOp::create(b, loc, sum, stored,
                          ValueRange{block.batch, block.head, place, c0});
  }
  expandAllScores(kernel);
  return stored;
}

void BackwardKernels::sumTable(CapturePart &part, const Twine &suffix) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> sizes = getTableSizes(part.sum);
  Value numElements = multiplySizes(sizes);
  Value stored = sumElements(part, suffix, sizes);
  part.workspace = allocate(f32, {batches, heads, numElements});
  tile::KernelOp kernel = beginKernel(
      suffix + "_table",
      ValueRange{batches, heads, ceilDiv(b, loc, numElements, blockRows)});
  BlockNumbers block = readNumbers(kernel);
  Value elements = coordinates(block.first, numRows, 0);
  int64_t shape[] = {numRows, numColumns};
  Value zero = splat(b, loc, VectorType::get(shape, f32), 0.0);
  scf::ForOp loop =
      beginLoop(c0, ceilDiv(b, loc, blockRows, blockColumns), zero);
  Value first =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value read = gather(stored,
                      {block.batch32, block.head32, elements,
                       coordinates(first, numColumns, 1)},
                      shape);
  endLoop(loop, arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], read)
                    .getResult());
  tile::StoreOp::create(b, loc, sumColumns(loop.getResult(0)), part.workspace,
                        ValueRange{block.batch, block.head, block.first});
}
