//===- Tuning.cpp - the fastest legal plan, by measurement -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Tune/Tuning.h"

#include "attn/Execute/DeviceProgram.h"
#include "attn/Pipelines/Compile.h"
#include "attn/Pipelines/Signature.h"
#include "attn/Plan/Plan.h"

#include <algorithm>
#include <chrono>
#include <random>

using namespace mlir;
using namespace attn;
using attn::runtime::Result;
using attn::runtime::Status;

static double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

const Candidate *TuningReport::best() const {
  const Candidate *best = nullptr;
  for (const Candidate &candidate : candidates)
    if (candidate.timing &&
        (!best || candidate.timing->median < best->timing->median))
      best = &candidate;
  return best;
}

plan::Measurement TuningReport::result() const {
  plan::Measurement result;
  result.key = key;
  result.device = device;
  if (work.queries > 0)
    result.queries = work.queries;
  if (work.queries > 0 && multiprocessors > 0)
    result.rows = work.batchHeads * work.queries / multiprocessors;
  for (const std::string &shape : shapes)
    result.shapes += (result.shapes.empty() ? "" : ", ") + shape;
  for (const Candidate &candidate : candidates)
    if (candidate.timing)
      result.plans.push_back({candidate.plan, candidate.timing->median});
  return result;
}

namespace {
class Tuning {
public:
  Tuning(ModuleOp module, const TuningRequest &request)
      : module(module), request(request) {}

  TuningReport run();

private:
  bool fail(TrialStatus status, const std::string &message) {
    report.status = status;
    report.message = message;
    return false;
  }
  void say(const std::string &line) {
    if (request.progress)
      request.progress(line);
  }
  bool listCandidates();
  void addCandidate(PlanAttr plan, bool isPick);
  bool openDevice();
  FailureOr<Artifact> compile(size_t number);
  bool compileFrom(size_t first);
  bool prepare(const Artifact &artifact);
  bool measure();
  bool trySchedulers();

  ModuleOp module;
  const TuningRequest &request;
  TuningReport report;
  ScoredOp attention;
  ArrayAttr countedVariants; // those of the forward
  std::optional<runtime::Device> device;
  Operands operands;
  std::optional<DeviceOperands> memory;
  /// With the number of their candidate.
  std::vector<std::pair<size_t, DeviceProgram>> programs;
};
} // namespace

/// The plans to measure, from the operation as the compiler sees it.
bool Tuning::listCandidates() {
  FailureOr<func::FuncOp> function =
      findFunction(module, request.trial.function);
  if (failed(function))
    return fail(TrialStatus::BadInput, "");
  report.function = function->getName().str();
  function->walk([&](ScoredOp op) { attention = op; });
  FailureOr<func::FuncOp> forward =
      request.trial.forward.empty()
          ? function
          : findFunction(module, request.trial.forward);
  if (failed(forward))
    return fail(TrialStatus::BadInput, "");
  forward->walk([&](ScoredOp op) { countedVariants = op.getVariantsAttr(); });
  std::optional<TargetKind> kind = symbolizeTargetKind(request.trial.target);
  if (!attention || !kind || *kind == TargetKind::CPU)
    return fail(TrialStatus::BadInput,
                attention ? "cannot measure plans for '" +
                                request.trial.target + "', wanted a GPU"
                          : "'" + report.function + "' has no attn.attention");
  report.key = plan::getResultKey(attention, request.trial.target);

  PlanAttr picked = plan::pick(attention, *kind);
  SmallVector<PlanAttr> plans;
  if (!request.trial.plan.empty()) {
    FailureOr<PlanAttr> given =
        plan::parsePlan(request.trial.plan, module.getLoc());
    if (failed(given) || failed(plan::verify(attention, *given)))
      return fail(TrialStatus::BadInput, "");
    plans.push_back(*given);
  } else if (request.tune) {
    plans = plan::enumeratePlans(attention, *kind);
  }
  if (request.trial.plan.empty() && picked &&
      !llvm::is_contained(plans, picked))
    plans.push_back(picked);
  for (PlanAttr attr : plans) {
    PassSelection passes = attr.getPasses();
    if (failed(plan::editPasses(passes, *kind, request.trial.passes,
                                module.getLoc())))
      return fail(TrialStatus::BadInput, "");
    addCandidate(attr.withPasses(passes), attr == picked);
  }
  if (report.candidates.empty())
    return fail(TrialStatus::BadInput, "no plan of '" + report.function +
                                           "' fits " + request.trial.target);
  return true;
}

void Tuning::addCandidate(PlanAttr plan, bool isPick) {
  Candidate &candidate = report.candidates.emplace_back();
  llvm::raw_string_ostream(candidate.plan) << plan;
  candidate.clocksPerScore = plan::estimate(attention, plan).clocksPerScore;
  candidate.isPick = isPick;
}

bool Tuning::openDevice() {
  auto found = runtime::Device::current();
  if (!found.ok())
    return fail(TrialStatus::NoDevice, found.message());
  device = *found;
  report.device = device->name;
  report.multiprocessors = device->multiprocessors;
  return true;
}

/// The operands, once for all candidates: their signature is the same.
bool Tuning::prepare(const Artifact &artifact) {
  auto made = makeOperands(artifact, request.trial.operands);
  if (!made.ok())
    return fail(TrialStatus::BadInput, made.message());
  operands = std::move(*made);
  for (auto [info, tensor] :
       llvm::zip_equal(artifact.arguments, operands.tensors))
    if (tensor)
      report.shapes.push_back(describeTensor(info, *tensor));
  report.work = countWork(attention, countedVariants, artifact, operands);
  auto call = runtime::prepareLaunch(artifact, operands.arguments());
  if (!call.ok())
    return fail(TrialStatus::BadInput, call.message());
  auto uploaded = DeviceOperands::upload(*device, operands);
  if (!uploaded.ok())
    return fail(TrialStatus::NoDevice, uploaded.message());
  memory = std::move(*uploaded);
  return true;
}

/// The artifact of a candidate; what is wrong with one plan is its refusal, not
/// the end.
FailureOr<Artifact> Tuning::compile(size_t number) {
  Candidate &candidate = report.candidates[number];
  if (request.compiled)
    if (auto known = request.compiled->find(candidate.plan);
        known != request.compiled->end())
      return known->second;
  say("compiling " + std::to_string(number + 1) + " of " +
      std::to_string(report.candidates.size()) + ": " + candidate.plan);
  CompileOptions options;
  options.target = request.trial.target;
  options.plan = candidate.plan;
  options.function = request.trial.function;
  options.ptxas = request.trial.ptxas;
  double start = now();
  ScopedDiagnosticHandler handler(
      module.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
          candidate.refusal +=
              (candidate.refusal.empty() ? "" : "; ") + diagnostic.str();
        return success();
      });
  FailureOr<Artifact> artifact = attn::compile(module, options);
  candidate.compileSeconds = now() - start;
  if (failed(artifact) && candidate.refusal.empty())
    candidate.refusal = "does not compile";
  if (succeeded(artifact) && request.compiled)
    request.compiled->emplace(candidate.plan, *artifact);
  return artifact;
}

bool Tuning::compileFrom(size_t first) {
  for (size_t number = first; number < report.candidates.size(); ++number) {
    Candidate &candidate = report.candidates[number];
    FailureOr<Artifact> artifact = compile(number);
    if (failed(artifact))
      continue;
    VariantInfo::CodeFigures figures = artifact->variants.front().figures();
    candidate.registers = figures.registers;
    candidate.spillBytes = figures.spillStoreBytes;
    candidate.kernels = artifact->variants.front().kernels;
    if (!memory && !prepare(*artifact))
      return false;
    auto program = DeviceProgram::load(*device, std::move(*artifact), *memory);
    if (!program.ok()) {
      candidate.refusal = program.message();
      continue;
    }
    if (Status status = program->run(); !status.ok())
      return fail(TrialStatus::NoDevice,
                  candidate.plan + ": " + status.message());
    programs.emplace_back(number, std::move(*program));
  }
  if (programs.empty())
    return fail(TrialStatus::BadInput, "no plan could be measured; the first "
                                       "one: " +
                                           report.candidates.front().refusal);
  return true;
}

bool Tuning::measure() {
  std::vector<DeviceProgram::Sampler> samplers;
  for (auto &[number, program] : programs) {
    auto sampler = program.sampler();
    if (!sampler.ok())
      return fail(TrialStatus::NoDevice, sampler.message());
    samplers.push_back(std::move(*sampler));
  }
  std::vector<std::vector<double>> seconds(programs.size());
  std::vector<size_t> order(programs.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::mt19937_64 random(request.trial.operands.seed);
  for (int round = 0; round < request.trial.repeats; ++round) {
    say("measuring, round " + std::to_string(round + 1) + " of " +
        std::to_string(request.trial.repeats));
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
      auto sample = samplers[i].sample();
      if (!sample.ok())
        return fail(TrialStatus::NoDevice, sample.message());
      seconds[i].push_back(*sample);
    }
  }
  for (size_t i = 0; i < programs.size(); ++i)
    report.candidates[programs[i].first].timing =
        summarize(std::move(seconds[i]), samplers[i].calls());
  return true;
}

/// The fastest plans once more, beside the same with other schedulers: who
/// hands out the tiles matters less than their size, so not all are tried with
/// all.
bool Tuning::trySchedulers() {
  std::vector<std::pair<double, size_t>> order;
  for (auto [number, candidate] : llvm::enumerate(report.candidates))
    if (candidate.timing)
      order.emplace_back(candidate.timing->median, number);
  llvm::sort(order);
  constexpr size_t numTried = 3;
  order.resize(std::min(order.size(), numTried));
  llvm::erase_if(programs, [&](auto &program) {
    return llvm::none_of(order, [&](const std::pair<double, size_t> &entry) {
      return entry.second == program.first;
    });
  });
  size_t first = report.candidates.size();
  for (auto [seconds, number] : order) {
    FailureOr<PlanAttr> plan =
        plan::parsePlan(report.candidates[number].plan, module.getLoc());
    assert(succeeded(plan) && "it was printed from a plan");
    for (PlanAttr other : plan::listSchedulers(*plan))
      addCandidate(other, /*isPick=*/false);
  }
  return report.candidates.size() == first || (compileFrom(first) && measure());
}

TuningReport Tuning::run() {
  if (listCandidates() && !request.dryRun && openDevice() && compileFrom(0) &&
      measure() && request.tune && request.trial.plan.empty())
    trySchedulers();
  return std::move(report);
}

TuningReport attn::runTuning(ModuleOp module, const TuningRequest &request) {
  return Tuning(module, request).run();
}
