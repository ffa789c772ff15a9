//===- Enumerate.cpp - the legal plans ------------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Plan.h"

using namespace mlir;
using namespace attn;

PlanAttr plan::makePlan(MLIRContext *context, TargetKind target,
                        const Tiles &tiles) {
  SmallVector<OptionalPass, 1> without, with;
  if (tiles.isSync)
    without.push_back(OptionalPass::MakeAsync);
  if (!tiles.takesTurns)
    without.push_back(OptionalPass::InsertTurns);
  if (tiles.testsAhead)
    with.push_back(OptionalPass::TestAhead);
  if (tiles.endsTakeTurns)
    with.push_back(OptionalPass::TurnEnds);
  return PlanAttr::get(context, target, tiles.blockQ, tiles.blockK, tiles.warps,
                       tiles.stages, tiles.qInRegisters,
                       tiles.onGrid ? SchedulerKind::Grid : SchedulerKind::Auto,
                       tiles.consumerRegisters, tiles.blocksPerSM,
                       tiles.splitKeys, tiles.packedHeads,
                       RecomputedScores::Auto, without, with);
}

SmallVector<PlanAttr> plan::enumeratePlans(ScoredOp op, TargetKind target) {
  return enumeratePlans(getWorkload(op), op->getContext(), target);
}

SmallVector<PlanAttr> plan::enumeratePlans(const Workload &workload,
                                           MLIRContext *context,
                                           TargetKind target) {
  const TargetInfo &info = getTarget(target);
  SmallVector<PlanAttr> plans;
  auto consider = [&](const Tiles &tiles) {
    if (findObstacle(workload, tiles, info).empty())
      plans.push_back(makePlan(context, target, tiles));
  };
  if (target == TargetKind::CPU) {
    for (int64_t blockQ : {8, 16, 32})
      for (int64_t blockK : {16, 32, 64})
        consider({blockQ, blockK});
    return plans;
  }
  // Few queries, of heads that share keys.
  constexpr int64_t fewQueries = 16;
  bool isFew = workload.queries > 0 && workload.queries <= fewQueries;
  auto considerSharing = [&](Tiles tiles) {
    for (int64_t parts : {1, 8, 16, 32})
      for (int64_t heads : {1, 2, 4, 8}) {
        tiles.splitKeys = parts;
        tiles.packedHeads = heads;
        bool isPacked = heads == 1 || workload.headsPerKeyHead > 1;
        if (isFew && isPacked && (parts > 1 || heads > 1))
          consider(tiles);
      }
  };
  // Of f32 16 keys at a time leave registers.
  SmallVector<int64_t> fewKeys;
  if (workload.elementBytes == 4)
    fewKeys.push_back(16);
  if (info.hasWarpgroups) {
    bool isWide = std::max(workload.headDim, workload.valueHeadDim) > 128;
    for (int64_t groups : {1, 2, 3, 4})
      for (int64_t blockK : llvm::concat<const int64_t>(
               fewKeys,
               ArrayRef<int64_t>{32, 48, 64, 80, 96, 112, 128, 160, 192}))
        for (int64_t stages : {1, 2, 3})
          // Gradients by 48 keys take 1.1 to 1.7 times as long as by 32 (21
          // masks and scores on an H100, d = 64 and 128).
          if (!workload.isBackward || blockK != 48 || isWide)
            consider({64 * groups, blockK, 4 * groups, stages});
    for (int64_t blockK : {64, 128})
      considerSharing({64, blockK, 4, 2});
    return plans;
  }
  for (int64_t blockQ : {64, 128})
    for (int64_t blockK :
         llvm::concat<const int64_t>(fewKeys, ArrayRef<int64_t>{32, 64, 128}))
      for (int64_t warps : {4, 8})
        for (int64_t stages : {1, 2, 3})
          for (bool qInRegisters : {false, true})
            consider({blockQ, blockK, warps, stages, qInRegisters});
  considerSharing({64, 64, 4, 2});
  return plans;
}

SmallVector<PlanAttr> plan::listSchedulers(PlanAttr plan) {
  SmallVector<PlanAttr> plans;
  if (getTarget(plan.getTarget()).hasWarpgroups)
    for (SchedulerKind scheduler :
         {SchedulerKind::Grid, SchedulerKind::Static, SchedulerKind::Dynamic})
      plans.push_back(plan.withScheduler(scheduler));
  return plans;
}

PlanAttr plan::pick(ScoredOp op, TargetKind target) {
  return pick(getWorkload(op, target), op->getContext(), target);
}

PlanAttr plan::pick(const Workload &workload, MLIRContext *context,
                    TargetKind target) {
  std::optional<Tiles> row = lookupHeuristic(workload, getTarget(target));
  if (row && findObstacle(workload, *row, getTarget(target)).empty())
    return makePlan(context, target, *row);
  PlanAttr best;
  double bestClocks = 0;
  for (PlanAttr candidate : enumeratePlans(workload, context, target)) {
    double clocks = estimate(workload, candidate).clocksPerScore;
    if (!best || clocks < bestClocks) {
      best = candidate;
      bestClocks = clocks;
    }
  }
  return best;
}
