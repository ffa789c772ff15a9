//===- FarRows.cpp - lse where f32 does not hold its fraction -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights are exp(y - lse). An lse of -1e9, of a row whose keys all have that
// penalty, is a multiple of 64: log(n) of n equal scores is lost, and with it
// the sum of the weights. A pair of numbers holds it:
//
//   lse = m + log(l),   m = max(y),   l = sum exp(y - m)
//
// and y - m is exact for all y near m. So the rows with |lse| >= 512 are far,
// or, where gradients of f32 show an error of 2^-20, those with |lse| >= 16: a
// kernel after that of rows computes m and l once more, from the same scores
// in the same way. Where |m| is no larger the pair stays (lse, 0).
//
// Weights are exp2(y * log2(e) + offset), offset = -lse * log2(e). Heads with
// far rows compute
//
//   exp2((y + offset) * log2(e) + rest)
//
// where a far row has the offset -m and the rest -log(l) * log2(e), and the
// rest of a near one makes up for the second log2(e) of its offset. Whether a
// head has far rows is one number, which a kernel reads once: to ask in every
// step takes a comparison for each query, on each lane. Rests are read only
// where it has.
//
// Which blocks have far rows only data decide. A block of queries without one
// reads a few numbers and ends; where attn-recompute knows that there is none,
// there is no such kernel. It may also be asked to compute lse of every row.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/OptionalPasses.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace attn;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// `predicate` of |value| and a number.
static Value compareMagnitude(OpBuilder &b, Location loc,
                              arith::CmpFPredicate predicate, Value value,
                              double limit) {
  auto type = cast<VectorType>(value.getType());
  return arith::CmpFOp::create(b, loc, predicate,
                               math::AbsFOp::create(b, loc, value),
                               splat(b, loc, type, limit));
}

/// The reduction of each row, as a column.
static Value reduceRows(OpBuilder &b, Location loc, vector::CombiningKind kind,
                        Value matrix, double neutral) {
  auto type = cast<VectorType>(matrix.getType());
  int64_t rows = type.getDimSize(0);
  Value start =
      splat(b, loc, VectorType::get(rows, type.getElementType()), neutral);
  Value reduced = vector::MultiDimReductionOp::create(
      b, loc, matrix, start, ArrayRef<bool>{false, true}, kind);
  return vector::ShapeCastOp::create(
      b, loc, VectorType::get({rows, 1}, type.getElementType()), reduced);
}

/// +inf is the lse of a row without keys.
Value BackwardKernels::findFarRows(Value logSum) {
  Value isLarge = compareMagnitude(b, loc, arith::CmpFPredicate::OGE, logSum,
                                   getMaxFoldedLse(element));
  Value isFinite =
      compareMagnitude(b, loc, arith::CmpFPredicate::OLT, logSum, infinity);
  return arith::AndIOp::create(b, loc, isLarge, isFinite);
}

/// rest = offset - offset * log2(e), or 0 where the offset is infinite.
Value BackwardKernels::getNearRest(Value offset) {
  auto type = cast<VectorType>(offset.getType());
  Value rest = math::FmaOp::create(
      b, loc, offset, splat(b, loc, type, -llvm::numbers::log2e), offset);
  Value isInfinite =
      compareMagnitude(b, loc, arith::CmpFPredicate::OEQ, offset, infinity);
  return arith::SelectOp::create(b, loc, isInfinite, splat(b, loc, type, 0.0),
                                 rest);
}

/// In the kernel of rows: where far rows may be.
void BackwardKernels::storeFarRows(const BlockNumbers &block, Value logSum,
                                   Value offset) {
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(b.getInsertionBlock()->getParentOp());
    rowRest = allocate(f32, {batches, heads, paddedQueries});
    rowFar = allocate(f32, {batches, heads, paddedQueries});
    farHeads = allocate(f32, {batches, heads});
  }
  Value isFar = findFarRows(logSum);
  Value no = arith::ConstantIntOp::create(b, loc, 0, 1);
  Value isAny = vector::MultiDimReductionOp::create(
      b, loc, isFar, no, ArrayRef<bool>{true, true}, vector::CombiningKind::OR);
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(f32, value));
  };
  Value vote = arith::SelectOp::create(b, loc, isAny, number(1), number(0));
  auto type = VectorType::get(getRowsOfWarp(), f32);
  Value at[] = {block.batch, block.head, block.first};
  tile::StoreOp::create(b, loc, broadcast(vote, type), rowFar, at);
  storeRows(block, getNearRest(offset), rowRest);
  // The next kernel says which heads have some.
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, block.first, c0);
  auto branch = scf::IfOp::create(b, loc, isFirst);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  memref::StoreOp::create(b, loc, number(0), farHeads,
                          ValueRange{block.batch, block.head});
}

/// Whether the head has far rows.
Value BackwardKernels::readFarHead(const BlockNumbers &block) {
  if (!farHeads)
    return Value();
  Value number = memref::LoadOp::create(b, loc, farHeads,
                                        ValueRange{block.batch, block.head});
  Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(f32, 0.0));
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, number, zero);
}

/// lse of far rows as two numbers.
void BackwardKernels::buildFarRows() {
  OpBuilder::InsertionGuard guard(b);
  tile::KernelOp kernel = beginKernel(
      "_far_rows",
      ValueRange{batches, heads, ceilDiv(b, loc, paddedQueries, blockRows)});
  BlockNumbers block = readNumbers(kernel);
  bool isAlways = op.getRecompute()->getLse() == RecomputedLse::Always;
  Value isIdle;
  for (int64_t row = 0; row < numRows && !isAlways; row += getRowsOfWarp()) {
    Value place = arith::AddIOp::create(
        b, loc, block.first, arith::ConstantIndexOp::create(b, loc, row));
    Value vote = memref::LoadOp::create(
        b, loc, rowFar, ValueRange{block.batch, block.head, place});
    Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(f32, 0.0));
    Value isNear =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, vote, zero);
    isIdle = isIdle ? arith::AndIOp::create(b, loc, isIdle, isNear).getResult()
                    : isNear;
  }
  if (isIdle)
    tile::ExitIfOp::create(b, loc, isIdle);

  auto column = VectorType::get({numRows, 1}, f32);
  Value minusInf = splat(b, loc, column, -infinity);
  Value zero = splat(b, loc, column, 0.0);
  Value rows = coordinates(block.first, numRows, 0);
  Value saved = replaceEmpty(rows, readSavedLse(block, rows));
  Value tile = load(query, block, block.head, block.first, numRows, paddedDim);
  Value first[] = {minusInf, zero};
  if (sink) {
    Value logit = memref::LoadOp::create(b, loc, sink, block.head);
    if (!logit.getType().isF32())
      logit = arith::ExtFOp::create(b, loc, f32, logit);
    first[0] = broadcast(logit, column);
    first[1] = splat(b, loc, column, 1.0);
  }
  scf::ForOp loop =
      beginLoop(c0, ceilDiv(b, loc, keyLength, blockColumns), first);
  OpBuilder outer(b);
  Value firstKey =
      arith::MulIOp::create(b, loc, loop.getInductionVar(), blockColumns);
  Value keyTile =
      load(key, block, block.keyHead, firstKey, numColumns, paddedDim);
  Value products = multiplyTransposed(outer, tile, keyTile);
  tile::ScoresOp scored = buildScores(outer, b, *this, products,
                                      {block.batch32, block.head32, rows,
                                       coordinates(firstKey, numColumns, 1)});
  double scale = 1.0;
  // As in the other kernels, where scores are for weights alone.
  PassSelection passes = attention.getPlanAttr().getPasses();
  if (!op.hasPullback() && passes.runs(OptionalPass::FoldExp2)) {
    IRRewriter rewriter(b.getContext());
    scale = tile::foldScores(rewriter, scored).convertToDouble();
  }
  Value scores = multiply(scored.getResult(), scale);
  Value max = loop.getRegionIterArgs()[0], sum = loop.getRegionIterArgs()[1];
  Value newMax = arith::MaxNumFOp::create(
      b, loc, max,
      reduceRows(b, loc, vector::CombiningKind::MAXNUMF, scores, -infinity));
  Value isHidden = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         newMax, minusInf);
  Value reference = arith::SelectOp::create(b, loc, isHidden, zero, newMax);
  auto weigh = [&](Value values) -> Value {
    Value stretched = values.getType() == column
                          ? reference
                          : broadcast(reference, values.getType());
    return math::ExpOp::create(
        b, loc, arith::SubFOp::create(b, loc, values, stretched));
  };
  Value added =
      reduceRows(b, loc, vector::CombiningKind::ADD, weigh(scores), 0.0);
  Value newSum = math::FmaOp::create(b, loc, sum, weigh(max), added);
  endLoop(loop, {newMax, newSum});

  max = loop.getResult(0);
  auto compare = [&](arith::CmpFPredicate predicate, Value value,
                     double limit) -> Value {
    return compareMagnitude(b, loc, predicate, value, limit);
  };
  Value log = math::LogOp::create(b, loc, loop.getResult(1));
  if (isAlways) {
    Value isFinite = compare(arith::CmpFPredicate::OLT, saved, infinity);
    saved = arith::SelectOp::create(
        b, loc, isFinite, arith::AddFOp::create(b, loc, max, log), saved);
  }
  Value isFar = findFarRows(saved);
  Value isLarge = arith::AndIOp::create(
      b, loc, isFar,
      compare(arith::CmpFPredicate::OGT, max, getMaxFoldedLse(element)));
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  };
  Value minusFirst = multiply(select(isLarge, max, saved), -1.0);
  Value rest = multiply(select(isLarge, log, zero), -llvm::numbers::log2e);
  Value near = multiply(saved, -llvm::numbers::log2e);
  storeRows(block, select(isFar, minusFirst, near), rowOffset);
  storeRows(block, select(isFar, rest, getNearRest(near)), rowRest);
  // Asked for, whether it has far rows or not.
  Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(f32, 1.0));
  memref::StoreOp::create(b, loc, one, farHeads,
                          ValueRange{block.batch, block.head});
  expandAllScores(kernel);
}

/// Weights of a head with far rows. They are at most 1: roundings of products
/// that are summed in another order, of a huge score, may be huge. Rests are
/// read when the offsets are needed no more: registers are few.
Value BackwardKernels::raiseFar(Value scores, Value offset,
                                function_ref<Value()> readRest) {
  auto type = cast<VectorType>(scores.getType());
  Value excess = arith::AddFOp::create(b, loc, scores, stretch(offset, type));
  return arith::MinimumFOp::create(b, loc, raise(excess, readRest()),
                                   splat(b, loc, type, 1.0));
}

/// What weights are the powers of, and its offset, where these are taken behind
/// the branch.
std::pair<Value, Value> BackwardKernels::shiftFar(const Step &step, Value isFar,
                                                  Value offset) {
  if (!isFar)
    return {step.scores, offset};
  OpBuilder::InsertionGuard guard(b);
  Type type = step.scores.getType();
  auto branch = scf::IfOp::create(b, loc, TypeRange{type, offset.getType()},
                                  isFar, /*withElseRegion=*/true);
  b.setInsertionPointToEnd(branch.thenBlock());
  Value excess =
      arith::AddFOp::create(b, loc, step.scores, stretch(offset, type));
  Value rest = readRest(step.at);
  // As much as weights of at most 1 have.
  Value most = multiply(rest, -1 / llvm::numbers::log2e);
  excess = arith::MinimumFOp::create(b, loc, excess, stretch(most, type));
  scf::YieldOp::create(b, loc, ValueRange{excess, rest});
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{step.scores, offset});
  return {branch.getResult(0), branch.getResult(1)};
}

/// Weights: `getNear`, or of a head with far rows what `offset` gives; each arm
/// of the branch takes its own.
Value BackwardKernels::weigh(const Step &step, Value isFar, Value offset,
                             function_ref<Value()> getNear) {
  if (!isFar)
    return getNear();
  OpBuilder::InsertionGuard guard(b);
  auto branch = scf::IfOp::create(b, loc, step.scores.getType(), isFar,
                                  /*withElseRegion=*/true);
  b.setInsertionPointToEnd(branch.thenBlock());
  Value far = raiseFar(step.scores, offset, [&] { return readRest(step.at); });
  scf::YieldOp::create(b, loc, far);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, getNear());
  return branch.getResult(0);
}

/// exp(min(scores - lse, 0)). A product of lse and log2(e) would have an error
/// that is the same for a whole row; in sums of gradients of f32 it shows. So
/// does a weight of more than 1: products of a tensor core, which rounds
/// towards 0, are not those that lse was made of.
Value BackwardKernels::weighNear(Value scores, Value lse) {
  auto type = cast<VectorType>(scores.getType());
  Value excess = arith::SubFOp::create(b, loc, scores, stretch(lse, type));
  Value zero = splat(b, loc, type, 0.0);
  return math::ExpOp::create(b, loc,
                             arith::MinimumFOp::create(b, loc, excess, zero));
}

Value BackwardKernels::readRest(const ScoreCoordinates &at) {
  return gather(rowRest, {at.batch, at.head, at.queries},
                cast<VectorType>(at.queries.getType()).getShape());
}
