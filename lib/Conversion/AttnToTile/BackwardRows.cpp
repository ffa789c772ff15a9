//===- BackwardRows.cpp - small kernels beside those of gradients ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is computed once per row, before and after the products.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "attn/Support/OptionalPasses.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace attn;

static constexpr double infinity = std::numeric_limits<double>::infinity();

Value BackwardKernels::allocate(Type type, ArrayRef<Value> sizes) {
  return attn::allocate(b, loc, type, sizes);
}

/// The sum of a matrix over its columns, M.
Value BackwardKernels::sumColumns(Value matrix) {
  auto type = cast<VectorType>(matrix.getType());
  auto rowType = VectorType::get(type.getDimSize(0), type.getElementType());
  return vector::MultiDimReductionOp::create(
      b, loc, matrix, splat(b, loc, rowType, 0.0), ArrayRef<bool>{false, true},
      vector::CombiningKind::ADD);
}

/// M or M x 1 as the other one.
static Value reshape(OpBuilder &b, Location loc, Value vector,
                     ArrayRef<int64_t> shape) {
  Type element = cast<VectorType>(vector.getType()).getElementType();
  return vector::ShapeCastOp::create(b, loc, VectorType::get(shape, element),
                                     vector);
}

/// The lse that the forward saved.
Value BackwardKernels::readSavedLse(const BlockNumbers &block, Value rows) {
  return gather(lse, {block.batch32, block.head32, rows},
                cast<VectorType>(rows.getType()).getShape());
}

/// Rows without keys, by their saved lse, and those past the last query.
Value BackwardKernels::findEmptyRows(Value rows, Value savedLse) {
  auto type = cast<VectorType>(savedLse.getType());
  Value isEmpty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, savedLse,
                            splat(b, loc, type, -infinity));
  Value length = broadcast(queryLength32, rows.getType());
  Value isPastEnd =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, rows, length);
  return arith::OrIOp::create(b, loc, isEmpty, isPastEnd);
}

/// `numbers` of rows, `other` where `isNone`.
Value BackwardKernels::replaceNone(Value numbers, Value isNone, double other) {
  Value none = splat(b, loc, cast<VectorType>(numbers.getType()), other);
  return arith::SelectOp::create(b, loc, isNone, none, numbers);
}

/// The saved lse, +inf of rows without keys: their weights are 0.
Value BackwardKernels::replaceEmpty(Value rows, Value savedLse) {
  return replaceNone(savedLse, findEmptyRows(rows, savedLse), infinity);
}

/// delta = rowsum(dO * O) (Dao, "FlashAttention-2", algorithm 2), less d_lse.
Value BackwardKernels::computeDelta(const BlockNumbers &block, Value rows) {
  auto type = VectorType::get(cast<VectorType>(rows.getType()).getShape(), f32);
  int64_t size = type.getDimSize(0);
  auto whole = VectorType::get({size, paddedValueDim}, f32);
  auto read = [&](Value view) -> Value {
    Value tile =
        load(view, block, block.head, block.first, size, paddedValueDim);
    return element.isF32() ? tile : arith::ExtFOp::create(b, loc, whole, tile);
  };
  Value dRow = read(dOutput), row = read(output);
  Value product = arith::MulFOp::create(b, loc, dRow, row);
  Value delta = reshape(b, loc, sumColumns(product), type.getShape());
  if (dLse)
    delta = arith::SubFOp::create(
        b, loc, delta,
        gather(dLse, {block.batch32, block.head32, rows}, type.getShape()));
  return delta;
}

/// A number of each row of the block.
void BackwardKernels::storeRows(const BlockNumbers &block, Value numbers,
                                Value view) {
  int64_t size = cast<VectorType>(numbers.getType()).getDimSize(0);
  tile::StoreOp::create(b, loc, reshape(b, loc, numbers, size), view,
                        ValueRange{block.batch, block.head, block.first});
}

/// Those of a block of `_rows`; those of other kernels are multiples of it.
int64_t BackwardKernels::getRowsOfWarp() const {
  constexpr int64_t most = 32;
  return std::gcd(most, std::gcd(numRows, numColumns));
}

void BackwardKernels::buildRows(bool withQueries, bool hasQuerySums) {
  OpBuilder::InsertionGuard guard(b);
  // Rows of dO are read once where the kernel of d_query computes delta, too.
  // But kernels that read what none of them writes may run beside each other:
  // where tiles are few that takes 0.56 to 0.9 of the time (H200, sm_90a).
  PlanAttr plan = attention.getPlanAttr();
  hasDelta = !withQueries || plan.getSplitKeys() != 1 ||
             plan.getPasses().runs(OptionalPass::StartEarly);
  // The blocks of queries of a key block end within. Those of d_query may end
  // later: there is nothing to read, and nothing is written.
  int64_t unit = std::lcm<int64_t>(numRows, numColumns);
  Value unitSize = arith::ConstantIndexOp::create(b, loc, unit);
  paddedQueries = b.createOrFold<arith::MulIOp>(
      loc, ceilDiv(b, loc, queryLength, unitSize), unitSize);
  rowOffset = allocate(f32, {batches, heads, paddedQueries});
  rowDelta = allocate(f32, {batches, heads, paddedQueries});

  if (hasQuerySums)
    allocateQuerySums();
  int64_t size = getRowsOfWarp();
  Value blockSize = arith::ConstantIndexOp::create(b, loc, size);
  // A warp alone: where eight are a block, all wait for the last one of it (128
  // columns, 16384 x 2048 elements, H200: 45 us, so 36).
  tile::KernelOp kernel = beginKernel(
      "_rows",
      ValueRange{batches, heads, ceilDiv(b, loc, paddedQueries, blockSize)},
      attention.getPlanAttr().withOneWarp());
  BlockNumbers block = readNumbers(kernel, blockSize, /*fromTheEnd=*/true);
  if (hasQuerySums)
    clearQuerySums(block);
  Value rows = coordinates(block.first, size, 0);
  // The long rows are read first.
  Value delta = hasDelta ? computeDelta(block, rows) : Value();
  Value saved = readSavedLse(block, rows);
  // (C10): a row without keys gives nothing, whatever d_lse is there.
  Value isNone = findEmptyRows(rows, saved);
  if (hasDelta)
    storeRows(block, replaceNone(delta, isNone, 0), rowDelta);
  Value logSum = replaceNone(saved, isNone, infinity);
  Value offset = multiply(logSum, -llvm::numbers::log2e);
  storeRows(block, offset, rowOffset);
  if (op.getRecompute()->getLse() == RecomputedLse::Never)
    return;
  storeFarRows(block, logSum, offset);
  b.setInsertionPointAfter(kernel);
  buildFarRows();
}

/// Rows of a tile that is a sum of others.
static constexpr int64_t summedRows = 16;

/// How many query heads are read before the first is added: 2, or one of an odd
/// number that is known.
static int64_t countHeadsAtOnce(std::optional<int64_t> heads) {
  constexpr int64_t most = 2;
  return heads && *heads % most != 0 ? 1 : most;
}

/// A warp has a few rows and columns: many read at the same time. Rows behind
/// the last one read what that one has, and are not stored.
void BackwardKernels::sumParts(const SummedParts &sum, Value numBatches) {
  OpBuilder::InsertionGuard guard(b);
  constexpr int64_t size = summedRows;
  int64_t width = sum.width;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value columnBlocks = constant(llvm::divideCeil(sum.numColumns, width));
  Value rowBlocks = ceilDiv(b, loc, sum.length, constant(size));
  tile::KernelOp kernel = beginKernel(
      sum.suffix,
      ValueRange{numBatches, sum.heads,
                 b.createOrFold<arith::MulIOp>(loc, rowBlocks, columnBlocks)},
      attention.getPlanAttr().withOneWarp());
  auto numbers = kernel.getNumbers();
  Value rowBlock =
      b.createOrFold<arith::DivUIOp>(loc, numbers[2], columnBlocks);
  Value columnBlock =
      b.createOrFold<arith::RemUIOp>(loc, numbers[2], columnBlocks);
  Value firstRow = b.createOrFold<arith::MulIOp>(loc, rowBlock, constant(size));
  Value firstColumn =
      b.createOrFold<arith::MulIOp>(loc, columnBlock, constant(width));
  Value rows = coordinates(firstRow, size, 0);
  Value lastRow =
      toCoordinate(b, loc, arith::SubIOp::create(b, loc, sum.length, c1));
  rows =
      arith::MinSIOp::create(b, loc, rows, broadcast(lastRow, rows.getType()));
  Value columns = coordinates(firstColumn, width, 1);
  Value owner = numbers[sum.areOfBatches ? 0 : 1];
  Value other32 = toCoordinate(b, loc, numbers[sum.areOfBatches ? 1 : 0]);
  auto type = VectorType::get({size, width}, f32);
  Value zero = splat(b, loc, type, 0.0);
  Value first = arith::MulIOp::create(b, loc, owner, sum.parts);
  Value end = arith::AddIOp::create(b, loc, first, sum.parts);
  std::optional<int64_t> known = getConstantIntValue(sum.parts);
  auto loop =
      scf::ForOp::create(b, loc, first, end, constant(sum.atOnce), zero);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> parts;
  for (int64_t place = 0; place != sum.atOnce; ++place) {
    Value number = b.createOrFold<arith::AddIOp>(loc, loop.getInductionVar(),
                                                 constant(place));
    Value isThere =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, end);
    bool isAlways = place == 0 || known;
    if (!isAlways)
      number = arith::SelectOp::create(b, loc, isThere, number, first);
    Value at32 = toCoordinate(b, loc, number);
    SmallVector<Value> at = {at32, other32, rows, columns};
    if (!sum.areOfBatches)
      std::swap(at[0], at[1]);
    Value part = tile::GatherOp::create(b, loc, type, sum.workspace, at,
                                        /*sorted=*/false, /*inside=*/true,
                                        /*aligned=*/true);
    if (!isAlways)
      part = arith::SelectOp::create(
          b, loc,
          broadcast(isThere, VectorType::get({size, width}, b.getI1Type())),
          part, zero);
    parts.push_back(part);
  }
  Value added = loop.getRegionIterArgs()[0];
  for (Value part : parts)
    added = arith::AddFOp::create(b, loc, added, part);
  scf::YieldOp::create(b, loc, added);

  b.setInsertionPointAfter(loop);
  Value scaled = multiply(loop.getResult(0), sum.factor);
  tile::StoreOp::create(
      b, loc, roundTo(b, loc, scaled, element), sum.output,
      ValueRange{numbers[0], numbers[1], firstRow, firstColumn});
}

/// Adds up what the query heads of a key head give, in their order.
void BackwardKernels::sumHeads(const Sum &sum, Value numBatches) {
  // Whole rows lie behind one another: 1.4 times as fast as 32 columns.
  int64_t width = summedRows;
  for (int64_t wider : {128, 64, 32})
    if (width == summedRows && sum.numColumns % wider == 0)
      width = wider;
  sumParts({sum.isKey ? "_sum_key" : "_sum_value", sum.workspace, sum.output,
            sum.numColumns, sum.factor, keyHeads, headsPerKeyHead, keyLength,
            /*areOfBatches=*/false, width,
            countHeadsAtOnce(getConstantIntValue(headsPerKeyHead))},
           numBatches);
}

/// d_sink[h] = sum over b, i of exp(sink[h] - lse) * (d_lse - delta), of each
/// block of queries, and then of all. A tile has a row for each head.
void BackwardKernels::buildSinkGradient(Value gradient) {
  OpBuilder::InsertionGuard guard(b);
  Value queryBlocks = ceilDiv(b, loc, queryLength, blockColumns);
  Value numParts = b.createOrFold<arith::MulIOp>(loc, batches, queryBlocks);
  Value parts = allocate(f32, {numParts, heads});
  Value headBlocks = ceilDiv(b, loc, heads, blockRows);
  int64_t whole[] = {numRows, numColumns}, one[] = {numRows, 1};
  auto type = VectorType::get(whole, f32);

  tile::KernelOp kernel =
      beginKernel("_sink_parts", ValueRange{batches, queryBlocks, headBlocks});
  auto numbers = kernel.getNumbers();
  Value batch32 = toCoordinate(b, loc, numbers[0]);
  Value firstHead = arith::MulIOp::create(b, loc, numbers[2], blockRows);
  Value firstRow = arith::MulIOp::create(b, loc, numbers[1], blockColumns);
  Value headNumbers = coordinates(firstHead, numRows, 0);
  Value at[] = {batch32, headNumbers, coordinates(firstRow, numColumns, 1)};
  Value logits = broadcast(gather(sink, headNumbers, one), type);
  Value rows = broadcast(at[2], VectorType::get(whole, b.getI32Type()));
  Value saved = replaceEmpty(rows, gather(lse, at, whole));
  Value weights = weighNear(logits, saved);
  if (rowRest) {
    Value far = raiseFar(logits, gather(rowOffset, at, whole),
                         [&] { return gather(rowRest, at, whole); });
    bool isAlways = op.getRecompute()->getLse() == RecomputedLse::Always;
    weights = isAlways ? far
                       : arith::SelectOp::create(b, loc, findFarRows(saved),
                                                 far, weights)
                             .getResult();
  }
  Value products =
      arith::MulFOp::create(b, loc, weights, gather(rowDelta, at, whole));
  Value part = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, numbers[0], queryBlocks),
      numbers[1]);
  tile::StoreOp::create(b, loc, sumColumns(products), parts,
                        ValueRange{part, firstHead});
  b.setInsertionPointAfter(kernel);

  kernel = beginKernel("_d_sink", ValueRange{c1, c1, headBlocks});
  firstHead = arith::MulIOp::create(b, loc, kernel.getNumbers()[2], blockRows);
  headNumbers = coordinates(firstHead, numRows, 0);
  auto loop = scf::ForOp::create(b, loc, c0, numParts, blockColumns,
                                 splat(b, loc, type, 0.0));
  b.setInsertionPointToStart(loop.getBody());
  Value columns = coordinates(loop.getInductionVar(), numColumns, 1);
  Value read = gather(parts, {columns, headNumbers}, whole);
  Value sum = arith::SubFOp::create(b, loc, loop.getRegionIterArgs()[0], read);
  scf::YieldOp::create(b, loc, sum);
  b.setInsertionPointAfter(loop);
  Type sinkType = cast<MemRefType>(gradient.getType()).getElementType();
  Value total = sumColumns(loop.getResult(0));
  tile::StoreOp::create(b, loc, roundTo(b, loc, total, sinkType), gradient,
                        firstHead);
}
