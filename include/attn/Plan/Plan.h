//===- Plan.h - choosing a plan ------------------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Plans are attributes (#attn.plan); here is what can be asked about them for
// one attention operation. Nothing here rewrites IR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLAN_PLAN_H
#define ATTN_PLAN_PLAN_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Plan/Budget.h"
#include "attn/Support/LLVM.h"

namespace attn::plan {

Workload getWorkload(ScoredOp op);
Tiles getTiles(PlanAttr plan);
const TargetInfo &getTarget(TargetKind target);

/// Emits why `plan` cannot be compiled for `op`, if it cannot.
LogicalResult verify(ScoredOp op, PlanAttr plan);

/// Puts what is asked for into `passes`, those of a plan for `target`; emits an
/// error at `loc`, with the names that there are, if a name is none of them.
LogicalResult editPasses(PassSelection &passes, TargetKind target,
                         const PassRequest &request, Location loc);

/// Reads `#attn.plan<…>`; if the text is not one, emits an error at `loc`, or
/// says in `message` what is wrong.
FailureOr<PlanAttr> parsePlan(StringRef text, Location loc);
FailureOr<PlanAttr> parsePlan(StringRef text, MLIRContext *context,
                              std::string &message);

/// A plan with such numbers, and all passes that the target runs by default.
PlanAttr makePlan(MLIRContext *context, TargetKind target, const Tiles &tiles);

/// Every legal plan out of a grid of useful sizes, in a fixed order.
SmallVector<PlanAttr> enumeratePlans(ScoredOp op, TargetKind target);
SmallVector<PlanAttr> enumeratePlans(const Workload &workload,
                                     MLIRContext *context, TargetKind target);

/// The same plan with every scheduler that its target knows by name; none where
/// there is only one.
SmallVector<PlanAttr> listSchedulers(PlanAttr plan);

/// What a plan costs, per query block: clocks of one multiprocessor for one
/// step over block_k keys, and the bytes read from memory for it when nothing
/// is shared between blocks.
struct Estimate {
  int64_t blocksPerSM = 0;
  double stepClocks = 0;
  double clocksPerScore = 0; // stepClocks / (block_q * block_k)
  int64_t stepBytes = 0;
};
Estimate estimate(ScoredOp op, PlanAttr plan);
Estimate estimate(const Workload &workload, PlanAttr plan);

/// The measured choice for such an operation if the table has one that is
/// legal, else the legal plan with the lowest estimate. Null if none is legal.
/// With `limits` as if these were known of the operation's sizes.
PlanAttr pick(ScoredOp op, TargetKind target, const SizeLimits &limits = {});
PlanAttr pick(const Workload &workload, MLIRContext *context,
              TargetKind target);

/// The legal plan with the lowest estimate that leaves at least so many
/// registers per thread more than `plan` does, and more than `spilling`, the
/// last one that was tried; else the one that leaves most. Its schedules,
/// parts of keys and what it computes again are those of `plan`. Null if none
/// leaves more than `spilling`.
PlanAttr pickSparing(const Workload &workload, PlanAttr plan, PlanAttr spilling,
                     int64_t registers);

/// The table of measured choices: the row for a workload, not checked.
std::optional<Tiles> lookupHeuristic(const Workload &workload,
                                     const TargetInfo &target);

/// Up to which sizes, where they are only known at launch, the table has
/// another row for such a workload than for larger ones: few rows first, then
/// few queries, each in ascending order.
SmallVector<SizeLimits> listHeuristicLimits(const Workload &workload,
                                            const TargetInfo &target);

} // namespace attn::plan

#endif // ATTN_PLAN_PLAN_H
