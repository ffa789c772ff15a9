//===- Backward.cpp - the sequential kernels of gradients -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores and weights are computed again from q, k and lse (Dao et al.,
// "FlashAttention", section B.4), in two programs, so that every sum has one
// owner and a fixed order. For one block of M queries, over blocks of N keys:
//
//   y   = mask(score(scale * Q K[n]^T))     f32
//   p   = exp(y - lse)                      (FarRows.cpp: how)
//   dy  = p * (keep * dO V[n]^T - delta)
//   dQ += round(pullback(dy)) K[n]
//
// and for one block of M keys, over blocks of N queries, all transposed:
//
//   y^T = mask(score(scale * K Q[n]^T))
//   dV += round(keep * p^T) dO[n]
//   dK += round(pullback(dy^T)) Q[n]
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"
#include "PullbackSlope.h"

#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "attn/Support/OptionalPasses.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace attn;

/// A row of as many columns of f32, or of a multiple, can be copied as a tile.
static constexpr int64_t copiedColumns = 32;

BackwardKernels::BackwardKernels(OpBuilder &b, AttentionBackwardOp op,
                                 IRMapping &mapping, StringRef name)
    : KernelValues(b, op, mapping), b(b), op(op), name(name),
      f32(b.getF32Type()), output(mapping.lookup(op.getOutput())),
      lse(mapping.lookup(op.getLse())),
      dOutput(mapping.lookup(op.getDOutput())) {
  if (Value gradient = op.getDLse())
    dLse = mapping.lookup(gradient);
  queryLength32 = toCoordinate(b, loc, queryLength);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The builder then stands in the kernel.
tile::KernelOp BackwardKernels::beginKernel(const Twine &suffix,
                                            ValueRange grid, PlanAttr plan) {
  auto kernel = tile::KernelOp::create(b, loc, (name + suffix).str(),
                                       plan ? plan : getPlanOfRows(), grid);
  b.setInsertionPoint(kernel.getTerminator());
  return kernel;
}

BackwardKernels::BlockNumbers
BackwardKernels::readNumbers(tile::KernelOp kernel, Value rows, bool fromTheEnd,
                             Value partsOfBatch) {
  SmallVector<Value> numbers(kernel.getNumbers());
  if (fromTheEnd)
    for (auto [number, size] : llvm::zip_equal(numbers, kernel.getGrid()))
      number = arith::SubIOp::create(
          b, loc, arith::SubIOp::create(b, loc, size, c1), number);
  BlockNumbers block;
  block.batch = numbers[0];
  if (partsOfBatch)
    block.batch = arith::DivUIOp::create(b, loc, numbers[0], partsOfBatch);
  block.head = numbers[1];
  block.number = numbers[2];
  block.keyHead =
      b.createOrFold<arith::DivSIOp>(loc, block.head, headsPerKeyHead);
  block.first =
      arith::MulIOp::create(b, loc, block.number, rows ? rows : blockRows);
  block.batch32 = toCoordinate(b, loc, block.batch);
  block.head32 = toCoordinate(b, loc, block.head);
  return block;
}

Value BackwardKernels::coordinates(Value first, int64_t size, int64_t axis) {
  int64_t shape[] = {1, 1};
  shape[axis] = size;
  return tile::CoordsOp::create(b, loc, VectorType::get(shape, b.getI32Type()),
                                toCoordinate(b, loc, first), axis);
}

Value BackwardKernels::gather(Value view, ValueRange indices,
                              ArrayRef<int64_t> shape) {
  Type element = cast<MemRefType>(view.getType()).getElementType();
  Value read = tile::GatherOp::create(b, loc, VectorType::get(shape, element),
                                      view, indices);
  if (element.isF32())
    return read;
  return arith::ExtFOp::create(b, loc, VectorType::get(shape, f32), read);
}

Value BackwardKernels::load(Value view, const BlockNumbers &block, Value head,
                            Value row, int64_t rows, int64_t columns) {
  return tile::LoadOp::create(b, loc, VectorType::get({rows, columns}, element),
                              view, ValueRange{block.batch, head, row, c0});
}

Value BackwardKernels::multiply(Value lhs, double factor) {
  if (factor == 1.0)
    return lhs;
  Value splatted = splat(b, loc, cast<VectorType>(lhs.getType()), factor);
  return arith::MulFOp::create(b, loc, lhs, splatted);
}

Value BackwardKernels::broadcast(Value value, Type type) {
  return vector::BroadcastOp::create(b, loc, type, value);
}

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

/// Rows past the last query are zero, and what a score makes of them and of
/// captures out of range may be anything, NaN too. So are keys before the
/// first.
void BackwardKernels::hideQueriesPastEnd(const Step &step,
                                         const ShownBox &shown) {
  auto scores = step.scores.getDefiningOp<tile::ScoresOp>();
  OpBuilder::InsertionGuard guard(b);
  if (!scores.hasMask()) {
    SmallVector<Type> types(ScoredOp::kMaskArguments, b.getI32Type());
    b.createBlock(&scores.getMask(), {}, types,
                  SmallVector<Location>(types.size(), loc));
    Value all = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    tile::YieldOp::create(b, loc, all);
  }
  Operation *yield = scores.getMask().front().getTerminator();
  b.setInsertionPoint(yield);
  Value query = scores.getMask().front().getArgument(2);
  auto require = [&](arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    Value holds = arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
    yield->setOperand(
        0, b.createOrFold<arith::AndIOp>(loc, holds, yield->getOperand(0)));
  };
  require(arith::CmpIPredicate::slt, query,
          shown.queryEnd ? shown.queryEnd : queryLength32);
  if (shown.firstQuery)
    require(arith::CmpIPredicate::sge, query, shown.firstQuery);
  Value key = scores.getMask().front().getArgument(3);
  if (shown.firstKey)
    require(arith::CmpIPredicate::sge, key, shown.firstKey);
  if (shown.keyEnd)
    require(arith::CmpIPredicate::slt, key, shown.keyEnd);
}

/// lhs rhs^T.
Value BackwardKernels::multiplyTransposed(OpBuilder &outer, Value lhs,
                                          Value rhs) {
  int64_t rows = cast<VectorType>(lhs.getType()).getDimSize(0);
  int64_t columns = cast<VectorType>(rhs.getType()).getDimSize(0);
  Value zero = splat(outer, loc, VectorType::get({rows, columns}, f32), 0.0);
  return contract(b, loc, lhs, rhs, zero, /*transposed=*/true);
}

Value BackwardKernels::stretch(Value value, Type type) {
  return value.getType() == type ? value : broadcast(value, type);
}

/// exp2(scores * log2(e) + offset).
Value BackwardKernels::raise(Value scores, Value offset) {
  auto type = cast<VectorType>(scores.getType());
  Value factor = splat(b, loc, type, llvm::numbers::log2e);
  Value exponent =
      math::FmaOp::create(b, loc, scores, factor, stretch(offset, type));
  return math::Exp2Op::create(b, loc, exponent);
}

/// With their slope, where the pullback multiplies by one: where both products
/// are there, x and all that the score function made of it need not be.
void BackwardKernels::addScores(OpBuilder &outer, Step &step, bool withSlope) {
  step.scores =
      buildScores(outer, b, *this, step.products, step.at).getResult();
  if (!withSlope || !multipliesBySlope(op))
    return;
  Value one = splat(outer, loc, cast<VectorType>(step.scores.getType()), 1.0);
  step.slope = goBack(outer, step, one, /*root=*/Value());
}

/// Products in flight hide the powers, and an arm of the branch that has its
/// own stays beside them: ptxas computes what stands behind a branch when it
/// has waited for the second product. Where none are in flight the branch comes
/// before the second product, which is then one sequence with the powers
/// (sm_80: 1.015 times as fast, in geometric mean over d = 64 and 128).
bool BackwardKernels::hasScoresFirst() {
  return !attention.getPlanAttr().getPasses().runs(OptionalPass::MakeAsync);
}

/// What stands between the two products.
void BackwardKernels::beginWeights(OpBuilder &outer, Step &step, Value isFar,
                                   Value offset) {
  if (!hasScoresFirst())
    return;
  addScores(outer, step, /*withSlope=*/true);
  step.shifted = shiftFar(step, isFar, offset);
}

/// What stands behind both.
void BackwardKernels::endWeights(OpBuilder &outer, Step &step, Value isFar,
                                 Value offset) {
  if (hasScoresFirst()) {
    step.weights = raise(step.shifted.first, step.shifted.second);
    return;
  }
  addScores(outer, step, /*withSlope=*/true);
  step.weights =
      weigh(step, isFar, offset, [&] { return raise(step.scores, offset); });
}

/// Those that dropout keeps are larger by what it takes away.
Value BackwardKernels::keepScaled(OpBuilder &outer, const Step &step,
                                  Value weights) {
  if (!attention.hasDropout())
    return weights;
  Value kept = dropWeights(outer, b, *this, step.at, weights);
  return multiply(kept, 1 / getKeptShare(attention));
}

/// What goes back to the weights, less its mean by them in the row.
Value BackwardKernels::buildExcess(OpBuilder &outer, const Step &step,
                                   Value dWeights, Value delta) {
  auto type = cast<VectorType>(dWeights.getType());
  return arith::SubFOp::create(b, loc, keepScaled(outer, step, dWeights),
                               broadcast(delta, type));
}

/// What goes back to the scores.
Value BackwardKernels::buildAdjoint(OpBuilder &outer, const Step &step,
                                    Value dWeights, Value delta) {
  Value excess = buildExcess(outer, step, dWeights, delta);
  return arith::MulFOp::create(b, loc, step.weights, excess);
}

/// A value of the pullback, or what that yields. What the score computes too
/// is the same code, and stands in the same place: CSE leaves one of them.
Value BackwardKernels::readPullback(OpBuilder &outer, const Step &step,
                                    Value adjoint, Value root) {
  auto type = cast<VectorType>(adjoint.getType());
  // Also by 1, as scores are.
  Value scale = splat(b, loc, type, attention.getScaleValue());
  Value x = arith::MulFOp::create(b, loc, step.products, scale);
  Value arguments[] = {
      adjoint, x, step.at.batch, step.at.head, step.at.queries, step.at.keys};
  Region region;
  copyRegion(outer, b, op.getPullback(), region, arguments, captures, root);
  Operation *head = &*outer.getInsertionPoint();
  if (outer.getInsertionBlock() == b.getInsertionBlock())
    if (auto loop = dyn_cast<scf::ForOp>(head->getParentOp()))
      head = loop;
  return tile::expandScalarCode(b, head, region, arguments, type.getShape());
}

/// (C11): nothing goes back where the score is -inf.
Value BackwardKernels::goBack(OpBuilder &outer, const Step &step, Value adjoint,
                              Value root) {
  auto type = cast<VectorType>(adjoint.getType());
  Value result = readPullback(outer, step, adjoint, root);
  Value hidden =
      splat(outer, loc, type, -std::numeric_limits<double>::infinity());
  Value isHidden = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         step.scores, hidden);
  Value zero = splat(outer, loc, type, 0.0);
  return arith::SelectOp::create(b, loc, isHidden, zero, result);
}

/// What goes back to the scaled products, rounded to be a factor of the next.
Value BackwardKernels::buildScoreGradient(OpBuilder &outer, const Step &step,
                                          Value dWeights, Value delta) {
  Value gradient;
  if (step.slope) {
    Value weights = arith::MulFOp::create(b, loc, step.weights, step.slope);
    gradient = arith::MulFOp::create(b, loc, weights,
                                     buildExcess(outer, step, dWeights, delta));
  } else {
    gradient = buildAdjoint(outer, step, dWeights, delta);
    if (op.hasPullback())
      gradient = goBack(outer, step, gradient, /*root=*/Value());
  }
  return roundTo(b, loc, gradient, element);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void BackwardKernels::buildQueryGradient(Value gradient) {
  OpBuilder::InsertionGuard guard(b);
  // Those of this kernel.
  PlanAttr plan = getQueryPlan();
  int64_t numRows = plan.getBlockQ(), numColumns = plan.getBlockK();
  Value blockRows = arith::ConstantIndexOp::create(b, loc, numRows);
  Value blockColumns = arith::ConstantIndexOp::create(b, loc, numColumns);
  Value numKeyBlocks = ceilDiv(b, loc, keyLength, blockColumns);
  // Others read delta up to the end of their last blocks.
  Value end = hasDelta ? queryLength : paddedQueries;
  // With `split_keys` blocks share the keys of a block of queries: its sums of
  // each lie behind one another, as those of batch entries.
  int64_t parts = plan.getSplitKeys();
  Value numParts = arith::ConstantIndexOp::create(b, loc, parts);
  Value partBatches = b.createOrFold<arith::MulIOp>(loc, batches, numParts);
  MutableArrayRef<CapturePart> captureParts = takeRowSums(plan);
  Value queryParts;
  if (parts != 1)
    queryParts =
        allocate(f32, {partBatches, heads, queryLength,
                       arith::ConstantIndexOp::create(b, loc, paddedDim)});
  tile::KernelOp kernel = beginKernel(
      "_d_query",
      ValueRange{partBatches, heads, ceilDiv(b, loc, end, blockRows)}, plan);
  BlockNumbers block = readNumbers(kernel, blockRows, /*fromTheEnd=*/false,
                                   parts == 1 ? Value() : numParts);
  Value partBatch = kernel.getNumbers()[0];
  if (parts != 1)
    tile::ShareBlocksOp::create(
        b, loc, arith::RemUIOp::create(b, loc, partBatch, numParts), parts);
  Value rows = coordinates(block.first, numRows, 0);
  Value tile = load(query, block, block.head, block.first, numRows, paddedDim);
  Value dTile =
      load(dOutput, block, block.head, block.first, numRows, paddedValueDim);
  Value offset = readQueries(rowOffset, block, rows);
  Value isFar = readFarHead(block);
  Value delta;
  if (hasDelta) {
    delta = readQueries(rowDelta, block, rows);
  } else {
    // Not those whose lse is +inf: infinite scores stay visible.
    Value isNone = findEmptyRows(rows, readSavedLse(block, rows));
    delta = replaceNone(computeDelta(block, rows), isNone, 0);
    storeRows(block, delta, rowDelta);
  }
  Value zero = splat(b, loc, VectorType::get({numRows, paddedDim}, f32), 0.0);
  SmallVector<Value> initial = {zero};
  beginSums(captureParts, numRows, initial);
  auto loop = scf::ForOp::create(b, loc, c0, numKeyBlocks, c1, initial);

  OpBuilder outer(loop);
  b.setInsertionPointToStart(loop.getBody());
  Value column =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value keys = coordinates(column, numColumns, 1);
  ScoreCoordinates at{block.batch32, block.head32, rows, keys};
  Value keyTile =
      load(key, block, block.keyHead, column, numColumns, paddedDim);
  Step step{at, multiplyTransposed(outer, tile, keyTile)};
  beginWeights(outer, step, isFar, offset);
  Value valueTile =
      load(value, block, block.keyHead, column, numColumns, paddedValueDim);
  Value dWeights = multiplyTransposed(outer, dTile, valueTile);
  endWeights(outer, step, isFar, offset);
  Value dScores = buildScoreGradient(outer, step, dWeights, delta);
  if (!captureParts.empty())
    step.adjoint = buildAdjoint(outer, step, dWeights, delta);
  SmallVector<Value> sums =
      addSums(outer, step, captureParts, loop.getRegionIterArgs().drop_front());
  sums.insert(sums.begin(),
              contract(b, loc, dScores, keyTile, loop.getRegionIterArgs()[0],
                       /*transposed=*/false));
  scf::YieldOp::create(b, loc, sums);

  b.setInsertionPointAfter(loop);
  storeSums(block, captureParts, loop.getResults().drop_front());
  if (parts == 1) {
    Value scaled = multiply(loop.getResult(0), attention.getScaleValue());
    tile::StoreOp::create(b, loc, roundTo(b, loc, scaled, element), gradient,
                          ValueRange{block.batch, block.head, block.first, c0});
    return;
  }
  constexpr int64_t width = 16, most = 8; // many blocks, of a few registers
  tile::StoreOp::create(b, loc, loop.getResult(0), queryParts,
                        ValueRange{partBatch, block.head, block.first, c0});
  b.setInsertionPointAfter(kernel);
  sumParts({"_sum_query", queryParts, gradient, paddedDim,
            attention.getScaleValue(), heads, numParts, queryLength,
            /*areOfBatches=*/true, width, std::gcd(parts, most)},
           batches);
}

void BackwardKernels::buildKeyGradient(StringRef suffix, ArrayRef<Sum> sums) {
  OpBuilder::InsertionGuard guard(b);
  Value numQueryBlocks = ceilDiv(b, loc, queryLength, blockColumns);
  bool needsScores =
      llvm::any_of(sums, [](const Sum &sum) { return sum.isKey; });
  MutableArrayRef<CapturePart> captureParts;
  if (needsScores)
    captureParts = takeKeySums();
  tile::KernelOp kernel = beginKernel(
      suffix, ValueRange{batches, heads, ceilDiv(b, loc, keyLength, blockRows)},
      sums.size() > 1 ? getKeyPlan() : PlanAttr());
  BlockNumbers block = readNumbers(kernel);
  Value keys = coordinates(block.first, numRows, 0);
  Value tile = load(key, block, block.keyHead, block.first, numRows, paddedDim);
  Value valueTile;
  if (needsScores)
    valueTile =
        load(value, block, block.keyHead, block.first, numRows, paddedValueDim);
  Value isFar = readFarHead(block);
  SmallVector<Value> initial;
  for (const Sum &sum : sums)
    initial.push_back(
        splat(b, loc, VectorType::get({numRows, sum.numColumns}, f32), 0.0));
  beginSums(captureParts, numRows, initial);
  auto loop = scf::ForOp::create(b, loc, c0, numQueryBlocks, c1, initial);

  OpBuilder outer(loop);
  b.setInsertionPointToStart(loop.getBody());
  Value row =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value queries = coordinates(row, numColumns, 1);
  ScoreCoordinates at{block.batch32, block.head32, queries, keys};
  // A lane may read what it needs of a row, or all of them one copy of it.
  bool isCopied = numColumns % copiedColumns == 0;
  auto readRow = [&](Value view) -> Value {
    if (!isCopied)
      return gather(view, {block.batch32, block.head32, queries},
                    {1, numColumns});
    return tile::LoadOp::create(b, loc, VectorType::get({1, numColumns}, f32),
                                view, ValueRange{block.batch, block.head, row});
  };
  Value queryTile = load(query, block, block.head, row, numColumns, paddedDim);
  // Behind both products it would arrive when these are under way. Before them
  // it takes registers, of which the sums of queries leave few where columns
  // are many and products are at once in registers.
  constexpr int64_t mostColumns = 128;
  bool isTight =
      hasScoresFirst() && querySums && paddedDim + paddedValueDim > mostColumns;
  Value offset = isTight ? Value() : readRow(rowOffset);
  Step step{at, multiplyTransposed(outer, tile, queryTile)};
  if (isTight)
    offset = readRow(rowOffset);
  beginWeights(outer, step, isFar, offset);
  Value dTile =
      load(dOutput, block, block.head, row, numColumns, paddedValueDim);
  Value dWeights;
  if (needsScores)
    dWeights = multiplyTransposed(outer, valueTile, dTile);
  endWeights(outer, step, isFar, offset);
  if (attention.hasScore())
    hideQueriesPastEnd(step);
  SmallVector<Value> factors(sums.size());
  auto buildFactors = [&] {
    for (auto [sum, factor] : llvm::zip(sums, factors))
      if (!sum.isKey)
        factor =
            roundTo(b, loc, keepScaled(outer, step, step.weights), element);
  };
  // Where registers are few, when the weights are needed no more.
  if (!querySums)
    buildFactors();
  Value dScores;
  if (needsScores) {
    Value delta = readRow(rowDelta);
    dScores = buildScoreGradient(outer, step, dWeights, delta);
    if (!captureParts.empty())
      step.adjoint = buildAdjoint(outer, step, dWeights, delta);
  }
  SmallVector<Value> captureSums =
      addSums(outer, step, captureParts,
              loop.getRegionIterArgs().drop_front(sums.size()));
  if (querySums)
    buildFactors();
  SmallVector<Value> results;
  Value dQueries;
  for (auto [sum, factor, state] :
       llvm::zip(sums, factors, loop.getRegionIterArgs())) {
    if (sum.isKey && querySums)
      dQueries = multiplyKeys(outer, dScores, tile);
    results.push_back(contract(b, loc, sum.isKey ? dScores : factor,
                               sum.isKey ? queryTile : dTile, state,
                               /*transposed=*/false));
  }
  // Beside the product that came last.
  if (dQueries)
    addQueryGradient(block, loop.getInductionVar(), dQueries);
  llvm::append_range(results, captureSums);
  scf::YieldOp::create(b, loc, results);

  b.setInsertionPointAfter(loop);
  storeSums(block, captureParts, loop.getResults().drop_front(sums.size()));
  for (auto [sum, result] : llvm::zip(sums, loop.getResults()))
    storeKeySum(block, sum, result);
}

/// Rounded, or where query heads share a key head as it is.
void BackwardKernels::storeKeySum(const BlockNumbers &block, const Sum &sum,
                                  Value result) {
  OpBuilder::InsertionGuard guard(b);
  Value at[] = {block.batch, block.head, block.first, c0};
  // `tile-loop-heads` takes the other arm.
  bool mayLoop =
      attention.getPlanAttr().getPasses().runs(OptionalPass::LoopHeads);
  if (sum.workspace && (sum.isShared || mayLoop)) {
    Value isShared = sum.isShared ? sum.isShared
                                  : arith::ConstantIntOp::create(b, loc, 1, 1);
    auto branch = scf::IfOp::create(b, loc, isShared, /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    tile::StoreOp::create(b, loc, result, sum.workspace, at);
    b.setInsertionPointToStart(branch.elseBlock());
  } else if (sum.workspace) {
    tile::StoreOp::create(b, loc, result, sum.workspace, at);
    return;
  }
  Value scaled = multiply(result, sum.factor);
  tile::StoreOp::create(b, loc, roundTo(b, loc, scaled, element), sum.output,
                        at);
}

void BackwardKernels::buildKeyGradients(Value keyOutput, Value valueOutput,
                                        Value queryOutput) {
  SmallVector<Sum> sums;
  if (valueOutput)
    sums.push_back({valueOutput, paddedValueDim, 1.0, /*isKey=*/false});
  if (keyOutput)
    sums.push_back(
        {keyOutput, paddedDim, attention.getScaleValue(), /*isKey=*/true});
  // Several query heads share a key head, or may.
  std::optional<int64_t> numHeads = getConstantIntValue(heads);
  bool isGrouped = !numHeads || numHeads != getConstantIntValue(keyHeads);
  Value isShared, numShared = batches;
  if (isGrouped && !getConstantIntValue(headsPerKeyHead)) {
    // Seen at launch: then nothing is summed, and no memory is taken for it.
    isShared = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, heads,
                                     keyHeads);
    Value others = arith::SubIOp::create(b, loc, heads, keyHeads);
    Value atLeast = arith::MaxSIOp::create(b, loc, others, c0);
    Value oneOrNone = arith::MinSIOp::create(b, loc, atLeast, c1);
    numShared = arith::MulIOp::create(b, loc, batches, oneOrNone);
  }
  if (isGrouped)
    for (Sum &sum : sums) {
      sum.isShared = isShared;
      sum.workspace = allocate(
          f32, {numShared, heads, keyLength,
                arith::ConstantIndexOp::create(b, loc, sum.numColumns)});
    }
  bool isApart = op.getRecompute()->getScores() == RecomputedScores::Thrice;
  if (sums.size() == 2 && !isApart)
    buildKeyGradient("_d_key_value", sums);
  else
    for (const Sum &sum : sums)
      buildKeyGradient(sum.isKey ? "_d_key" : "_d_value", sum);
  // First, as the sums of heads may be left out: one that follows kernels which
  // are left out starts when all is done.
  if (queryOutput)
    buildRoundedQueryGradient(queryOutput);
  if (isGrouped)
    for (const Sum &sum : sums)
      sumHeads(sum, numShared);
}

func::FuncOp attn::buildBackward(OpBuilder &b, KernelMatch match) {
  OpBuilder::InsertionGuard guard(b);
  IRMapping mapping;
  func::FuncOp func = buildSignature(b, match, mapping);
  auto op = cast<AttentionBackwardOp>(match.attention.getOperation());
  BackwardKernels kernels(b, op, mapping, func.getSymName());
  auto returned = match.func.getBody().front().getTerminator()->getOperands();
  auto outputs = func.getArguments().drop_front(match.func.getNumArguments());
  llvm::SmallDenseMap<Value, Value> found;
  for (auto [value, output] : llvm::zip(returned, outputs))
    found[value] = output;
  Value dQuery = found.lookup(op.getDQuery());
  Value dKey = found.lookup(op.getDKey());
  bool isSummed = op.getRecompute()->getScores() == RecomputedScores::Once;
  SmallVector<Value> dCaptures = llvm::map_to_vector(
      op.getDCaptures(), [&](Value result) { return found.lookup(result); });
  kernels.matchCaptures(dCaptures);
  kernels.buildRows(/*withQueries=*/dQuery && !isSummed, isSummed);
  if (dQuery && !isSummed)
    kernels.buildQueryGradient(dQuery);
  kernels.buildKeyGradients(dKey, found.lookup(op.getDValue()),
                            isSummed ? dQuery : Value());
  if (Value sink = op.getDSink() ? found.lookup(op.getDSink()) : Value())
    kernels.buildSinkGradient(sink);
  kernels.buildCaptureGradients(dCaptures);
  return func;
}
