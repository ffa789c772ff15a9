//===- BackwardCaptures.cpp - sums of what goes back to captures ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores, weights and dy of a block are made again, as for dQ; the pullback
// makes of them what is added. No two blocks add to one element (C17):
//
//   Rows       sums over the keys of each query, by block of queries
//   Keys       sums over the queries of each key, by block of keys
//   Distances  CaptureDistances.cpp
//   Pairs      the gradient itself is stored, block by block; batch entries and
//              heads that share it are summed in the block
//
// Kernels of CaptureGradients.cpp make gradients of the first three.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Plan/Plan.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The digits of a number of that many, the last one fastest.
SmallVector<Value> BackwardKernels::splitNumber(Value number,
                                                ArrayRef<Value> sizes) {
  SmallVector<Value> digits(sizes.size(), c0);
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == c1)
      continue;
    bool isFirst = llvm::all_of(sizes.take_front(i),
                                [&](Value size) { return size == c1; });
    digits[i] =
        isFirst ? number
                : arith::RemSIOp::create(b, loc, number, sizes[i]).getResult();
    if (isFirst)
      break;
    number = arith::DivSIOp::create(b, loc, number, sizes[i]);
  }
  return digits;
}

Value BackwardKernels::multiplySizes(ArrayRef<Value> sizes) {
  Value product = c1;
  for (Value size : sizes)
    if (size != c1)
      product = product == c1
                    ? size
                    : b.createOrFold<arith::MulIOp>(loc, product, size);
  return product;
}

/// A loop whose code stands in it all: nothing is built before it. The builder
/// then stands at its end.
scf::ForOp BackwardKernels::beginLoop(Value first, Value end,
                                      ValueRange initial) {
  auto loop = scf::ForOp::create(b, loc, first, end, c1, initial);
  b.setInsertionPointToEnd(loop.getBody());
  b.setInsertionPoint(scf::YieldOp::create(b, loc, loop.getRegionIterArgs()));
  return loop;
}

/// The builder then stands after the loop.
void BackwardKernels::endLoop(scf::ForOp loop, ValueRange results) {
  loop.getBody()->getTerminator()->setOperands(results);
  b.setInsertionPointAfter(loop);
}

/// What the pullback computes as an index, for those positions.
Value BackwardKernels::readIndex(Value index, const ScoreCoordinates &at,
                                 ArrayRef<int64_t> shape) {
  OpBuilder outer(b);
  Value number = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  Value arguments[] = {number, number, at.batch, at.head, at.queries, at.keys};
  Region region;
  copyRegion(outer, b, op.getPullback(), region, arguments, captures, index);
  return tile::expandScalarCode(b, &*b.getInsertionPoint(), region, arguments,
                                shape);
}

//===----------------------------------------------------------------------===//
// Blocks of scores
//===----------------------------------------------------------------------===//

/// Rows of key and value, or of query and d_output.
BackwardKernels::Factors BackwardKernels::loadFactors(const BlockNumbers &block,
                                                      bool isKey, Value row,
                                                      int64_t rows) {
  Value head = isKey ? block.keyHead : block.head;
  return {
      load(isKey ? key : query, block, head, row, rows, paddedDim),
      load(isKey ? value : dOutput, block, head, row, rows, paddedValueDim)};
}

/// Scores of a block and what goes back to them.
BackwardKernels::Step
BackwardKernels::buildAdjoints(OpBuilder &outer, const Factors &lhs,
                               const Factors &rhs, const ScoreCoordinates &at,
                               const RowNumbers &rows, const ShownBox &shown) {
  Value products = multiplyTransposed(outer, lhs.product, rhs.product);
  Value dWeights = multiplyTransposed(outer, lhs.dWeights, rhs.dWeights);
  // Less delta it is small where a row has few keys, and sums over thousands of
  // rows keep what a product errs in one direction: 1.02 of the error rule for
  // a slope with one key on a GPU (delta rounds to nearest).
  if (element.isF32())
    dWeights.getDefiningOp()->setDiscardableAttr(
        tile::TileDialect::kIeeeAttrName, b.getUnitAttr());
  Step step{at, products};
  addScores(outer, step);
  step.weights = weigh(step, rows.isFar, rows.offset,
                       [&] { return weighNear(step.scores, rows.lse); });
  hideQueriesPastEnd(step, shown);
  step.adjoint = buildAdjoint(outer, step, dWeights, rows.delta);
  return step;
}

/// What a block adds.
Value BackwardKernels::buildAddition(OpBuilder &outer, const Step &step,
                                     const CapturePart &part) {
  return goBack(outer, step, step.adjoint,
                CaptureAddOp(part.sum.op).getValue());
}

/// A number of queries that lie along an axis.
Value BackwardKernels::readQueries(Value view, const BlockNumbers &block,
                                   Value queries) {
  auto type = cast<VectorType>(queries.getType());
  return gather(view, {block.batch32, block.head32, queries}, type.getShape());
}

BackwardKernels::RowNumbers
BackwardKernels::readRowNumbers(const BlockNumbers &block, Value queries) {
  return {replaceEmpty(queries, readSavedLse(block, queries)),
          readQueries(rowOffset, block, queries),
          readQueries(rowDelta, block, queries), readFarHead(block)};
}

/// The same plan with one slot for each tile, as here those of both sides
/// change from step to step, and tiles of so many columns, if that is not 0.
PlanAttr BackwardKernels::getPlanWithoutRings(int64_t columns) {
  PlanAttr plan = getPlanOfRows();
  return plan.withTiles(plan.getBlockQ(), columns ? columns : plan.getBlockK(),
                        plan.getWarps(), /*stages=*/1);
}

/// The loops of a kernel are not over the blocks that a tile sees.
void BackwardKernels::expandAllScores(tile::KernelOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  SmallVector<tile::ScoresOp> ops;
  kernel.walk([&](tile::ScoresOp op) { ops.push_back(op); });
  for (tile::ScoresOp op : ops)
    tile::expandScores(rewriter, op);
}

//===----------------------------------------------------------------------===//
// Sums by query and key
//===----------------------------------------------------------------------===//

/// Scores of own queries (or keys, if `isKey`) with a block of the others, and
/// what goes back to them. `numbers` are those of own queries.
BackwardKernels::Step
BackwardKernels::buildPassing(OpBuilder &outer, const BlockNumbers &block,
                              bool isKey, Value own, const Factors &lhs,
                              RowNumbers numbers, Value number,
                              const ShownBox &shown) {
  Value row = arith::MulIOp::create(b, loc, number, blockColumns);
  Value passing = coordinates(row, numColumns, 1);
  if (isKey)
    numbers = readRowNumbers(block, passing);
  ScoreCoordinates at{block.batch32, block.head32, isKey ? passing : own,
                      isKey ? own : passing};
  Factors rhs = loadFactors(block, !isKey, row, numColumns);
  return buildAdjoints(outer, lhs, rhs, at, numbers, shown);
}

/// Those that all queries of a head share are behind one another.
void BackwardKernels::allocateSums(bool isKey,
                                   MutableArrayRef<CapturePart> parts) {
  Value length = isKey ? keyLength : queryLength;
  SmallVector<CapturePart *> shared;
  for (CapturePart &part : parts)
    if (isKey || part.sum.find(IndexKind::Query)) {
      part.workspace = allocate(f32, {batches, heads, length});
    } else {
      part.place = shared.size();
      shared.push_back(&part);
    }
  if (shared.empty())
    return;
  Value count = arith::ConstantIndexOp::create(b, loc, shared.size());
  Value workspace = allocate(f32, {count, batches, heads, length});
  for (CapturePart *part : shared)
    part->workspace = workspace;
}

/// What sums of the rows of a block begin with.
void BackwardKernels::beginSums(ArrayRef<CapturePart> parts, int64_t rows,
                                SmallVectorImpl<Value> &initial) {
  if (!parts.empty())
    initial.append(parts.size(),
                   splat(b, loc, VectorType::get(rows, f32), 0.0));
}

/// The sums with those of another block of columns. What one adds is summed
/// before the next is made: it has as many registers as scores.
SmallVector<Value> BackwardKernels::addSums(OpBuilder &outer, const Step &step,
                                            ArrayRef<CapturePart> parts,
                                            ValueRange before) {
  SmallVector<Value> sums;
  for (auto [part, old] : llvm::zip(parts, before)) {
    Value added = sumColumns(buildAddition(outer, step, part));
    sums.push_back(arith::AddFOp::create(b, loc, old, added));
  }
  return sums;
}

void BackwardKernels::storeSums(const BlockNumbers &block,
                                ArrayRef<CapturePart> parts, ValueRange sums) {
  for (auto [part, sum] : llvm::zip(parts, sums)) {
    SmallVector<Value> at = {block.batch, block.head, block.first};
    if (part.place)
      at.insert(at.begin(),
                arith::ConstantIndexOp::create(b, loc, *part.place));
    tile::StoreOp::create(b, loc, sum, part.workspace, at);
  }
}

/// For so many there are registers beside other sums, of as many columns
/// without warpgroups. For f32 the weights of those are too far off
/// (`buildAdjoints`).
bool BackwardKernels::areBesideOthers(ArrayRef<CapturePart> parts) {
  constexpr size_t most = 2;
  constexpr int64_t mostColumns = 128;
  TargetKind target = attention.getPlanAttr().getTarget();
  if (target == TargetKind::CPU || element.isF32() || parts.size() > most)
    return false;
  return plan::getTarget(target).hasWarpgroups || paddedDim <= mostColumns;
}

/// The kernel of d_query adds up what goes back to captures over the keys of
/// each query, too: no other one makes all scores for it once more.
MutableArrayRef<BackwardKernels::CapturePart>
BackwardKernels::takeRowSums(PlanAttr plan) {
  if (plan.getSplitKeys() != 1 || !areBesideOthers(rowSums))
    return {};
  hasRowSums = true;
  allocateSums(/*isKey=*/false, rowSums);
  return rowSums;
}

/// As that of d_key does over the queries of each key, unless it goes through
/// several heads, or has both products of d_query and data of a mask in
/// registers.
MutableArrayRef<BackwardKernels::CapturePart> BackwardKernels::takeKeySums() {
  bool isFull = querySums && attention.hasMask() &&
                !attention.getMask().getOps<CaptureLoadOp>().empty();
  if (attention.getPlanAttr().getPasses().runs(OptionalPass::LoopHeads) ||
      isFull || !areBesideOthers(keySums))
    return {};
  hasKeySums = true;
  allocateSums(/*isKey=*/true, keySums);
  return keySums;
}

/// Sums by query, or by key, in kernels of as many as there are registers for.
void BackwardKernels::sumBlocks(bool isKey,
                                MutableArrayRef<CapturePart> parts) {
  constexpr size_t most = 16;
  allocateSums(isKey, parts);
  size_t kernels = llvm::divideCeil(parts.size(), most);
  for (size_t number = 0; number < kernels; ++number) {
    size_t first = parts.size() * number / kernels;
    size_t end = parts.size() * (number + 1) / kernels;
    std::string suffix = isKey ? "_capture_keys" : "_capture_queries";
    if (number != 0)
      suffix += std::to_string(number);
    sumBlocks(isKey, parts.slice(first, end - first), suffix);
  }
}

void BackwardKernels::sumBlocks(bool isKey, ArrayRef<CapturePart> parts,
                                const Twine &suffix) {
  OpBuilder::InsertionGuard guard(b);
  PlanAttr plan = getSumPlan(parts.size());
  llvm::SaveAndRestore columns(numColumns, plan.getBlockK());
  llvm::SaveAndRestore columnsOfBlock(
      blockColumns,
      arith::ConstantIndexOp::create(b, loc, numColumns).getResult());
  Value length = isKey ? keyLength : queryLength;
  Value passingLength = isKey ? queryLength : keyLength;
  Value numBlocks = ceilDiv(b, loc, passingLength, blockColumns);
  tile::KernelOp kernel = beginKernel(
      suffix, ValueRange{batches, heads, ceilDiv(b, loc, length, blockRows)},
      plan);
  BlockNumbers block = readNumbers(kernel);
  Value own = coordinates(block.first, numRows, 0);
  Factors lhs = loadFactors(block, isKey, block.first, numRows);
  RowNumbers numbers;
  if (!isKey)
    numbers = readRowNumbers(block, own);
  SmallVector<Value> initial;
  beginSums(parts, numRows, initial);
  auto loop = scf::ForOp::create(b, loc, c0, numBlocks, c1, initial);

  OpBuilder outer(loop);
  b.setInsertionPointToStart(loop.getBody());
  Step step = buildPassing(outer, block, isKey, own, lhs, numbers,
                           loop.getInductionVar());
  scf::YieldOp::create(b, loc,
                       addSums(outer, step, parts, loop.getRegionIterArgs()));

  b.setInsertionPointAfter(loop);
  storeSums(block, parts, loop.getResults());
}

/// Sums over the queries of a batch entry and head, of all parts that they
/// share. A tile has a row for each head.
void BackwardKernels::sumQueries() {
  auto shared = llvm::make_filter_range(
      rowSums, [](const CapturePart &part) { return part.place.has_value(); });
  if (shared.empty())
    return;
  OpBuilder::InsertionGuard guard(b);
  Value byQuery = (*shared.begin()).workspace;
  Value count = b.createOrFold<memref::DimOp>(loc, byQuery, 0);
  Value total = allocate(f32, {count, batches, heads});
  tile::KernelOp kernel = beginKernel(
      "_capture_rows",
      ValueRange{batches, count, ceilDiv(b, loc, heads, blockRows)});
  BlockNumbers block = readNumbers(kernel);
  Value place = block.head, place32 = block.head32;
  Value headNumbers = coordinates(block.first, numRows, 0);
  int64_t shape[] = {numRows, numColumns};
  Value zero = splat(b, loc, VectorType::get(shape, f32), 0.0);
  scf::ForOp loop =
      beginLoop(c0, ceilDiv(b, loc, queryLength, blockColumns), zero);
  Value first =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value read = gather(
      byQuery,
      {place32, block.batch32, headNumbers, coordinates(first, numColumns, 1)},
      shape);
  endLoop(loop, arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], read)
                    .getResult());
  tile::StoreOp::create(b, loc, sumColumns(loop.getResult(0)), total,
                        ValueRange{place, block.batch, block.first});
  for (CapturePart &part : shared)
    part.workspace = total;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// A batch entry or a head of a block, and whether there is one of that number.
Value BackwardKernels::limitNumber(Value number, Value size, Value &exists) {
  Value isThere =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, size);
  exists =
      exists ? b.createOrFold<arith::AndIOp>(loc, exists, isThere) : isThere;
  Value last = b.createOrFold<arith::SubIOp>(loc, size, c1);
  return arith::MinSIOp::create(b, loc, number, last);
}

void BackwardKernels::buildPairGradient(Value output, const Twine &suffix,
                                        ArrayRef<CapturePart> parts) {
  OpBuilder::InsertionGuard guard(b);
  const CaptureSum &sum = parts.front().sum;
  unsigned rank = sum.kinds.size(), numOuter = rank - 2;
  bool isKey = sum.kinds[numOuter] == IndexKind::Key;
  SmallVector<Value> sizes;
  for (unsigned i = 0; i < rank; ++i)
    sizes.push_back(b.createOrFold<memref::DimOp>(loc, output, i));
  sizes[rank - 2] = ceilDiv(b, loc, sizes[rank - 2], blockRows);
  sizes[rank - 1] = ceilDiv(b, loc, sizes[rank - 1], blockColumns);
  std::optional<unsigned> batchDim = sum.find(IndexKind::Batch);
  std::optional<unsigned> headDim = sum.find(IndexKind::Head);
  // Batch entries and heads that share the gradient; one, where it has its own.
  auto countShared = [&](bool isOwn, Value size) -> Value {
    return isOwn ? b.createOrFold<arith::MinSIOp>(loc, size, c1) : size;
  };
  Value shared[] = {countShared(batchDim.has_value(), batches),
                    countShared(headDim.has_value(), heads)};
  Value numShared = b.createOrFold<arith::MulIOp>(loc, shared[0], shared[1]);
  tile::KernelOp kernel = beginKernel(
      suffix, ValueRange{c1, c1, multiplySizes(sizes)}, getPlanWithoutRings());
  SmallVector<Value> at = splitNumber(kernel.getNumbers()[2], sizes);
  at[rank - 2] = arith::MulIOp::create(b, loc, at[rank - 2], blockRows);
  at[rank - 1] = arith::MulIOp::create(b, loc, at[rank - 1], blockColumns);
  Value rows = coordinates(at[rank - 2], numRows, 0);
  Value columns = coordinates(at[rank - 1], numColumns, 1);
  auto type = VectorType::get({numRows, numColumns}, f32);
  Value zero = splat(b, loc, type, 0.0);
  scf::ForOp loop = beginLoop(c0, numShared, zero);

  OpBuilder outer(b);
  Value isThere;
  SmallVector<Value> own =
      splitNumber(loop.getInductionVar(),
                  {batchDim ? c1 : shared[0], headDim ? c1 : shared[1]});
  BlockNumbers block;
  block.batch =
      batchDim ? limitNumber(at[*batchDim], batches, isThere) : own[0];
  block.head = headDim ? limitNumber(at[*headDim], heads, isThere) : own[1];
  block.keyHead =
      b.createOrFold<arith::DivSIOp>(loc, block.head, headsPerKeyHead);
  block.batch32 = toCoordinate(b, loc, block.batch);
  block.head32 = toCoordinate(b, loc, block.head);
  ScoreCoordinates position{block.batch32, block.head32, isKey ? columns : rows,
                            isKey ? rows : columns};
  for (unsigned dim = 0; dim < numOuter; ++dim) {
    if (dim == batchDim || dim == headDim)
      continue;
    Value index = readIndex(sum.getIndex(dim), position, {});
    Value isIndex = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          index, toCoordinate(b, loc, at[dim]));
    isThere = isThere
                  ? arith::AndIOp::create(b, loc, isThere, isIndex).getResult()
                  : isIndex;
  }
  Factors lhs = loadFactors(block, isKey, at[rank - 2], numRows);
  Factors rhs = loadFactors(block, !isKey, at[rank - 1], numColumns);
  Value total = loop.getRegionIterArgs()[0];
  Step step = buildAdjoints(outer, lhs, rhs, position,
                            readRowNumbers(block, position.queries));
  for (const CapturePart &part : parts) {
    Value added = buildAddition(outer, step, part);
    if (isThere)
      added = arith::SelectOp::create(b, loc, isThere, added, zero);
    total = arith::AddFOp::create(b, loc, total, added);
  }
  endLoop(loop, total);
  Type stored = cast<MemRefType>(output.getType()).getElementType();
  tile::StoreOp::create(b, loc, roundTo(b, loc, loop.getResult(0), stored),
                        output, at);
  expandAllScores(kernel);
}
