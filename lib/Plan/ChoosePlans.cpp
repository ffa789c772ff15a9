//===- ChoosePlans.cpp - which plans an operation is compiled by ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/ChoosePlans.h"

#include "attn/Plan/Plan.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;

FailureOr<plan::Results> plan::readResults(StringRef path, Location loc) {
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
  for (const plan::Measurement &result : results.entries())
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
  FailureOr<plan::Results> results = plan::readResults(path, loc);
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

//===----------------------------------------------------------------------===//
// Measured plans
//===----------------------------------------------------------------------===//

/// What is known of such a kernel. Of one whose number of queries is only known
/// at launch: the measurements with several, if there are any, else the newest
/// one that stands for all numbers.
static SmallVector<const plan::Measurement *> find(ScoredOp op, TargetKind kind,
                                                   const Measured &measured) {
  plan::ResultKey key = plan::getResultKey(op, stringifyTargetKind(kind));
  int64_t queries = plan::getWorkload(op).queries;
  const plan::Measurement *known =
      measured.gpu.empty() ? measured.results.find(key)
                           : measured.results.find(key, measured.gpu, queries);
  StringRef device = measured.gpu;
  if (device.empty() && known)
    device = known->device;
  SmallVector<const plan::Measurement *> lengths =
      measured.results.findLengths(key, device);
  if (queries == 0 && lengths.size() > 1)
    return lengths;
  if (!known)
    return {};
  return {known};
}

/// The fastest measured plans; none if one does not fit, since the compiler
/// that measured it was another: that is said.
static SmallVector<plan::PlanCase> fastest(ScoredOp op, TargetKind kind,
                                           const Measured &measured) {
  if (measured.path.empty())
    return {};
  auto opts = remark::RemarkOpts::name("AttnPlan").category("attn-plan");
  SmallVector<const plan::Measurement *> known = find(op, kind, measured);
  if (known.empty()) {
    std::string key =
        plan::getResultKey(op, stringifyTargetKind(kind)).describe();
    remark::missed(op->getLoc(), opts)
        << llvm::formatv("'{0}' has no plan for {1}{2}", measured.path, key,
                         measured.gpu.empty() ? ""
                                              : " on '" + measured.gpu + "'")
               .str();
    return {};
  }
  SmallVector<plan::PlanCase> cases;
  for (const plan::LengthPlan &length : plan::planLengths(known)) {
    std::string message; // of a compiler that knew other passes
    FailureOr<PlanAttr> parsed =
        plan::parsePlan(length.plan, op->getContext(), message);
    if (failed(parsed) || parsed->getTarget() != kind ||
        !plan::findObstacle(plan::getWorkload(op), plan::getTiles(*parsed),
                            plan::getTarget(kind))
             .empty()) {
      op->emitWarning("the results name a plan that does not fit: ")
          << length.plan << (message.empty() ? "" : ": ") << message;
      return {};
    }
    cases.push_back({length.condition(), *parsed});
  }
  std::string where = "plan of '" + measured.path + "', the fastest on " +
                      known.front()->device + " of " + known.front()->shapes;
  for (const plan::Measurement *other : ArrayRef(known).drop_front())
    where += "; of " + other->shapes;
  remark::passed(op->getLoc(), opts) << where;
  if (!measured.gpu.empty())
    op->emitRemark() << where; // for every tool, and the log of an artifact
  return cases;
}

//===----------------------------------------------------------------------===//
// The other sources
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<plan::PlanCase>> plan::parsePlanCases(StringRef text,
                                                            Location loc) {
  std::string error;
  std::optional<std::vector<RuleCaseText>> parsed = parseRuleCases(text, error);
  if (!parsed)
    return emitError(loc) << "got plan '" << text << "': " << error;
  SmallVector<plan::PlanCase> cases;
  for (const RuleCaseText &entry : *parsed) {
    FailureOr<PlanAttr> plan = plan::parsePlan(entry.variant, loc);
    if (failed(plan))
      return failure();
    cases.push_back({entry.condition, *plan});
  }
  return cases;
}

/// Whether `condition` holds where `narrower` does: each of its comparisons is
/// one of those, or has a higher limit.
static bool isImplied(const LaunchCondition &condition,
                      const LaunchCondition &narrower) {
  using Kind = QuantityComparison::Kind;
  return llvm::all_of(condition.comparisons, [&](const auto &wanted) {
    return llvm::any_of(narrower.comparisons, [&](const auto &given) {
      return given.kind == wanted.kind &&
             given.lhs.print() == wanted.lhs.print() &&
             given.rhs.quantities == wanted.rhs.quantities &&
             (given.rhs.factor == wanted.rhs.factor ||
              (given.kind == Kind::LessEqual &&
               given.rhs.factor < wanted.rhs.factor));
    });
  });
}

/// The pick; where sizes are only known at launch, one for each range of them
/// that the table of measured choices tells apart. Two programs for gradients
/// are those for the fewest queries, and have ranges of their own.
static SmallVector<plan::PlanCase> pickCases(ScoredOp op,
                                             const plan::PlanRequest &request) {
  TargetKind kind = request.target;
  plan::Workload workload = plan::getWorkload(op, kind);
  auto pick = [&](const plan::Workload &limited) {
    return plan::pick(limited, op->getContext(), kind);
  };
  SmallVector<plan::PlanCase> cases =
      plan::pickGradientPlans(op, pick(workload));
  plan::PlanCase others = cases.pop_back_val();
  for (const plan::SizeLimits &limits :
       plan::listHeuristicLimits(workload, plan::getTarget(kind)))
    cases.push_back({limits.condition(), pick(limits.applyTo(workload))});
  cases.push_back(others);
  StringRef loops = optionalPasses[size_t(OptionalPass::LoopHeads)].name;
  if (!llvm::is_contained(request.passes.disabled, loops))
    cases = plan::addHeadLoops(op, std::move(cases), request.isForOneLaunch);
  // Kernels for all launches would be several times as many.
  if (request.isForOneLaunch)
    cases = plan::addQueryParts(op, std::move(cases));
  StringRef hides = optionalPasses[size_t(OptionalPass::HideFaint)].name;
  if (!llvm::is_contained(request.passes.disabled, hides))
    cases = plan::addBiasPlans(op, std::move(cases));
  return cases;
}

/// A program for a few queries, as one step of decoding is.
static bool isDecoding(ScoredOp op) {
  constexpr int64_t mostQueries = 16;
  int64_t queries = plan::getWorkload(op).queries;
  return queries != 0 && queries <= mostQueries;
}

static FailureOr<SmallVector<plan::PlanCase>>
proposePlans(ScoredOp op, const plan::PlanRequest &request) {
  if (!request.gpu.empty() && request.target == TargetKind::CPU)
    return op->emitError("got gpu '") << request.gpu << "', the target is cpu";
  FailureOr<Measured> measured =
      readMeasured(request.results, request.gpu, op->getLoc());
  if (failed(measured))
    return failure();
  if (!request.plan.empty())
    return plan::parsePlanCases(request.plan, op->getLoc());
  if (PlanAttr own = op.getPlanAttr())
    return SmallVector<plan::PlanCase>{{LaunchCondition(), own}};
  SmallVector<plan::PlanCase> known = fastest(op, request.target, *measured);
  if (!known.empty())
    return known;
  SmallVector<plan::PlanCase> cases;
  if (request.isForOneLaunch || isDecoding(op))
    cases = plan::pickDecodePlans(op, request.target, request.isForOneLaunch);
  // The last one may be for all sizes that there are.
  if (!cases.empty() && cases.back().condition.comparisons.empty())
    return cases;
  llvm::append_range(cases, pickCases(op, request));
  return cases;
}

/// A case that those after it would decide alike says nothing. (The passes of a
/// request may make two plans one.)
static void dropRepeated(SmallVectorImpl<plan::PlanCase> &cases) {
  for (size_t i = cases.size() - 1; i-- > 0;)
    if (cases[i].plan == cases[i + 1].plan &&
        isImplied(cases[i + 1].condition, cases[i].condition))
      cases.erase(cases.begin() + i);
}

FailureOr<SmallVector<plan::PlanCase>>
plan::choosePlans(ScoredOp op, const PlanRequest &request) {
  FailureOr<SmallVector<PlanCase>> cases = proposePlans(op, request);
  if (failed(cases))
    return failure();
  for (PlanCase &entry : *cases) {
    if (!entry.plan)
      return op->emitOpError("has no feasible plan for ")
             << stringifyTargetKind(request.target);
    if (entry.plan.getTarget() != request.target)
      return op->emitOpError("plan is for ")
             << stringifyTargetKind(entry.plan.getTarget())
             << ", the target is " << stringifyTargetKind(request.target);
    PassSelection passes = entry.plan.getPasses();
    if (failed(verify(op, entry.plan)) ||
        failed(
            editPasses(passes, request.target, request.passes, op->getLoc())))
      return failure();
    entry.plan = entry.plan.withPasses(passes);
  }
  if (request.plan.empty())
    dropRepeated(*cases);
  return cases;
}

std::string plan::printPlanCases(ArrayRef<PlanCase> cases) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      cases, os,
      [&](const PlanCase &entry) {
        std::string condition = entry.condition.print();
        os << condition << (condition.empty() ? "" : " -> ") << entry.plan;
      },
      "; ");
  return text;
}
