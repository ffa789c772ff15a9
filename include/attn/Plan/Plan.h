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
/// With what tiles of a target visit, where its table asks for that: the mask
/// is run, which takes some milliseconds.
Workload getWorkload(ScoredOp op, TargetKind target);
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
PlanAttr pick(ScoredOp op, TargetKind target);
PlanAttr pick(const Workload &workload, MLIRContext *context,
              TargetKind target);

/// What is known of the registers of a kernel: those that a thread of it, or of
/// its consumer, has and fills from one block of code to another, and those of
/// its producer, if it has one; and how long it is.
struct RegisterNeed {
  int64_t live = 0, limit = 0;
  int64_t producerLive = 0, producerLimit = 0;
  int64_t instructions = 0;

  int64_t more() const { return live - limit; }
};

/// Why a plan is not good enough: about how many registers a thread lacks of
/// what it has by the plan that was wanted, and what is known of the kernel by
/// the last one that was tried.
struct Shortage {
  int64_t registers = 0;
  std::optional<RegisterNeed> need;
};

/// How many more registers than there are may live at the end of a block of
/// code without a word about it: the assembler makes some values again.
inline constexpr int64_t registersMadeAgain = 20;

/// A plan for sm_90a with more registers for its producer; null where that
/// lacks none, or not it alone.
PlanAttr spareForProducer(PlanAttr plan, const RegisterNeed &need);

/// A plan for sm_90a with 240 registers for its consumer; null where another
/// number was asked for, or a producer in which so many numbers live lacks what
/// these take.
PlanAttr favorConsumer(PlanAttr plan, int64_t producerLive);

/// The legal plan with the lowest estimate that leaves at least so many
/// registers per thread more than `plan` does, and more than `spilling`, the
/// last one that was tried, or as many with fewer stages, and where what that
/// needs is known, has them; else the one that leaves most. Its schedules,
/// parts of keys and what it computes again are those of `plan`. Null if there
/// is none.
PlanAttr pickSparing(const Workload &workload, PlanAttr plan, PlanAttr spilling,
                     const Shortage &shortage);

/// The table of measured choices: the row for a workload, not checked.
std::optional<Tiles> lookupHeuristic(const Workload &workload,
                                     const TargetInfo &target);

/// Whether the row for a workload depends on what tiles visit.
bool asksForVisits(const Workload &workload, const TargetInfo &target);

/// Up to which sizes, where they are only known at launch, the table has
/// another row for such a workload than for larger ones: few rows first, then
/// few queries, each in ascending order.
SmallVector<SizeLimits> listHeuristicLimits(const Workload &workload,
                                            const TargetInfo &target);

} // namespace attn::plan

#endif // ATTN_PLAN_PLAN_H
