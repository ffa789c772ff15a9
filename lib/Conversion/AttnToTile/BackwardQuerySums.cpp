//===- BackwardQuerySums.cpp - gradients of queries, added up -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One program for all gradients has five products where two programs have
// seven (Dao et al., "FlashAttention", algorithm 4): a block of keys adds its
// part of dQ, for a block of queries, to a workspace of f32. Blocks of keys run
// side by side, so the order of these sums, and with it their last bits, differ
// from launch to launch.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "attn/Plan/Budget.h"
#include "attn/Plan/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

/// Whether the warps of a plan can share a product of so many rows: along the
/// rows or, where these are fewer, along the columns, too.
static bool canShare(PlanAttr plan, int64_t rows, int64_t columns) {
  if (plan.getTarget() == TargetKind::CPU)
    return true;
  layout::Fragment fragment = {layout::FragmentKind::Acc, rows, columns,
                               plan.getWarps()};
  if (!fragment.check().empty())
    return false;
  int64_t parts = fragment.columnGroups();
  if (!plan::getTarget(plan.getTarget()).hasWarpgroups)
    return parts == 1;
  layout::SharedTile keys = {rows, columns, 2,
                             layout::choosePanelBytes(2 * columns)};
  return rows % layout::groupOfWarpsRows == 0 &&
         layout::OperandTile{keys, layout::Major::MN}.checkParts(parts).empty();
}

/// Two programs are faster up to so many queries, on an H100 at d = 64 and 128
/// (test/Benchmark/results/backward.json). Unknown lengths count as long.
static bool isShort(Value queryLength, bool hasMask) {
  constexpr int64_t mostQueries = 2896, mostMasked = 5792;
  std::optional<int64_t> known = getConstantIntValue(queryLength);
  return known && *known <= (hasMask ? mostMasked : mostQueries);
}

bool BackwardKernels::sumsQueryGradients() const {
  ScoredOp attention = this->attention;
  if (isShort(queryLength, attention.hasMask()))
    return false;
  // Beside five products of more columns there are no registers for what score
  // functions and random numbers take.
  constexpr int64_t mostColumns = 128;
  if ((AttentionBackwardOp(op).hasPullback() || attention.hasDropout()) &&
      paddedDim + paddedValueDim > mostColumns)
    return false;
  PlanAttr plan = attention.getPlanAttr();
  return !attention.getNumericsOrDefault().getDeterministic() &&
         element.getIntOrFloatBitWidth() == 16 &&
         paddedDim + paddedValueDim <= plan::maxSummedColumns &&
         canShare(plan, numColumns, paddedDim);
}

void BackwardKernels::clearQuerySums() {
  OpBuilder::InsertionGuard guard(b);
  Value size = arith::ConstantIndexOp::create(b, loc, numColumns * paddedDim);
  Value blocks = ceilDiv(b, loc, queryLength, blockColumns);
  querySums = allocate(f32, {batches, heads, blocks, size});
  tile::KernelOp kernel =
      beginKernel("_clear_query", ValueRange{batches, heads, blocks});
  auto numbers = kernel.getNumbers();
  Value zero =
      splat(b, loc, VectorType::get({numColumns, paddedDim}, f32), 0.0);
  tile::StoreOp::create(b, loc, zero, querySums,
                        ValueRange{numbers[0], numbers[1], numbers[2], c0},
                        /*accumulate=*/false, /*packed=*/true);
}

/// `dScores` has a row per key.
Value BackwardKernels::multiplyKeys(OpBuilder &outer, Value dScores,
                                    Value keyTile) {
  Value zero =
      splat(outer, loc, VectorType::get({numColumns, paddedDim}, f32), 0.0);
  return contract(b, loc, dScores, keyTile, zero, /*transposed=*/false,
                  /*transposedLhs=*/true);
}

/// `number` is that of the block of queries.
void BackwardKernels::addQueryGradient(const BlockNumbers &block, Value number,
                                       Value part) {
  tile::StoreOp::create(b, loc, part, querySums,
                        ValueRange{block.batch, block.head, number, c0},
                        /*accumulate=*/true, /*packed=*/true);
}

void BackwardKernels::buildRoundedQueryGradient(Value gradient) {
  OpBuilder::InsertionGuard guard(b);
  tile::KernelOp kernel = beginKernel(
      "_round_query",
      ValueRange{batches, heads, ceilDiv(b, loc, queryLength, blockColumns)});
  auto numbers = kernel.getNumbers();
  Value row = arith::MulIOp::create(b, loc, numbers[2], blockColumns);
  Value sum = tile::LoadOp::create(
      b, loc, VectorType::get({numColumns, paddedDim}, f32), querySums,
      ValueRange{numbers[0], numbers[1], numbers[2], c0}, /*packed=*/true);
  Value scaled = multiply(sum, attention.getScaleValue());
  tile::StoreOp::create(b, loc, roundTo(b, loc, scaled, element), gradient,
                        ValueRange{numbers[0], numbers[1], row, c0});
}
