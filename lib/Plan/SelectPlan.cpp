//===- SelectPlan.cpp - plans for the operations of a program -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Passes.h"
#include "attn/Plan/Plan.h"
#include "attn/Plan/Results.h"
#include "llvm/Support/Format.h"

namespace attn::plan {
#define GEN_PASS_DEF_ATTNPLAN
#define GEN_PASS_DEF_ATTNPRINTPLANS
#include "attn/Plan/Passes.h.inc"
} // namespace attn::plan

using namespace mlir;
using namespace attn;

/// The target an option names; emits an error at `loc` if there is none.
static FailureOr<TargetKind> parseTarget(StringRef name, Location loc) {
  if (std::optional<TargetKind> target = symbolizeTargetKind(name))
    return *target;
  return emitError(loc) << "got target '" << name
                        << "', expected cpu, sm_80 or sm_90a";
}

namespace {
struct SelectPlan final : attn::plan::impl::AttnPlanBase<SelectPlan> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetKind> kind = parseTarget(target, getOperation().getLoc());
    if (failed(kind))
      return signalPassFailure();
    // Wrong options are wrong whether or not there is something to plan.
    Location loc = getOperation().getLoc();
    if ((!planText.empty() && failed(plan::parsePlanCases(planText, loc))) ||
        failed(plan::readResults(results, loc)))
      return signalPassFailure();
    plan::PlanRequest request{
        *kind,
        planText,
        results,
        gpu,
        {{without.begin(), without.end()}, {with.begin(), with.end()}}};
    PassSelection passes(stringifyTargetKind(*kind));
    if (failed(plan::editPasses(passes, *kind, request.passes, loc)))
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](ScoredOp op) {
      return failed(choose(op, request, passes)) ? WalkResult::interrupt()
                                                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  /// The plan for all sizes that no condition of a rule names; if `fixed`, one
  /// with these passes.
  LogicalResult choose(ScoredOp op, const plan::PlanRequest &request,
                       const PassSelection &passes) {
    FailureOr<SmallVector<plan::PlanCase>> cases =
        plan::choosePlans(op, request);
    if (failed(cases))
      return failure();
    if (cases->size() > 1 && !request.plan.empty())
      return op->emitOpError("got a rule over ")
             << cases->size() << " cases, expected one plan: only artifacts "
             << "for a GPU have several variants";
    PlanAttr plan = cases->back().plan;
    bool isPicked =
        request.plan.empty() && request.results.empty() && !op.getPlanAttr();
    // What is picked here is for what the pipeline runs.
    if (fixed && isPicked)
      plan = plan.withPasses(passes);
    if (fixed && plan.withPasses(passes) != plan)
      return op->emitOpError("got ")
             << plan << ", expected " << plan.withPasses(passes)
             << ": the pipeline runs what its options say, attn-compile what "
                "the plan says";
    op.setPlanAttr(plan);
    return success();
  }
};

struct PrintPlans final : attn::plan::impl::AttnPrintPlansBase<PrintPlans> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetKind> kind = parseTarget(target, getOperation().getLoc());
    if (failed(kind))
      return signalPassFailure();
    FailureOr<plan::Results> measured =
        plan::readResults(results, getOperation().getLoc());
    if (failed(measured))
      return signalPassFailure();
    getOperation().walk([&](ScoredOp op) { print(op, *kind, *measured); });
  }

  /// Microseconds of a plan in the results.
  static std::string measuredTime(const plan::Measurement *known,
                                  PlanAttr plan) {
    std::string text, time;
    llvm::raw_string_ostream(text) << plan;
    for (size_t i = 0; known && i < known->plans.size(); ++i)
      if (known->plans[i].plan == text)
        llvm::raw_string_ostream(time) << llvm::format(
            ", measured %.4g us", known->plans[i].seconds * 1e6);
    return time;
  }

  static void print(ScoredOp op, TargetKind kind,
                    const plan::Results &measured) {
    llvm::raw_ostream &os = llvm::outs();
    plan::Workload workload = plan::getWorkload(op);
    os << "// plans for " << op.getQuery().getType() << ", head dims "
       << workload.headDim << " and " << workload.valueHeadDim << "\n";
    PlanAttr picked = plan::pick(op, kind);
    SmallVector<PlanAttr> plans = plan::enumeratePlans(op, kind);
    const plan::Measurement *known =
        measured.find(plan::getResultKey(op, stringifyTargetKind(kind)));
    if (picked && !llvm::is_contained(plans, picked))
      plans.push_back(picked);
    for (PlanAttr candidate : plans) {
      plan::Estimate cost = plan::estimate(op, candidate);
      os << "// " << candidate;
      if (kind != TargetKind::CPU) {
        plan::Budget budget = plan::computeBudget(
            workload, plan::getTiles(candidate), plan::getTarget(kind));
        os << " shared " << budget.sharedBytes() << " B, about "
           << budget.registers() << " registers, " << cost.blocksPerSM
           << " blocks per SM,";
      }
      os << llvm::format(" %.4f clocks per score", cost.clocksPerScore)
         << measuredTime(known, candidate)
         << (candidate == picked ? " (pick)\n" : "\n");
    }
  }
};
} // namespace
