//===- SelectPlan.cpp - plans for the operations of a program -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Passes.h"
#include "attn/Plan/Plan.h"
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
    PlanAttr given;
    if (!planText.empty()) {
      FailureOr<PlanAttr> parsed =
          plan::parsePlan(planText, getOperation().getLoc());
      if (failed(parsed))
        return signalPassFailure();
      given = *parsed;
    }
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      return failed(choose(op, *kind, given)) ? WalkResult::interrupt()
                                              : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  /// The option, the operation's own plan, or the pick.
  LogicalResult choose(AttentionOp op, TargetKind kind, PlanAttr given) {
    if (!given && op.getPlan())
      given = *op.getPlan();
    if (given && given.getTarget() != kind)
      return op.emitOpError("plan is for ")
             << stringifyTargetKind(given.getTarget()) << ", the target is "
             << stringifyTargetKind(kind);
    if (!given) {
      given = plan::pick(op, kind);
      if (!given)
        return op.emitOpError("has no feasible plan for ")
               << stringifyTargetKind(kind);
    }
    if (failed(plan::verify(op, given)))
      return failure();
    op.setPlanAttr(given);
    return success();
  }
};

struct PrintPlans final : attn::plan::impl::AttnPrintPlansBase<PrintPlans> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetKind> kind = parseTarget(target, getOperation().getLoc());
    if (failed(kind))
      return signalPassFailure();
    getOperation().walk([&](AttentionOp op) { print(op, *kind); });
  }

  static void print(AttentionOp op, TargetKind kind) {
    llvm::raw_ostream &os = llvm::outs();
    plan::Workload workload = plan::getWorkload(op);
    os << "// plans for " << op.getQuery().getType() << ", head dims "
       << workload.headDim << " and " << workload.valueHeadDim << "\n";
    PlanAttr picked = plan::pick(op, kind);
    SmallVector<PlanAttr> plans = plan::enumeratePlans(op, kind);
    if (picked && !llvm::is_contained(plans, picked))
      plans.push_back(picked);
    for (PlanAttr candidate : plans) {
      plan::Estimate cost = plan::estimate(op, candidate);
      os << "// " << candidate;
      if (kind != TargetKind::CPU) {
        plan::Budget budget = plan::computeBudget(
            workload, plan::getTiles(candidate), plan::getTarget(kind));
        os << " shared " << budget.sharedBytes() << " B, about "
           << budget.registers << " registers, " << cost.blocksPerSM
           << " blocks per SM,";
      }
      os << llvm::format(" %.4f clocks per score", cost.clocksPerScore)
         << (candidate == picked ? " (pick)\n" : "\n");
    }
  }
};
} // namespace
