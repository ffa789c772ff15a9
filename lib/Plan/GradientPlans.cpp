//===- GradientPlans.cpp - plans for gradients by one program or two ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients whose sums may be in any order are one program, which adds parts of
// d_query to memory, or two, which compute scores twice. One is faster for many
// queries, two for few (GradientPrograms.cpp), and each has tiles of
// its own.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Analysis/GradientPrograms.h"
#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;

SmallVector<PlanCase> plan::pickGradientPlans(ScoredOp op, PlanAttr one) {
  SmallVector<PlanCase> cases = {{LaunchCondition(), one}};
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (!one || !backward)
    return cases;
  std::optional<int64_t> most = findMostQueriesOfTwo(backward, one);
  Workload workload = getWorkload(op);
  if (!most || workload.queries > *most)
    return cases;
  bool isKnown = workload.queries != 0;
  workload.inAnyOrder = false; // within each of two programs
  if (!isKnown)
    workload.queries = *most;
  PlanAttr two = pick(workload, op->getContext(), one.getTarget());
  if (!two)
    return cases;
  if (isKnown) // attn-recompute knows it, too
    return {{LaunchCondition(), two}};
  SizeLimits few;
  few.maxQueries = *most;
  cases.insert(cases.begin(),
               {few.condition(), two.withScores(RecomputedScores::Twice)});
  // For fewer yet the table may have other ones.
  workload.queries = 0;
  const TargetInfo &target = getTarget(one.getTarget());
  SmallVector<SizeLimits> ranges = listHeuristicLimits(workload, target);
  for (const SizeLimits &fewer : llvm::reverse(ranges)) {
    if (!fewer.maxQueries || *fewer.maxQueries >= *most)
      continue;
    workload.queries = *fewer.maxQueries;
    if (PlanAttr own = pick(workload, op->getContext(), one.getTarget()))
      cases.insert(cases.begin(), {fewer.condition(),
                                   own.withScores(RecomputedScores::Twice)});
  }
  return cases;
}
