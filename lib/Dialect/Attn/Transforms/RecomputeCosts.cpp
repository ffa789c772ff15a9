//===- RecomputeCosts.cpp - bytes and operations of gradients -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecomputeCosts.h"

#include "attn/Dialect/Attn/Analysis/GradientPrograms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;

static constexpr double bytesOfF32 = 4;
/// A multiplication and an addition.
static constexpr double operationsOfProduct = 2;
/// Philox4x32-10: two products of 32 bits in each of ten rounds.
static constexpr double operationsOfDraw = 20;

RecomputeCosts::RecomputeCosts(AttentionBackwardOp op) : op(op) {
  dim = padColumns(op.getHeadDim());
  valueDim = padColumns(op.getValueHeadDim());
  ScoredOp scored = op;
  elementBytes = scored.getElementType().getIntOrFloatBitWidth() / 8;
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  int64_t keys = cast<RankedTensorType>(op.getKey().getType())
                     .getDimSize(ScoredOp::kLength);
  bool isKnown = !ShapedType::isDynamic(keys);
  double product = 1;
  for (int64_t axis : {ScoredOp::kBatch, ScoredOp::kHead, ScoredOp::kLength}) {
    isKnown &= !query.isDynamicDim(axis);
    product *= double(query.getDimSize(axis));
  }
  if (!isKnown)
    return;
  rows = product;
  // A program of keys has the plan's rows of them.
  blocks =
      product * double(llvm::divideCeil(keys, op.getPlanAttr().getBlockQ()));
  scores = product * double(keys);
}

std::string RecomputeCosts::print(Amount amount) const {
  auto number = [](double value) {
    return llvm::formatv(value == std::floor(value) ? "{0:f0}" : "{0:f3}",
                         value)
        .str();
  };
  if (rows)
    return number(amount.ofRow * *rows + amount.ofBlock * *blocks +
                  amount.ofScore * *scores);
  std::string text;
  for (auto [value, unit] : {std::pair(amount.ofRow, " by row"),
                             std::pair(amount.ofBlock, " by row and block"),
                             std::pair(amount.ofScore, " by score")})
    if (value != 0)
      text += (text.empty() ? "" : " + ") + number(value) + unit;
  return text.empty() ? "0" : text;
}

std::string RecomputeCosts::print(Amount bytes, Amount operations) const {
  return "bytes " + print(bytes) + ", operations " + print(operations);
}

std::string RecomputeCosts::ofScores(int numPrograms) const {
  // Of the gradients; of scores and of weights, by program.
  double columns = double(dim + dim + valueDim);
  columns +=
      double(numPrograms * dim) + double(std::min(numPrograms, 2) * valueDim);
  Amount bytes;
  // Sums of d_query: cleared, added to by each block of keys, read.
  if (numPrograms == 1)
    bytes = {2 * bytesOfF32 * double(dim), 2 * bytesOfF32 * double(dim), 0};
  return print(bytes, {0, 0, operationsOfProduct * columns});
}

std::string RecomputeCosts::ofSavedWeights() const {
  // Written by the forward, read by each of two programs; dO V^T twice.
  double columns = double(2 * dim + valueDim + 2 * valueDim);
  return print({0, 0, 3 * double(elementBytes)},
               {0, 0, operationsOfProduct * columns});
}

std::string RecomputeCosts::ofSavedLse() const {
  return print({2 * bytesOfF32, 0, 0}, {});
}

std::string RecomputeCosts::ofComputedLse() const {
  // Two numbers; the product, a maximum, a difference, exp, a sum.
  constexpr double others = 4;
  return print({4 * bytesOfF32, 0, 0},
               {0, 0, operationsOfProduct * double(dim) + others});
}

std::string RecomputeCosts::ofDelta() const {
  return print({2 * bytesOfF32, 0, 0},
               {operationsOfProduct * double(valueDim), 0, 0});
}

std::string RecomputeCosts::ofDeltaByBlock() const {
  // d_output is there.
  return print({0, double(elementBytes * valueDim), 0},
               {0, operationsOfProduct * double(valueDim), 0});
}

//===----------------------------------------------------------------------===//
// The score function
//===----------------------------------------------------------------------===//

static bool isCostly(Operation &op) {
  if (isa<CaptureLoadOp, CaptureSearchOp, arith::DivFOp, arith::DivSIOp,
          arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    return true;
  return isa_and_nonnull<math::MathDialect>(op.getDialect()) &&
         !isa<math::AbsFOp, math::AbsIOp, math::FmaOp, math::CopySignOp>(op);
}

int64_t RecomputeCosts::countCostly() const {
  AttentionBackwardOp attention = op;
  return llvm::count_if(attention.getScore().getOps(),
                        [](Operation &op) { return isCostly(op); });
}

int64_t RecomputeCosts::countShared() const {
  AttentionBackwardOp attention = op;
  // A pullback may stand alone.
  if (attention.getScore().empty())
    return 0;
  Block &score = attention.getScore().front();
  Block &pullback = attention.getPullback().front();
  // Values of the pullback by those of the score that they are.
  llvm::DenseMap<Value, Value> same;
  for (auto [from, to] : llvm::zip_equal(pullback.getArguments().drop_front(),
                                         score.getArguments()))
    same[from] = to;
  int64_t count = 0;
  for (Operation &op : pullback) {
    auto isEqual = [&](Operation &other) {
      return op.getName() == other.getName() && op.getNumResults() == 1 &&
             op.getResultTypes() == other.getResultTypes() &&
             op.getAttrDictionary() == other.getAttrDictionary() &&
             llvm::equal(
                 op.getOperands(), other.getOperands(),
                 [&](Value from, Value to) { return same.lookup(from) == to; });
    };
    auto found = llvm::find_if(score, isEqual);
    if (found == score.end())
      continue;
    same[op.getResult(0)] = found->getResult(0);
    count += isCostly(op);
  }
  return count;
}

std::string RecomputeCosts::ofSavedIntermediates() const {
  return print({0, 0, 3 * bytesOfF32}, {});
}

std::string RecomputeCosts::ofDrawnBits() const {
  return print({}, {0, 0, operationsOfDraw});
}

std::string RecomputeCosts::ofSavedBits() const {
  // One bit, written and read by two programs.
  return print({0, 0, 3.0 / 8}, {});
}
