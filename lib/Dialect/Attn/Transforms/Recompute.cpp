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

#include "attn/Dialect/Attn/Analysis/GradientPrograms.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_ATTNRECOMPUTEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

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
  std::string obstacle = findProgramObstacle(op, plan, scores);
  if (obstacle.empty())
    return success();
  return op.emitOpError("cannot recompute scores ")
         << stringifyRecomputedScores(scores) << ": " << obstacle;
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
  std::string reason = findProgramObstacle(op, plan, RecomputedScores::Twice);
  if (!reason.empty())
    return {RecomputedScores::Thrice, reason};
  reason = findProgramObstacle(op, plan, RecomputedScores::Once);
  if (reason.empty())
    reason = findDrawbackOfOne(op, plan);
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
