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
// in the same way, and weights are exp((y - m) - log(l)). For the others the
// pair is (lse, 0), and where |m| is no larger it stays so: a step none of
// whose first numbers is larger (tile-fold-exp2) need not read the second ones.
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
#include <limits>

using namespace mlir;
using namespace attn;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// What a warp votes holds for its rows, and those are whole groups of 16.
static constexpr int64_t rowsOfVote = 16;

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

/// In the kernel of rows: where far rows may be, and no rest for now.
void BackwardKernels::storeFarRows(const BlockNumbers &block, Value logSum) {
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(b.getInsertionBlock()->getParentOp());
    rowRest = allocate(f32, {batches, heads, paddedQueries});
    rowFar = allocate(f32, {batches, heads, paddedQueries});
  }
  Value isLarge = compareMagnitude(b, loc, arith::CmpFPredicate::OGE, logSum,
                                   getMaxFoldedLse(element));
  Value isFinite =
      compareMagnitude(b, loc, arith::CmpFPredicate::OLT, logSum, infinity);
  Value isFar = arith::AndIOp::create(b, loc, isLarge, isFinite);
  Value no = arith::ConstantIntOp::create(b, loc, 0, 1);
  Value isAny = vector::MultiDimReductionOp::create(
      b, loc, isFar, no, ArrayRef<bool>{true, true}, vector::CombiningKind::OR);
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(f32, value));
  };
  Value vote = arith::SelectOp::create(b, loc, isAny, number(1), number(0));
  auto type = VectorType::get(numRows, f32);
  Value at[] = {block.batch, block.head, block.first};
  tile::StoreOp::create(b, loc, broadcast(vote, type), rowFar, at);
  tile::StoreOp::create(b, loc, splat(b, loc, type, 0.0), rowRest, at);
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
  for (int64_t row = 0; row < numRows && !isAlways; row += rowsOfVote) {
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
  Value saved = readQueries(rowLse, block, rows);
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
  // +inf is that of a row without keys.
  Value isLarge = compare(arith::CmpFPredicate::OLT, saved, infinity);
  if (isAlways)
    saved = arith::SelectOp::create(
        b, loc, isLarge, arith::AddFOp::create(b, loc, max, log), saved);
  else
    isLarge = arith::AndIOp::create(
        b, loc, isLarge,
        compare(arith::CmpFPredicate::OGE, saved, getMaxFoldedLse(element)));
  isLarge = arith::AndIOp::create(
      b, loc, isLarge,
      compare(arith::CmpFPredicate::OGT, max, getMaxFoldedLse(element)));
  Value pair[] = {arith::SelectOp::create(b, loc, isLarge, max, saved),
                  arith::SelectOp::create(b, loc, isLarge, log, zero)};
  Value views[] = {rowLse, rowRest};
  for (auto [value, view] : llvm::zip(pair, views)) {
    Value flat = vector::ShapeCastOp::create(
        b, loc, VectorType::get(numRows, f32), value);
    tile::StoreOp::create(b, loc, flat, view,
                          ValueRange{block.batch, block.head, block.first});
  }
  expandAllScores(kernel);
}

/// y - lse, which is at most 0: roundings of products that are summed in
/// another order, of a huge y, may be huge themselves.
Value BackwardKernels::subtractLse(Value scores, const LogSum &lse) {
  Type type = scores.getType();
  auto stretch = [&](Value value) {
    return value.getType() == type ? value : broadcast(value, type);
  };
  Value excess = arith::SubFOp::create(b, loc, scores, stretch(lse.first));
  if (!lse.rest)
    return excess;
  excess = arith::SubFOp::create(b, loc, excess, stretch(lse.rest));
  Value most = splat(b, loc, cast<VectorType>(type), 0.0);
  return arith::MinimumFOp::create(b, loc, excess, most);
}
