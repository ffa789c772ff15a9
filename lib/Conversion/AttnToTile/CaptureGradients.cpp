//===- CaptureGradients.cpp - gradients of captures, of partial sums ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel has a row for each element of the innermost dimension of the
// gradient, and goes in order through the sums by batch entry, head and query,
// key or distance that can belong to it. A dimension whose index is a batch
// entry, head, query or key has that number; for any other one the code of the
// index is computed again, and says what belongs to an element. Where that is
// asked of the queries, keys or distances of all heads, a kernel with a block
// for each head goes through its own first: the elements alone may be one
// block.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// The dimension that numbers the queries, keys or nothing of a sum.
static std::optional<unsigned> findOwnDim(const CaptureSum &sum) {
  if (sum.form == SumForm::Distances)
    return std::nullopt;
  if (sum.form == SumForm::Table)
    return sum.findTableRow();
  return sum.find(sum.form == SumForm::Keys ? IndexKind::Key
                                            : IndexKind::Query);
}

/// The dimension of the table whose index is the distance of that digit.
static std::optional<unsigned> findDigitDim(const CaptureSum &sum,
                                            unsigned digit) {
  for (auto [dim, own] : llvm::enumerate(sum.ownDigits))
    if (own && own->digit == digit)
      return dim;
  return std::nullopt;
}

/// The dimensions of the workspace of a part, queries, keys or distances, that
/// no dimension of the capture numbers.
static SmallVector<unsigned> findPassing(const CaptureSum &sum,
                                         bool isNumbered) {
  bool isDistance = sum.form == SumForm::Distances;
  SmallVector<unsigned> passing;
  if (!isNumbered || findOwnDim(sum) || sum.form == SumForm::Table)
    return passing;
  for (unsigned dim = 2; dim < 2 + (isDistance ? sum.scales.size() : 1); ++dim)
    if (!isDistance || !findDigitDim(sum, 1 + sum.scales.size() - dim))
      passing.push_back(dim);
  return passing;
}

/// Whether the sums of a part have a dimension beside batch entries and heads.
bool BackwardKernels::isNumbered(const CapturePart &part) {
  return !part.place &&
         cast<MemRefType>(part.workspace.getType()).getRank() > 2;
}

/// Whether each element is asked for in all queries, keys or distances of all
/// heads.
bool BackwardKernels::isOfAllHeads(const CapturePart &part) {
  return !part.sum.find(IndexKind::Batch) && !part.sum.find(IndexKind::Head) &&
         !findPassing(part.sum, isNumbered(part)).empty();
}

/// The sums of one part that belong to the elements at `places`, numbers and
/// rows, M; of one head, where it is given.
Value BackwardKernels::sumPart(const CapturePart &part, ArrayRef<Value> places,
                               const BlockNumbers *own) {
  const CaptureSum &sum = part.sum;
  std::optional<unsigned> batchDim = sum.find(IndexKind::Batch);
  std::optional<unsigned> headDim = sum.find(IndexKind::Head);
  std::optional<unsigned> ownDim = findOwnDim(sum);
  bool isTable = sum.form == SumForm::Table;
  bool isDistance = sum.form == SumForm::Distances;
  SmallVector<unsigned> passing = findPassing(sum, isNumbered(part));
  bool hasColumns = !passing.empty();
  int64_t shape[] = {numRows, hasColumns ? numColumns : 1};
  auto type = VectorType::get(shape, f32);
  SmallVector<Value> sizes = {batchDim || own ? c1 : batches,
                              headDim || own ? c1 : heads};
  for (unsigned dim : passing)
    sizes.push_back(b.createOrFold<memref::DimOp>(loc, part.workspace, dim));
  if (hasColumns)
    sizes.back() = ceilDiv(b, loc, sizes.back(), blockColumns);
  Value zero = splat(b, loc, type, 0.0);
  scf::ForOp loop = beginLoop(c0, multiplySizes(sizes), zero);
  SmallVector<Value> numbers = splitNumber(loop.getInductionVar(), sizes);
  Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  ScoreCoordinates at{
      batchDim ? places[*batchDim] : toCoordinate(b, loc, numbers[0]),
      headDim ? places[*headDim] : toCoordinate(b, loc, numbers[1]), none,
      none};
  if (own) {
    at.batch = own->batch32;
    at.head = own->head32;
  }
  auto readPassing = [&](unsigned number) -> Value {
    if (number + 1 < passing.size())
      return toCoordinate(b, loc, numbers[2 + number]);
    return coordinates(
        arith::MulIOp::create(b, loc, numbers[2 + number], blockColumns),
        numColumns, 1);
  };
  SmallVector<Value> indices = {at.batch, at.head};
  if (isTable) {
    if (ownDim)
      indices.push_back(places[*ownDim]);
    auto own = llvm::map_to_vector(sum.getTableDims(),
                                   [&](unsigned dim) { return places[dim]; });
    indices.push_back(joinIndices(own, getTableSizes(sum)));
  } else if (isDistance) {
    unsigned numPassing = 0;
    for (unsigned digit = sum.scales.size(); digit-- > 0;) {
      std::optional<unsigned> dim = findDigitDim(sum, digit);
      indices.push_back(
          dim ? readOwnDistance(sum, part.blocks, *dim, places[*dim], at)
              : readPassing(numPassing++));
    }
    at = placeDistances(at, part.blocks, ArrayRef(indices).drop_front(2));
  } else if (isNumbered(part)) {
    Value number = ownDim ? places[*ownDim] : readPassing(0);
    indices.push_back(number);
    (sum.form == SumForm::Keys ? at.keys : at.queries) = number;
  } else if (part.place) {
    Value place = arith::ConstantIndexOp::create(b, loc, *part.place);
    indices.insert(indices.begin(), toCoordinate(b, loc, place));
  }
  Value read = gather(part.workspace, indices, shape);
  for (auto [dim, place] : llvm::enumerate(places)) {
    if (isTable || dim == batchDim || dim == headDim || dim == ownDim ||
        (isDistance && sum.ownDigits[dim]))
      continue;
    Value index = readIndex(sum.getIndex(dim), at, shape);
    Value isIndex =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index,
                              broadcast(place, index.getType()));
    read = arith::SelectOp::create(b, loc, isIndex, read, zero);
  }
  endLoop(loop, arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], read)
                    .getResult());
  if (hasColumns)
    return sumColumns(loop.getResult(0));
  return vector::ShapeCastOp::create(b, loc, VectorType::get(numRows, f32),
                                     loop.getResult(0));
}

/// The elements at `places` of all batch entries and heads.
Value BackwardKernels::sumHeadsOf(Value workspace, ArrayRef<Value> places) {
  int64_t shape[] = {numRows, 1};
  Value zero = splat(b, loc, VectorType::get(shape, f32), 0.0);
  Value sizes[] = {batches, heads};
  scf::ForOp loop = beginLoop(c0, multiplySizes(sizes), zero);
  SmallVector<Value> indices;
  for (Value number : splitNumber(loop.getInductionVar(), sizes))
    indices.push_back(toCoordinate(b, loc, number));
  llvm::append_range(indices, places);
  Value read = gather(workspace, indices, shape);
  endLoop(loop, arith::AddFOp::create(b, loc, loop.getRegionIterArgs()[0], read)
                    .getResult());
  return vector::ShapeCastOp::create(b, loc, VectorType::get(numRows, f32),
                                     loop.getResult(0));
}

/// One number of a workspace to a gradient without dimensions.
void BackwardKernels::storeNumber(Value workspace, Value output,
                                  const Twine &suffix) {
  OpBuilder::InsertionGuard guard(b);
  beginKernel(suffix + "_number", ValueRange{c1, c1, c1});
  Value number = memref::LoadOp::create(b, loc, workspace, c0);
  Type stored = cast<MemRefType>(output.getType()).getElementType();
  memref::StoreOp::create(b, loc, roundTo(b, loc, number, stored), output,
                          ValueRange());
}

void BackwardKernels::buildCaptureGradient(Value output, const Twine &suffix,
                                           ArrayRef<CapturePart> parts) {
  OpBuilder::InsertionGuard guard(b);
  auto type = cast<MemRefType>(output.getType());
  Value target = output;
  if (type.getRank() == 0)
    target = allocate(f32, {c1});
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < cast<MemRefType>(target.getType()).getRank(); ++i)
    sizes.push_back(b.createOrFold<memref::DimOp>(loc, target, i));
  sizes.back() = ceilDiv(b, loc, sizes.back(), blockRows);

  auto place = [&](tile::KernelOp kernel) {
    SmallVector<Value> at = splitNumber(kernel.getNumbers()[2], sizes);
    at.back() = arith::MulIOp::create(b, loc, at.back(), blockRows);
    return at;
  };
  auto locate = [&](ArrayRef<Value> at) {
    SmallVector<Value> places;
    for (Value number : at.drop_back())
      places.push_back(toCoordinate(b, loc, number));
    places.push_back(coordinates(at.back(), numRows, 0));
    return places;
  };
  auto ofRows = VectorType::get(numRows, f32);
  auto addParts = [&](ArrayRef<CapturePart> added, ArrayRef<Value> places,
                      const BlockNumbers *own) {
    Value total = splat(b, loc, ofRows, 0.0);
    for (const CapturePart &part : added)
      total = arith::AddFOp::create(b, loc, total, sumPart(part, places, own));
    return total;
  };

  Value ofHeads; // what the blocks of heads have summed
  SmallVector<CapturePart, 2> rest, apart;
  for (const CapturePart &part : parts)
    (type.getRank() != 0 && isOfAllHeads(part) ? apart : rest).push_back(part);
  if (!apart.empty()) {
    SmallVector<Value> dims = {batches, heads};
    for (int64_t i = 0; i < type.getRank(); ++i)
      dims.push_back(b.createOrFold<memref::DimOp>(loc, target, i));
    ofHeads = allocate(f32, dims);
    tile::KernelOp kernel = beginKernel(
        suffix + "_heads", ValueRange{batches, heads, multiplySizes(sizes)});
    BlockNumbers block = readNumbers(kernel);
    SmallVector<Value> at = place(kernel);
    Value total = addParts(apart, locate(at), &block);
    at.insert(at.begin(), {block.batch, block.head});
    tile::StoreOp::create(b, loc, total, ofHeads, at);
    b.setInsertionPointAfter(kernel);
  }

  tile::KernelOp kernel =
      beginKernel(suffix, ValueRange{c1, c1, multiplySizes(sizes)});
  SmallVector<Value> at = place(kernel), places;
  if (type.getRank() != 0)
    places = locate(at);
  Value total = addParts(rest, places, nullptr);
  if (ofHeads)
    total = arith::AddFOp::create(b, loc, total, sumHeadsOf(ofHeads, places));
  Type stored = cast<MemRefType>(target.getType()).getElementType();
  tile::StoreOp::create(b, loc, roundTo(b, loc, total, stored), target, at);
  b.setInsertionPointAfter(kernel);
  if (target != output)
    storeNumber(target, output, suffix);
}

void BackwardKernels::matchCaptures(ArrayRef<Value> outputs) {
  FailureOr<SmallVector<CaptureSum>> sums = matchCaptureSums(op);
  assert(succeeded(sums) && "matchKernels has matched them");
  for (const CaptureSum &sum : *sums) {
    if (!outputs[*op.getGradientNumber(sum.capture)])
      continue;
    bool isRows = sum.form == SumForm::Rows, isKeys = sum.form == SumForm::Keys;
    (isRows ? rowSums : isKeys ? keySums : otherSums).push_back({sum, {}});
  }
}

void BackwardKernels::buildCaptureGradients(ArrayRef<Value> outputs) {
  if (!hasRowSums)
    sumBlocks(/*isKey=*/false, rowSums);
  if (!hasKeySums)
    sumBlocks(/*isKey=*/true, keySums);
  sumQueries();
  for (auto [number, part] : llvm::enumerate(otherSums))
    if (part.sum.form == SumForm::Distances)
      sumDistances(part, "_capture_" + Twine(number));
  sumTables();
  auto all = llvm::to_vector<2>(
      llvm::concat<CapturePart>(rowSums, keySums, otherSums));
  for (unsigned number = 0; number < outputs.size(); ++number) {
    Value output = outputs[number];
    if (!output)
      continue;
    SmallVector<CapturePart, 2> own =
        llvm::filter_to_vector<2>(all, [&](const CapturePart &part) {
          // Some sums are those of another part, too.
          bool hasSums = part.workspace || part.sum.form == SumForm::Pairs;
          return hasSums && op.getGradientNumber(part.sum.capture) == number;
        });
    int64_t capture = (*op.getGradCaptures())[number];
    std::string suffix = ("_d_c" + Twine(capture)).str();
    if (!own.empty() && own.front().sum.form == SumForm::Pairs)
      buildPairGradient(output, suffix, own);
    else
      buildCaptureGradient(output, suffix, own);
  }
}
