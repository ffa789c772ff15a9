//===- Recompute.cpp - attn-recompute -------------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number that two programs need is kept in memory between them, or computed
// by both (Dao et al., "FlashAttention", section 3.1). Of N queries, N keys and
// d columns, products cost N N d operations each; a number of each row costs N
// numbers of memory, a part of d_query for each block of keys N d and as much
// traffic for every block, the scores N N.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Transforms/Recompute.h"

#include "RecomputeCosts.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Layout/Products.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_ATTNRECOMPUTEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The columns of d_key and d_value, as tiles hold them.
static int64_t countColumns(AttentionBackwardOp op) {
  return padColumns(op.getHeadDim()) + padColumns(op.getValueHeadDim());
}

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
  if (!findTarget(stringifyTargetKind(plan.getTarget()))->hasWarpgroups)
    return layout::checkColumnParts(fragment).empty();
  layout::SharedTile keys = {rows, columns, 2,
                             layout::choosePanelBytes(2 * columns)};
  return rows % layout::groupOfWarpsRows == 0 &&
         layout::OperandTile{keys, layout::Major::MN}.checkParts(parts).empty();
}

/// Why so few programs by `plan` cannot compute the gradients; empty where they
/// can.
static std::string findObstacle(AttentionBackwardOp op, PlanAttr plan,
                                RecomputedScores scores) {
  int64_t columns = countColumns(op);
  if (scores != RecomputedScores::Thrice && columns > maxSummedColumns)
    return ("d_key and d_value have " + Twine(columns) +
            " columns, more than the " + Twine(maxSummedColumns) +
            " of which lanes have registers for both sums")
        .str();
  if (scores != RecomputedScores::Once)
    return "";
  if (op.getDQuery().use_empty() || op.getDKey().use_empty())
    return "nobody asks for both d_query and d_key";
  ScoredOp scored = op;
  if (scored.getNumericsOrDefault().getDeterministic())
    return "sums are deterministic, and those of d_query have no order";
  if (scored.getElementType().getIntOrFloatBitWidth() != 16)
    return "elements are wider than 16 bits";
  int64_t rows = plan.getBlockK();
  int64_t dim = padColumns(op.getHeadDim());
  if (!canShare(plan, rows, dim))
    return ("the warps of the plan cannot share a product of " + Twine(rows) +
            " rows and " + Twine(dim) + " columns")
        .str();
  return "";
}

namespace {
/// Up to so many queries two programs are faster than one: with a mask, and
/// where no block is left out.
struct QueryLimits {
  TargetKind target;
  int64_t dim; // of queries, keys and values
  int64_t masked, full;
};
} // namespace

// Of 16-bit elements and plain scores, on an H100 with 16384 tokens in all
// (test/Benchmark/results/backward.json, backward-sm_80.json).
static constexpr QueryLimits measuredLimits[] = {
    {TargetKind::SM90A, 64, 1200, 768},
    {TargetKind::SM90A, 128, 3072, 2048},
    {TargetKind::SM80, 64, 832, 592},
    {TargetKind::SM80, 128, 896, 896},
};

static std::optional<int64_t> findMeasuredLimit(AttentionBackwardOp op,
                                                PlanAttr plan) {
  ScoredOp scored = op;
  if (scored.hasScore() || scored.hasDropout() ||
      op.getHeadDim() != op.getValueHeadDim())
    return std::nullopt;
  for (const QueryLimits &limits : measuredLimits)
    if (limits.target == plan.getTarget() && limits.dim == op.getHeadDim())
      return scored.hasMask() ? limits.masked : limits.full;
  return std::nullopt;
}

/// Of others: about what was measured of their neighbours.
static int64_t guessLimit(AttentionBackwardOp op) {
  constexpr int64_t mostMasked = 724, mostOfWideMasked = 2896, narrow = 64;
  bool isNarrow = std::max(op.getHeadDim(), op.getValueHeadDim()) <= narrow;
  int64_t most = isNarrow ? mostMasked : mostOfWideMasked;
  return ScoredOp(op).hasMask() ? most : most / 2;
}

/// Why one program, which is possible, would be slower than two; empty where it
/// is faster.
static std::string findDrawback(AttentionBackwardOp op) {
  ScoredOp scored = op;
  // Unknown lengths count as long.
  int64_t most =
      findMeasuredLimit(op, op.getPlanAttr()).value_or(guessLimit(op));
  int64_t queries = op.getQuery().getType().getDimSize(ScoredOp::kLength);
  if (!ShapedType::isDynamic(queries) && queries <= most)
    return ("up to " + Twine(most) + " queries two programs are faster").str();
  // Beside five products of more columns there are no registers for what random
  // numbers and most score functions take.
  constexpr int64_t mostColumns = 128;
  if (((op.hasPullback() && !isSoftcap(scored.getScore())) ||
       scored.hasDropout()) &&
      countColumns(op) > mostColumns)
    return ("beside products of " + Twine(countColumns(op)) +
            " columns a score function or random numbers would spill")
        .str();
  return "";
}

/// What `op` itself says.
static RecomputedScores getOwnScores(AttentionBackwardOp op) {
  RecomputeAttr recompute = op.getRecomputeAttr();
  return recompute ? recompute.getScores() : RecomputedScores::Auto;
}

LogicalResult attn::checkRecompute(AttentionBackwardOp op) {
  PlanAttr plan = op.getPlanAttr();
  RecomputedScores own = getOwnScores(op), planned = plan.getScores();
  if (own != RecomputedScores::Auto && planned != RecomputedScores::Auto &&
      own != planned)
    return op.emitOpError("recomputes scores ")
           << stringifyRecomputedScores(own) << ", its plan "
           << stringifyRecomputedScores(planned)
           << ": expected both to say the same, or one to leave it open";
  RecomputedScores scores = own == RecomputedScores::Auto ? planned : own;
  if (scores == RecomputedScores::Auto)
    return success();
  std::string obstacle = findObstacle(op, plan, scores);
  if (obstacle.empty())
    return success();
  return op.emitOpError("cannot recompute scores ")
         << stringifyRecomputedScores(scores) << ": " << obstacle;
}

std::optional<int64_t> attn::findMostQueriesOfTwo(AttentionBackwardOp op,
                                                  PlanAttr plan) {
  if (getOwnScores(op) != RecomputedScores::Auto ||
      !findObstacle(op, plan, RecomputedScores::Once).empty())
    return std::nullopt;
  return findMeasuredLimit(op, plan);
}

namespace {
/// A choice, and why.
template <typename T> struct Decision {
  T choice;
  std::string reason;
};
} // namespace

static constexpr StringLiteral wasAskedFor = "asked for";

static Decision<RecomputedScores> decideScores(AttentionBackwardOp op) {
  PlanAttr plan = op.getPlanAttr();
  if (RecomputedScores own = getOwnScores(op); own != RecomputedScores::Auto)
    return {own, wasAskedFor.str()};
  if (plan.getScores() != RecomputedScores::Auto)
    return {plan.getScores(), "the plan says so"};
  std::string reason = findObstacle(op, plan, RecomputedScores::Twice);
  if (!reason.empty())
    return {RecomputedScores::Thrice, reason};
  reason = findObstacle(op, plan, RecomputedScores::Once);
  if (reason.empty())
    reason = findDrawback(op);
  if (!reason.empty())
    return {RecomputedScores::Twice, reason};
  return {RecomputedScores::Once, "sums may be in any order"};
}

static Decision<RecomputedLse> decideLse(AttentionBackwardOp op) {
  RecomputeAttr recompute = op.getRecomputeAttr();
  if (recompute && recompute.getLse() != RecomputedLse::Auto)
    return {recompute.getLse(), wasAskedFor.str()};
  std::optional<double> bound;
  if (op.hasScore())
    bound =
        boundMagnitude(op.getScore().front().getTerminator()->getOperand(0));
  if (bound && *bound <= getMaxFoldedLse(ScoredOp(op).getElementType()))
    return {RecomputedLse::Never, "the score function yields no more"};
  return {RecomputedLse::FarRows, "scores may be large"};
}

namespace {
struct Recompute : attn::impl::AttnRecomputePassBase<Recompute> {
  using Base::Base;

  void runOnOperation() override {
    WalkResult walk = getOperation()->walk([&](AttentionBackwardOp op) {
      return failed(decide(op)) ? WalkResult::interrupt()
                                : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }

  LogicalResult decide(AttentionBackwardOp op) {
    if (!op.getPlanAttr())
      return op.emitOpError("has no plan, which decides what its lanes can "
                            "hold: run attn-plan first");
    if (failed(checkRecompute(op)))
      return failure();
    auto [scores, why] = decideScores(op);
    auto [lse, whyLse] = decideLse(op);
    op.setRecomputeAttr(RecomputeAttr::get(&getContext(), scores, lse));
    RecomputeCosts costs(op);
    auto report = [&](StringRef name) {
      return remark::analysis(
          op.getLoc(), remark::RemarkOpts::name(name).category(getArgument()));
    };
    report("scores") << remark::metric("recomputed",
                                       stringifyRecomputedScores(scores))
                     << remark::metric("reason", why)
                     << remark::metric("saved", costs.ofSavedWeights())
                     << remark::metric("once", costs.ofScores(1))
                     << remark::metric("twice", costs.ofScores(2))
                     << remark::metric("thrice", costs.ofScores(3));
    report("lse") << remark::metric("recomputed", stringifyRecomputedLse(lse))
                  << remark::metric("reason", whyLse)
                  << remark::metric("never", costs.ofSavedLse())
                  << remark::metric("always", costs.ofComputedLse());
    report("delta") << remark::metric("recomputed", "once")
                    << remark::metric("once", costs.ofDelta())
                    << remark::metric("by-block", costs.ofDeltaByBlock());
    if (op.hasPullback())
      report("score-function")
          << remark::metric("recomputed", "once by program and element")
          << remark::metric("costly", costs.countCostly())
          << remark::metric("shared-with-pullback", costs.countShared())
          << remark::metric("saved", costs.ofSavedIntermediates());
    if (ScoredOp(op).hasDropout())
      report("dropout") << remark::metric("recomputed",
                                          "once by program and element")
                        << remark::metric("drawn", costs.ofDrawnBits())
                        << remark::metric("saved", costs.ofSavedBits());
    return success();
  }
};
} // namespace
