//===- GradientPrograms.cpp - how many programs compute gradients ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Analysis/GradientPrograms.h"

#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Layout/Products.h"
#include "attn/Support/TargetInfo.h"

using namespace mlir;
using namespace attn;

/// The columns of d_key and d_value, as tiles hold them.
static int64_t countColumns(AttentionBackwardOp op) {
  return padColumns(op.getHeadDim()) + padColumns(op.getValueHeadDim());
}

/// Whether the warps of a plan can share a product of so many rows: along the
/// rows or, where these are fewer, along the columns, too.
static bool canShare(PlanAttr plan, int64_t rows, int64_t columns, bool isF32) {
  if (plan.getTarget() == TargetKind::CPU)
    return true;
  layout::Fragment fragment = {layout::FragmentKind::Acc, rows, columns,
                               plan.getWarps()};
  if (!fragment.check().empty())
    return false;
  int64_t parts = fragment.columnGroups();
  if (isF32)
    return layout::checkColumnParts(fragment, layout::mmaTF32).empty();
  if (!findTarget(stringifyTargetKind(plan.getTarget()))->hasWarpgroups)
    return layout::checkColumnParts(fragment, layout::mmaSync).empty();
  layout::SharedTile keys = {rows, columns, 2,
                             layout::choosePanelBytes(2 * columns, parts)};
  return rows % layout::groupOfWarpsRows == 0 &&
         layout::OperandTile{keys, layout::Major::MN}.checkParts(parts).empty();
}

std::string attn::findProgramObstacle(AttentionBackwardOp op, PlanAttr plan,
                                      RecomputedScores scores) {
  int64_t columns = countColumns(op);
  int64_t most =
      plan.getTarget() == TargetKind::CPU
          ? layout::maxSummedColumns
          : layout::countMostSummedColumns(plan.getBlockQ(), plan.getWarps());
  if (scores != RecomputedScores::Thrice && columns > most)
    return ("d_key and d_value have " + Twine(columns) +
            " columns, more than the " + Twine(most) +
            " of which lanes have registers for both sums")
        .str();
  if (scores != RecomputedScores::Once)
    return "";
  if (op.getDQuery().use_empty() || op.getDKey().use_empty())
    return "nobody asks for both d_query and d_key";
  if (plan.getSplitKeys() != 1)
    return "blocks of the kernel of d_query share keys";
  ScoredOp scored = op;
  if (scored.getNumericsOrDefault().getDeterministic())
    return "sums are deterministic, and those of d_query have no order";
  bool isF32 = scored.getElementType().isF32();
  if (scored.getNumericsOrDefault().getF32Products() == F32Products::IEEE)
    return "products are ieee, and lanes do not share those";
  int64_t rows = plan.getBlockK();
  int64_t dim = padColumns(op.getHeadDim());
  if (!canShare(plan, rows, dim, isF32))
    return ("the warps of the plan cannot share a product of " + Twine(rows) +
            " rows and " + Twine(dim) + " columns")
        .str();
  return "";
}

namespace {
/// Up to so many queries two programs are faster than one: with a mask, and
/// where no block is left out. Of warpgroups also for dimensions below, down to
/// the one before.
struct QueryLimits {
  TargetKind target;
  int64_t dim; // of queries, keys and values
  int64_t masked, full;
};
} // namespace

// Of 16-bit elements and plain scores, on an H100 with 16384 tokens in all
// (test/Benchmark/results/gradient-forms.json); up to d = 48 on an H200, where
// one program is 1.08 (d = 48) to 1.12 times (d = 32) as fast with 512 queries,
// 0.99 times behind a causal mask, 1.10 with 1024; d = 72 to 112 of an H200,
// too.
static constexpr QueryLimits measuredLimits[] = {
    {TargetKind::SM90A, 32, 560, 400},   {TargetKind::SM90A, 40, 560, 400},
    {TargetKind::SM90A, 48, 560, 400},   {TargetKind::SM90A, 64, 1739, 866},
    {TargetKind::SM90A, 72, 518, 400},   {TargetKind::SM90A, 80, 959, 527},
    {TargetKind::SM90A, 96, 1401, 811},  {TargetKind::SM90A, 112, 1617, 871},
    {TargetKind::SM90A, 128, 2245, 856}, {TargetKind::SM80, 64, 942, 565},
    {TargetKind::SM80, 128, 1248, 660},
};

static const QueryLimits *findMeasuredLimits(AttentionBackwardOp op,
                                             PlanAttr plan) {
  ScoredOp scored = op;
  if (scored.hasScore() || scored.hasDropout() ||
      op.getHeadDim() != op.getValueHeadDim() ||
      scored.getElementType().isF32())
    return nullptr;
  int64_t dim = op.getHeadDim();
  for (const QueryLimits &limits : measuredLimits) {
    bool isNeighbour = limits.target == TargetKind::SM90A && dim < limits.dim;
    if (limits.target == plan.getTarget() && (dim == limits.dim || isNeighbour))
      return &limits;
  }
  return nullptr;
}

static std::optional<int64_t> findMeasuredLimit(AttentionBackwardOp op,
                                                PlanAttr plan) {
  const QueryLimits *limits = findMeasuredLimits(op, plan);
  if (!limits)
    return std::nullopt;
  return ScoredOp(op).hasMask() ? limits->masked : limits->full;
}

/// Of others: about what was measured of their neighbours. Of f32, whose
/// products take ten times as long, one program is faster from 128 queries on,
/// at d = 64 from 77 (an H200).
static int64_t guessLimit(AttentionBackwardOp op) {
  if (ScoredOp(op).getElementType().isF32())
    return 0;
  constexpr int64_t mostMasked = 724, mostOfWideMasked = 2896, narrow = 64;
  bool isNarrow = std::max(op.getHeadDim(), op.getValueHeadDim()) <= narrow;
  int64_t most = isNarrow ? mostMasked : mostOfWideMasked;
  return ScoredOp(op).hasMask() ? most : most / 2;
}

std::string attn::findDrawbackOfOne(AttentionBackwardOp op, PlanAttr plan) {
  ScoredOp scored = op;
  // Unknown lengths count as long.
  int64_t most = findMeasuredLimit(op, plan).value_or(guessLimit(op));
  int64_t queries = op.getQuery().getType().getDimSize(ScoredOp::kLength);
  if (!ShapedType::isDynamic(queries) && queries <= most)
    return ("up to " + Twine(most) + " queries two programs are faster").str();
  // ptxas has warpgroups wait for each product where sums of so many columns
  // leave no registers: 192 with values of 64.
  constexpr int64_t mostQueryColumns = 128;
  bool ofWarpgroups =
      plan.getTarget() == TargetKind::SM90A && !scored.getElementType().isF32();
  if (ofWarpgroups && padColumns(op.getHeadDim()) > mostQueryColumns)
    return ("sums of " + Twine(padColumns(op.getHeadDim())) +
            " columns of d_query leave no registers for products in flight")
        .str();
  // Beside five products of more columns there are no registers for what random
  // numbers and most score functions take.
  constexpr int64_t mostColumns = 128;
  if (((op.changesGradient() && !isSoftcap(scored.getScore())) ||
       scored.hasDropout()) &&
      countColumns(op) > mostColumns)
    return ("beside products of " + Twine(countColumns(op)) +
            " columns a score function or random numbers would spill")
        .str();
  return "";
}

RecomputedScores attn::getOwnScores(AttentionBackwardOp op) {
  RecomputeAttr recompute = op.getRecomputeAttr();
  return recompute ? recompute.getScores() : RecomputedScores::Auto;
}

bool attn::computesOnce(AttentionBackwardOp op, PlanAttr plan) {
  RecomputedScores scores = plan.getScores();
  if (scores == RecomputedScores::Auto)
    scores = getOwnScores(op);
  if (scores == RecomputedScores::Auto)
    return findProgramObstacle(op, plan, RecomputedScores::Once).empty() &&
           findDrawbackOfOne(op, plan).empty();
  return scores == RecomputedScores::Once;
}

/// Whether both forms are possible and `op` leaves the choice.
static bool isOpen(AttentionBackwardOp op, PlanAttr plan) {
  return getOwnScores(op) == RecomputedScores::Auto &&
         findProgramObstacle(op, plan, RecomputedScores::Once).empty();
}

bool attn::wantsTwoSideBySide(AttentionBackwardOp op, PlanAttr plan) {
  constexpr int64_t widest = 80;
  ScoredOp scored = op;
  bool isMeasured = plan.getTarget() == TargetKind::SM90A &&
                    scored.getElementType().isF32() && !scored.hasScore() &&
                    !scored.hasDropout() &&
                    std::max(op.getHeadDim(), op.getValueHeadDim()) <= widest;
  return isMeasured && isOpen(op, plan) && findDrawbackOfOne(op, plan).empty();
}

std::optional<int64_t> attn::findMostQueriesOfTwo(AttentionBackwardOp op,
                                                  PlanAttr plan) {
  return isOpen(op, plan) ? findMeasuredLimit(op, plan) : std::nullopt;
}

std::optional<int64_t> attn::findMostKeysOfTwo(AttentionBackwardOp op,
                                               PlanAttr plan) {
  const QueryLimits *limits =
      isOpen(op, plan) ? findMeasuredLimits(op, plan) : nullptr;
  return limits ? std::optional(limits->full) : std::nullopt;
}
