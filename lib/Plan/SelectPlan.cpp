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
#include "attn/Plan/Results.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

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

/// The results in `path`; none where it is empty.
static FailureOr<plan::Results> readResults(StringRef path, Location loc) {
  if (path.empty())
    return plan::Results();
  std::string error;
  FailureOr<plan::Results> results = plan::Results::read(path, error);
  if (failed(results))
    return emitError(loc) << "cannot read results '" << path << "': " << error;
  return results;
}

/// ", but for 'A', 'B'".
static std::string devicesOf(const plan::Results &results) {
  llvm::SetVector<StringRef> names;
  for (const plan::Result &result : results.entries())
    names.insert(result.device);
  std::string text;
  for (StringRef name : names)
    text += (text.empty() ? ", but for '" : ", '") + name.str() + "'";
  return text;
}

namespace {
/// Where measured plans come from.
struct Measured {
  plan::Results results;
  std::string path;
  std::string gpu; // empty: any
};
} // namespace

/// The plans in `path`, or for a GPU in the file that comes with the compiler.
/// That one is nobody's wish: what is wrong with it is a warning.
static FailureOr<Measured> readMeasured(StringRef path, StringRef gpu,
                                        Location loc) {
  FailureOr<plan::Results> results = readResults(path, loc);
  if (failed(results))
    return failure();
  Measured measured{std::move(*results), path.str(), gpu.str()};
  if (gpu.empty())
    return measured;
  if (path.empty()) {
    measured.path = plan::findShippedResults();
    if (measured.path.empty()) {
      emitWarning(loc) << "no measured plans for '" << gpu
                       << "': share/attn/plans.json is not beside the compiler";
      return measured;
    }
    std::string error;
    results = plan::Results::read(measured.path, error);
    if (failed(results)) {
      emitWarning(loc) << "no measured plans for '" << gpu << "': cannot read '"
                       << measured.path << "': " << error;
      return measured;
    }
    measured.results = std::move(*results);
  }
  if (!measured.results.hasDevice(gpu))
    emitWarning(loc) << "'" << measured.path << "' has no plans for '" << gpu
                     << "'" << devicesOf(measured.results);
  return measured;
}

/// What is known of such a kernel; null if nothing.
static const plan::Result *find(ScoredOp op, TargetKind kind,
                                const Measured &measured) {
  plan::ResultKey key = plan::getResultKey(op, stringifyTargetKind(kind));
  return measured.gpu.empty()
             ? measured.results.find(key)
             : measured.results.find(key, measured.gpu,
                                     plan::getWorkload(op).queries);
}

/// The fastest measured plan that fits; a plan that does not, since the
/// compiler that measured it was another, is said and passed over.
static PlanAttr fastest(ScoredOp op, TargetKind kind,
                        const Measured &measured) {
  if (measured.path.empty())
    return {};
  auto opts = remark::RemarkOpts::name("AttnPlan").category("attn-plan");
  const plan::Result *known = find(op, kind, measured);
  if (!known) {
    std::string key =
        plan::getResultKey(op, stringifyTargetKind(kind)).describe();
    remark::missed(op->getLoc(), opts)
        << llvm::formatv("'{0}' has no plan for {1}{2}", measured.path, key,
                         measured.gpu.empty() ? ""
                                              : " on '" + measured.gpu + "'")
               .str();
    return {};
  }
  const std::string &text = known->plans.front().plan;
  FailureOr<PlanAttr> parsed = plan::parsePlan(text, op->getLoc());
  if (failed(parsed) || parsed->getTarget() != kind ||
      !plan::findObstacle(plan::getWorkload(op), plan::getTiles(*parsed),
                          plan::getTarget(kind))
           .empty()) {
    op->emitWarning("the results name a plan that does not fit: ") << text;
    return {};
  }
  std::string where = "plan of '" + measured.path + "', the fastest on " +
                      known->device + " of " + known->shapes;
  remark::passed(op->getLoc(), opts) << where;
  if (!measured.gpu.empty())
    op->emitRemark() << where; // for every tool, and the log of an artifact
  return *parsed;
}

namespace {
struct SelectPlan final : attn::plan::impl::AttnPlanBase<SelectPlan> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetKind> kind = parseTarget(target, getOperation().getLoc());
    if (failed(kind))
      return signalPassFailure();
    if (!gpu.empty() && *kind == TargetKind::CPU) {
      getOperation().emitError("got gpu '") << gpu << "', the target is cpu";
      return signalPassFailure();
    }
    FailureOr<Measured> measured =
        readMeasured(results, gpu, getOperation().getLoc());
    if (failed(measured))
      return signalPassFailure();
    PlanAttr given;
    if (!planText.empty()) {
      FailureOr<PlanAttr> parsed =
          plan::parsePlan(planText, getOperation().getLoc());
      if (failed(parsed))
        return signalPassFailure();
      given = *parsed;
    }
    WalkResult result = getOperation().walk([&](ScoredOp op) {
      return failed(choose(op, *kind, given, *measured))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  /// The option, the operation's own plan, the fastest one, or the pick.
  LogicalResult choose(ScoredOp op, TargetKind kind, PlanAttr given,
                       const Measured &measured) {
    if (!given && op.getPlanAttr())
      given = op.getPlanAttr();
    if (given && given.getTarget() != kind)
      return op->emitOpError("plan is for ")
             << stringifyTargetKind(given.getTarget()) << ", the target is "
             << stringifyTargetKind(kind);
    if (!given)
      given = fastest(op, kind, measured);
    if (!given) {
      given = plan::pick(op, kind);
      if (!given)
        return op->emitOpError("has no feasible plan for ")
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
    FailureOr<plan::Results> measured =
        readResults(results, getOperation().getLoc());
    if (failed(measured))
      return signalPassFailure();
    getOperation().walk([&](ScoredOp op) { print(op, *kind, *measured); });
  }

  /// Microseconds of a plan in the results.
  static std::string measuredTime(const plan::Result *known, PlanAttr plan) {
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
    const plan::Result *known =
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
