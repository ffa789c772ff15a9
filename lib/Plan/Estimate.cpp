//===- Estimate.cpp - what a plan costs -----------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step over block_k keys keeps four units of a multiprocessor busy: the
// tensor cores (two products; the f32 lanes where these are ieee), the special
// function unit (one exponential per score), the f32 lanes (about six
// operations per score, more under a score region) and shared memory (each warp
// reads both tiles, and the query tile unless it stays in registers). Warps of
// different blocks overlap; a block alone alternates between products and
// softmax.
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Plan.h"

#include <algorithm>

using namespace mlir;
using namespace attn;

plan::Estimate plan::estimate(ScoredOp op, PlanAttr plan) {
  return estimate(getWorkload(op), plan);
}

plan::Estimate plan::estimate(const Workload &workload, PlanAttr plan) {
  Tiles tiles = getTiles(plan);
  const TargetInfo &target = getTarget(plan.getTarget());
  Budget budget = computeBudget(workload, tiles, target);
  Estimate result;
  result.blocksPerSM = blocksPerSM(budget, tiles, target);
  result.stepBytes = budget.stepBytes();

  double scores = static_cast<double>(tiles.blockQ * tiles.blockK);
  double dims = static_cast<double>(padHeadDim(workload.headDim) +
                                    padHeadDim(workload.valueHeadDim));
  double flops = 2 * scores * dims;
  double operations =
      scores * (6 + (workload.hasScore ? 4 : 0) + (workload.hasMask ? 1 : 0)) +
      // rescaling of the output
      static_cast<double>(tiles.blockQ * padHeadDim(workload.valueHeadDim));
  if (target.sm == 0) {
    // A core with 16 multiply-adds per clock, and an overhead per step.
    result.stepClocks = flops / 32 + operations + 2000;
    result.clocksPerScore = result.stepClocks / scores;
    return result;
  }
  double tensor = flops / (workload.hasIeeeProducts     ? 2.0 * target.fp32Lanes
                           : workload.elementBytes == 2 ? target.tensorFlops16
                                                        : target.tensorFlops32);
  double softmax =
      std::max(scores / target.exp2Lanes, operations / target.fp32Lanes);
  // A warp reads the tiles by itself; on sm_90a four do so together.
  int64_t readers = budget.barrierBytes != 0 ? tiles.warps / 4 : tiles.warps;
  double sharedBytes =
      static_cast<double>(readers * result.stepBytes) +
      (tiles.qInRegisters
           ? 0.0
           : static_cast<double>(budget.getBuffer("Q").slotBytes)) +
      static_cast<double>(result.stepBytes); // written once
  double shared = sharedBytes / target.sharedBytesPerClock;
  double products = std::max(tensor, shared);
  double alone = products + softmax + 100; // barriers
  double overlapped = std::max({tensor, softmax, shared});
  // With b blocks, or groups of consumers, one waits while b - 1 work.
  double b = static_cast<double>(std::max<int64_t>(
      result.blocksPerSM, budget.barrierBytes != 0 ? tiles.warps / 4 : 1));
  result.stepClocks = std::max(overlapped, alone / b);
  if (tiles.stages == 1)
    result.stepClocks += shared / b;
  result.clocksPerScore = result.stepClocks / scores;
  return result;
}
