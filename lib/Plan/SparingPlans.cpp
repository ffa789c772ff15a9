//===- SparingPlans.cpp - plans that need fewer registers ----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Plan.h"

#include <cmath>
#include <tuple>

using namespace mlir;
using namespace attn;

namespace {
/// A plan, with what it is chosen by.
struct RankedPlan {
  RankedPlan(const plan::Workload &workload, PlanAttr plan)
      : plan(plan), tiles(plan::getTiles(plan)) {
    plan::Budget budget =
        plan::computeBudget(workload, tiles, plan::getTarget(plan.getTarget()));
    left = budget.registerLimit - budget.registers();
    clocks = plan::estimate(workload, plan).clocksPerScore;
  }

  PlanAttr plan;
  plan::Tiles tiles;
  int64_t left; // registers that the budget does not name
  double clocks;
};
} // namespace

/// The better is less: what the estimate does not tell apart, by how much it is
/// like `wanted`, which was measured, and by large steps.
static auto rank(const RankedPlan &candidate, const RankedPlan &wanted) {
  constexpr double told = 50; // differences of a fiftieth
  constexpr int64_t usualStages = 2;
  const plan::Tiles &tiles = candidate.tiles;
  return std::tuple(std::lround(std::log(candidate.clocks) * told),
                    tiles.warps != wanted.tiles.warps,
                    tiles.blockQ != wanted.tiles.blockQ, -tiles.blockK,
                    std::abs(tiles.stages - usualStages), tiles.stages);
}

/// Whether the tiles can have rows of so many heads.
static bool canPack(const plan::Workload &workload, const RankedPlan &candidate,
                    int64_t heads) {
  plan::Tiles tiles = candidate.tiles;
  tiles.packedHeads = heads;
  return plan::findObstacle(workload, tiles,
                            plan::getTarget(candidate.plan.getTarget()))
      .empty();
}

PlanAttr plan::pickSparing(const Workload &workload, PlanAttr plan,
                           PlanAttr spilling, int64_t registers) {
  RankedPlan wanted(workload, plan), last(workload, spilling);
  std::optional<RankedPlan> best, most;
  for (PlanAttr other :
       enumeratePlans(workload, plan.getContext(), plan.getTarget())) {
    RankedPlan candidate(workload, other);
    if (candidate.left <= last.left ||
        !canPack(workload, candidate, plan.getPackedHeads()))
      continue;
    if (!most || candidate.left > most->left)
      most = candidate;
    // Scores of more keys at a time take more registers than tiles tell.
    if (candidate.left >= wanted.left + registers &&
        candidate.tiles.blockK <= wanted.tiles.blockK &&
        (!best || rank(candidate, wanted) < rank(*best, wanted)))
      best = candidate;
  }
  const std::optional<RankedPlan> &taken = best ? best : most;
  if (!taken)
    return nullptr;
  return taken->plan.withScheduler(plan.getScheduler())
      .withSplitKeys(plan.getSplitKeys())
      .withPackedHeads(plan.getPackedHeads())
      .withScores(plan.getScores())
      .withPasses(plan.getPasses());
}
