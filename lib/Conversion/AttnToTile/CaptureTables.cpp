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
// which costs all scores once more.
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

/// The number of the query among the arguments of a pullback; that of the key
/// follows.
static constexpr unsigned firstPosition = 4;

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

/// How many bins a plan for a GPU has memory for beside its tiles, up to
/// `most`.
int64_t BackwardKernels::countBins(PlanAttr plan, bool hasRows, int64_t most) {
  constexpr int64_t step = 8, bytesOfNumber = 4;
  constexpr int64_t barrierBytes = 4096;
  int64_t rows = plan.getBlockQ(), warps = plan.getWarps();
  int64_t bytesOfBin = bytesOfNumber * layout::warpSize * warps;
  if (hasRows)
    bytesOfBin *= layout::Fragment{layout::FragmentKind::Acc, rows, 1, warps}
                      .numRegisters();
  const TargetInfo &target = plan::getTarget(plan.getTarget());
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  bool hasPanels = target.hasWarpgroups && elementBytes == 2;
  auto countBytes = [&](int64_t columns) -> int64_t {
    int64_t bytes = columns * elementBytes;
    return hasPanels ? llvm::alignTo(bytes, layout::choosePanelBytes(bytes))
                     : bytes;
  };
  int64_t bytesOfRow = countBytes(paddedDim) + countBytes(paddedValueDim);
  int64_t left = target.sharedBytesPerBlock - barrierBytes -
                 (rows + plan.getStages() * plan.getBlockK()) * bytesOfRow;
  // Some rows of the slot are of no bin.
  int64_t count = std::max<int64_t>(left, 0) / bytesOfBin / step * step - step;
  return std::clamp<int64_t>(count, 0, most);
}

/// A plan in which warps have whole rows, that of the attention or one of fewer
/// rows, and how many bins it has: all scores are made for each chunk, or for
/// all chunks together and a few more for each (`isBanded`), and take twice the
/// time with half of the rows.
std::pair<PlanAttr, int64_t>
BackwardKernels::chooseBinPlan(bool hasRows, bool isBanded,
                               std::optional<int64_t> elements) {
  // Distances up to 64 to both sides are 129 elements.
  constexpr int64_t unknown = 64, known = 136, step = 8;
  constexpr int64_t chunksOfAll = 32; // that take as long as all scores
  PlanAttr plan = getPlanOfRows();
  int64_t size = elements.value_or(unknown);
  int64_t most = std::clamp<int64_t>(llvm::alignTo(size, step), step, known);
  if (plan.getTarget() == TargetKind::CPU)
    return {plan, most};
  bool hasGroups = plan::getTarget(plan.getTarget()).hasWarpgroups;
  int64_t leastRows = hasGroups ? layout::groupOfWarpsRows : layout::groupRows;
  // Where none fits, what is placed says so.
  std::pair<PlanAttr, int64_t> best = {plan, step};
  int64_t least = std::numeric_limits<int64_t>::max(), cost = 1;
  for (int64_t rows = plan.getBlockQ(); rows % leastRows == 0;
       rows /= 2, cost *= 2) {
    int64_t warps = std::min(plan.getWarps(), rows / layout::groupRows);
    PlanAttr own =
        plan.withTiles(rows, plan.getBlockK(), warps, plan.getStages());
    int64_t bins = countBins(own, hasRows, most);
    if (bins == 0)
      continue;
    int64_t chunks = llvm::divideCeil(size, bins);
    int64_t time = cost * (isBanded ? chunks + chunksOfAll : chunks);
    if (time >= least)
      continue;
    best = {own, bins};
    least = time;
  }
  return best;
}

/// Where an element is a quotient of a position by a constant: the positions of
/// which a chunk has elements.
BackwardKernels::ShownBox
BackwardKernels::findShownByQuotient(Value index, Value chunk, int64_t count) {
  Operation *quotient = index.getDefiningOp();
  if (!isa_and_present<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(
          quotient))
    return {};
  auto position = dyn_cast<BlockArgument>(quotient->getOperand(0));
  int64_t divisor = getConstantIntValue(quotient->getOperand(1)).value_or(0);
  if (!position || position.getArgNumber() < firstPosition || divisor <= 0)
    return {};
  bool isKey = position.getArgNumber() > firstPosition;
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

/// The distance that numbers the elements of a table, if one does.
static std::optional<ClampedDistance> findDistance(const CaptureSum &sum) {
  SmallVector<unsigned> dims = sum.getTableDims();
  if (dims.size() != 1)
    return std::nullopt;
  Block &pullback = *CaptureAddOp(sum.op)->getBlock();
  return matchClampedDistance(sum.getIndex(dims.front()),
                              pullback.getArgument(firstPosition),
                              pullback.getArgument(firstPosition + 1));
}

/// The keys and queries of which a chunk has elements: the others need not be
/// visited.
BackwardKernels::ShownBox BackwardKernels::findShown(const CaptureSum &sum,
                                                     Value chunk,
                                                     const TableBlock &block) {
  if (std::optional<ClampedDistance> distance = findDistance(sum))
    return findShownByDistance(*distance, block,
                               sum.find(IndexKind::Key).has_value());
  SmallVector<unsigned> dims = sum.getTableDims();
  if (dims.size() != 1)
    return {};
  return findShownByQuotient(sum.getIndex(dims.front()), chunk, block.count);
}

/// Sums by batch entry, head, row or part of all rows, and element.
Value BackwardKernels::sumElements(CapturePart &part, const Twine &suffix,
                                   ArrayRef<Value> sizes) {
  OpBuilder::InsertionGuard guard(b);
  const CaptureSum &sum = part.sum;
  bool isKey = sum.find(IndexKind::Key).has_value();
  bool hasRows = sum.findTableRow().has_value();
  auto [plan, count] = chooseBinPlan(hasRows, findDistance(sum).has_value(),
                                     getConstantIntValue(multiplySizes(sizes)));
  Value width = arith::ConstantIndexOp::create(b, loc, count);
  Value numElements = multiplySizes(sizes);
  Value numChunks = ceilDiv(b, loc, numElements, width);
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
  Value stored = allocate(f32, {batches, heads, numStored, numElements});
  Value numSteps = ceilDiv(b, loc, passingLength, blockColumns);
  tile::KernelOp kernel = beginKernel(
      suffix + "_elements",
      ValueRange{batches, heads,
                 b.createOrFold<arith::MulIOp>(loc, numBlocks, numChunks)},
      plan);
  BlockNumbers block = readNumbers(kernel);
  SmallVector<Value> at = splitNumber(block.number, {numBlocks, numChunks});
  block.number = at[0];
  block.first = arith::MulIOp::create(b, loc, block.number, height);
  Value firstElement = arith::MulIOp::create(b, loc, at[1], width);
  Value own = coordinates(block.first, rows, 0);
  Factors lhs = loadFactors(block, isKey, block.first, rows);
  RowNumbers numbers;
  if (!isKey)
    numbers = readRowNumbers(block, own);
  SmallVector<int64_t> shape = {count};
  if (hasRows)
    shape.insert(shape.begin(), rows);
  Value bins = tile::BinsOp::create(b, loc, MemRefType::get(shape, f32));
  ShownBox shown;
  if (numChunks != c1)
    shown = findShown(sum, at[1], {block.first, rows, firstElement, count});
  auto loop = scf::ForOp::create(b, loc, c0, numSteps, c1);

  OpBuilder outer(loop);
  b.setInsertionPointToStart(loop.getBody());
  Step step = buildPassing(outer, block, isKey, own, lhs, numbers,
                           loop.getInductionVar(), shown);
  Value added = buildAdditions(outer, step, part)[0];
  Value number = readElement(outer, step, sum, sizes);
  if (numChunks != c1)
    number = arith::SubIOp::create(
        b, loc, number,
        broadcast(toCoordinate(b, loc, firstElement), number.getType()));
  tile::ScatterAddOp::create(b, loc, added, bins, number);

  b.setInsertionPointAfter(loop);
  Value firstStored =
      hasRows ? block.first
              : arith::MulIOp::create(b, loc, block.number, partsOfBlock)
                    .getResult();
  tile::StoreBinsOp::create(
      b, loc, bins, stored,
      ValueRange{block.batch, block.head, firstStored, firstElement});
  return stored;
}

void BackwardKernels::sumTable(CapturePart &part, const Twine &suffix) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> sizes = getTableSizes(part.sum);
  Value stored = sumElements(part, suffix, sizes);
  if (part.sum.findTableRow()) {
    part.workspace = stored;
    return;
  }
  Value numElements = multiplySizes(sizes);
  part.workspace = allocate(f32, {batches, heads, numElements});
  Value numParts = b.createOrFold<memref::DimOp>(loc, stored, 2);
  tile::KernelOp kernel = beginKernel(
      suffix + "_table",
      ValueRange{batches, heads, ceilDiv(b, loc, numElements, blockRows)});
  BlockNumbers block = readNumbers(kernel);
  Value elements = coordinates(block.first, numRows, 0);
  int64_t shape[] = {numRows, numColumns};
  Value zero = splat(b, loc, VectorType::get(shape, f32), 0.0);
  scf::ForOp loop =
      beginLoop(c0, ceilDiv(b, loc, numParts, blockColumns), zero);
  Value first =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value read = gather(stored,
                      {block.batch32, block.head32,
                       coordinates(first, numColumns, 1), elements},
                      shape);
  endLoop(loop, arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], read)
                    .getResult());
  tile::StoreOp::create(b, loc, sumColumns(loop.getResult(0)), part.workspace,
                        ValueRange{block.batch, block.head, block.first});
}
