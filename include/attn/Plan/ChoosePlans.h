//===- ChoosePlans.h - which plans an operation is compiled by - *- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where one plan cannot serve all sizes that a launch may have, there are
// several, and a rule (VariantRule.h) that says which sizes each is for. As
// text the rule names plans in place of variants:
//
//   query_length <= 1024 -> #attn.plan<…>; #attn.plan<…>
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLAN_CHOOSEPLANS_H
#define ATTN_PLAN_CHOOSEPLANS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Plan/Results.h"
#include "attn/Support/LLVM.h"
#include "attn/Support/VariantRule.h"

namespace attn::plan {

/// What is wished for.
struct PlanRequest {
  TargetKind target = TargetKind::SM80;
  std::string plan;    // a plan or a rule over plans; empty: none is given
  std::string results; // a file of measured plans; empty: none
  std::string gpu;     // whose measured plans are taken; empty: any
  PassRequest passes;  // what changes in the plans, wherever they are from
  /// One of the cases is compiled, not all: there may be some for sizes that
  /// are worth a kernel only to who has them.
  bool isForOneLaunch = false;
};

/// A plan, and for which sizes it is taken; the last case of several has no
/// condition.
struct PlanCase {
  LaunchCondition condition;
  PlanAttr plan;
};

/// The plans that the request gives, else the operation's own, else the fastest
/// of those measured, else the compiler's pick; each with the optional passes
/// of the request. Before what is picked for one launch, or for a program of
/// few queries, there are those for few queries. All fit; diagnostics say what
/// does not, and where measured ones came from.
FailureOr<SmallVector<PlanCase>> choosePlans(ScoredOp op,
                                             const PlanRequest &request);

/// Cases for few queries (DecodePlans.cpp), before all others;
/// none where nothing is gained.
SmallVector<PlanCase> pickDecodePlans(ScoredOp op, TargetKind target,
                                      bool isForOneLaunch);

/// Cases for gradients by the plan `one`, the last one for any number of
/// queries: before it, where sums may be in any order and it was measured, one
/// for few queries, by two programs (GradientPlans.cpp).
SmallVector<PlanCase> pickGradientPlans(ScoredOp op, PlanAttr one);

/// The same cases for gradients of keys that several query heads share, or may:
/// before them those in which blocks of keys go through these heads, where that
/// is faster (HeadPlans.cpp).
SmallVector<PlanCase> addHeadLoops(ScoredOp op, SmallVector<PlanCase> cases,
                                   bool isForOneLaunch);

/// The same cases for gradients; before those of two programs, if there are no
/// others, cases in which several blocks share the keys of a block of queries,
/// for few queries and many keys (QueryParts.cpp).
SmallVector<PlanCase> addQueryParts(ScoredOp op, SmallVector<PlanCase> cases);

/// The same cases for a forward pass; before them, where scores have a linear
/// bias, one for many keys, which leaves out those without weight
/// (BiasPlans.cpp).
SmallVector<PlanCase> addBiasPlans(ScoredOp op, SmallVector<PlanCase> cases);

/// Reads a plan, or a rule over plans; emits an error at `loc` if it is
/// neither.
FailureOr<SmallVector<PlanCase>> parsePlanCases(StringRef text, Location loc);

/// As text that `PlanRequest::plan` takes.
std::string printPlanCases(ArrayRef<PlanCase> cases);

/// The results in `path`, none where it is empty; emits an error at `loc` if
/// they cannot be read.
FailureOr<Results> readResults(StringRef path, Location loc);

} // namespace attn::plan

#endif // ATTN_PLAN_CHOOSEPLANS_H
