//===- Trial.cpp - compile a function, call it, check and time it --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Tune/Trial.h"

#include "attn/Check/CaptureCheck.h"
#include "attn/Check/ErrorTerms.h"
#include "attn/Check/SavedResults.h"
#include "attn/Execute/DeviceProgram.h"
#include "attn/Execute/HostProgram.h"
#include "attn/Execute/Npy.h"
#include "attn/Pipelines/Compile.h"
#include "attn/Pipelines/Signature.h"
#include "attn/Plan/Results.h"
#include <chrono>

using namespace mlir;
using namespace attn;
using attn::runtime::Result;
using attn::runtime::Status;

static constexpr double kMaxUnoptimizedFlops = 1 << 24;

static double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

namespace {
/// One trial; each step fails with a message and a status.
class TrialRun {
public:
  TrialRun(ModuleOp module, const TrialRequest &request)
      : module(module), request(request) {}

  TrialReport run();

private:
  bool fail(TrialStatus status, const std::string &message);
  bool prepare(const Artifact &manifest);
  bool fixVariant(Artifact &artifact);
  bool runOnCPU();
  /// Calls again, by `launch`, and compares with the first call.
  bool repeat(llvm::function_ref<Status()> launch, TrialStatus refused);
  std::string chooseGPU() const;
  bool runOnGPU();
  ScoredOp findOperation(StringRef name);
  bool fillSavedResults();
  bool checkCaptures();
  bool checkFits();
  unsigned chooseOptimization() const;
  /// The results of one of the definitions; nothing after a failure.
  std::optional<RunResult> define(HostOptions::Kind kind);
  bool check();
  bool writeOutputs();

  ModuleOp module;
  const TrialRequest &request;
  TrialReport report;
  Operands operands;
};
} // namespace

bool TrialRun::fail(TrialStatus status, const std::string &message) {
  report.status = status;
  report.message = message;
  return false;
}

std::string attn::describeTensor(const ArgumentInfo &info,
                                 const HostTensor &tensor) {
  std::string text = info.name + " ";
  for (auto [i, size] : llvm::enumerate(tensor.sizes()))
    text += (i ? "x" : "") + std::to_string(size);
  return text + " " + std::string(elementName(info.element));
}

bool TrialRun::prepare(const Artifact &manifest) {
  report.manifest = manifest;
  auto made = makeOperands(manifest, request.operands);
  if (!made.ok())
    return fail(TrialStatus::BadInput, made.message());
  operands = std::move(*made);
  for (auto [info, tensor] :
       llvm::zip_equal(manifest.arguments, operands.tensors))
    if (tensor)
      report.shapes.push_back(describeTensor(info, *tensor));
  // Whether the call is valid does not depend on the device.
  auto call = runtime::prepareLaunch(manifest, operands.arguments());
  if (!call.ok())
    return fail(TrialStatus::BadInput, call.message());
  if (request.debugCaptures && !checkCaptures())
    return false;
  report.relayouts = runtime::describeRelayouts(manifest, *call);
  if (ScoredOp op = findOperation(request.function)) {
    ScoredOp counted =
        request.forward.empty() ? op : findOperation(request.forward);
    report.work = countWork(op, counted.getVariantsAttr(), manifest, operands);
  }
  return (!request.check || checkFits()) && fillSavedResults();
}

ScoredOp TrialRun::findOperation(StringRef name) {
  ScoredOp found;
  if (FailureOr<func::FuncOp> function = findFunction(module, name);
      succeeded(function))
    function->walk([&](ScoredOp op) { found = op; });
  return found;
}

/// What gradients read of the forward is no random number; but where only the
/// time is asked for it may be, since the definition would take far longer.
bool TrialRun::fillSavedResults() {
  bool isTimed = request.bench && !request.check && request.outputs.empty();
  if (!readsForward(report.manifest) || isTimed)
    return true;
  HostOptions options;
  options.optimization = chooseOptimization();
  options.processor = request.processor;
  auto forward = compileForward(module, request.function, options);
  if (failed(forward))
    return fail(TrialStatus::BadInput, "");
  Status filled = attn::fillSavedResults(*forward, report.manifest,
                                         request.operands, operands);
  return filled.ok() || fail(TrialStatus::BadInput, filled.message());
}

bool TrialRun::checkCaptures() {
  auto checked = attn::checkCaptures(module, request.function,
                                     request.processor, operands);
  if (failed(checked))
    return fail(TrialStatus::BadInput, "");
  return checked->ok() || fail(TrialStatus::BadInput, checked->message());
}

/// Runs the variant that was asked for.
bool TrialRun::fixVariant(Artifact &artifact) {
  if (!request.variant)
    return true;
  std::string error = artifact.fixVariant(*request.variant);
  return error.empty() || fail(TrialStatus::BadInput, error);
}

bool TrialRun::repeat(llvm::function_ref<Status()> launch,
                      TrialStatus refused) {
  std::vector<std::pair<std::string, HostTensor *>> outputs;
  std::vector<std::vector<unsigned char>> first;
  for (auto [info, tensor] :
       llvm::zip_equal(report.manifest.arguments, operands.tensors))
    if (info.isOutput) {
      outputs.emplace_back(info.name, &*tensor);
      first.push_back(tensor->storage());
    }
  for (int64_t i = 0; i < request.moreLaunches; ++i) {
    for (auto &[name, tensor] : outputs)
      tensor->poison();
    if (Status status = launch(); !status.ok())
      return fail(refused, status.message());
    ++report.launches;
    for (auto [output, bytes] : llvm::zip_equal(outputs, first))
      if (report.difference.empty() && output.second->storage() != bytes)
        report.difference = "call " + std::to_string(report.launches) +
                            " gives other bits of '" + output.first +
                            "' than the first";
  }
  return true;
}

bool TrialRun::runOnCPU() {
  double start = now();
  HostOptions options;
  options.plan = request.plan;
  options.results = request.results;
  options.gpu = request.gpu == "none" ? "" : request.gpu;
  options.passes = request.passes;
  options.processor = request.processor;
  auto program = HostProgram::compile(module, request.function, options);
  if (failed(program))
    return fail(TrialStatus::BadInput, "");
  report.compileSeconds = now() - start;
  Artifact manifest = program->manifest();
  if (!fixVariant(manifest) || !prepare(manifest))
    return false;
  runtime::Arguments arguments = operands.arguments();
  Status status = program->invoke(arguments);
  if (!status.ok())
    return fail(TrialStatus::BadInput, status.message());
  if (!repeat([&] { return program->invoke(arguments); },
              TrialStatus::BadInput))
    return false;
  if (request.bench) {
    std::vector<double> seconds;
    double begin = now();
    // A slow program is not repeated for long.
    for (int i = 0; i < request.repeats && now() - begin < 10; ++i) {
      double before = now();
      status = program->invoke(arguments);
      seconds.push_back(now() - before);
    }
    report.timing = summarize(std::move(seconds), 1);
  }
  return true;
}

/// The GPU whose measured plans are taken; empty for none.
std::string TrialRun::chooseGPU() const {
  if (!request.gpu.empty())
    return request.gpu == "none" ? "" : request.gpu;
  if (!request.plan.empty() || !request.results.empty())
    return "";
  auto device = runtime::Device::current();
  return device.ok() && plan::isMeasuredDevice(device->name) ? device->name
                                                             : "";
}

bool TrialRun::runOnGPU() {
  double start = now();
  CompileOptions options;
  options.target = request.target;
  options.plan = request.plan;
  options.function = request.function;
  options.passes = request.passes;
  options.results = request.results;
  options.gpu = chooseGPU();
  options.ptxas = request.ptxas;
  FailureOr<Artifact> artifact = attn::compile(module, options);
  if (failed(artifact))
    return fail(TrialStatus::BadInput, "");
  report.compileSeconds = now() - start;
  if (!fixVariant(*artifact) || !prepare(*artifact))
    return false;
  auto device = runtime::Device::current();
  if (!device.ok())
    return fail(TrialStatus::NoDevice,
                device.message() + "; --target=cpu runs on the processor");
  report.device = device->name;
  auto memory = DeviceOperands::upload(*device, operands);
  if (!memory.ok())
    return fail(TrialStatus::NoDevice, memory.message());
  auto program = DeviceProgram::load(*device, *artifact, *memory);
  if (!program.ok())
    return fail(TrialStatus::NoDevice, program.message());
  auto variant = program->module().chooseVariant(memory->arguments());
  if (!variant.ok())
    return fail(TrialStatus::NoDevice, variant.message());
  report.variant = std::move(*variant);
  Status status = program->runPoisoned();
  if (status.ok())
    status = memory->readOutputs(*artifact, operands);
  if (!status.ok())
    return fail(TrialStatus::NoDevice, status.message());
  // Now in the memory that the runtime keeps for a stream, where there is some.
  auto again = [&] {
    Status status = memory->poisonOutputs(*artifact);
    if (status.ok())
      status = program->run();
    return status.ok() ? memory->readOutputs(*artifact, operands) : status;
  };
  if (!repeat(again, TrialStatus::NoDevice))
    return false;
  if (request.bench) {
    auto timing = program->measure(request.repeats);
    if (!timing.ok())
      return fail(TrialStatus::NoDevice, timing.message());
    report.timing = *timing;
  }
  return true;
}

/// The scores of the definitions fit the memory that a check may take.
bool TrialRun::checkFits() {
  double scores = static_cast<double>(report.work.pairs) * sizeof(double);
  for (const auto &[info, tensor] :
       llvm::zip_equal(report.manifest.arguments, operands.tensors))
    if (info.is(ArgumentRole::Query))
      scores *= static_cast<double>(tensor->sizes()[0] * tensor->sizes()[1]);
  if (scores > static_cast<double>(request.maxCheckBytes))
    return fail(TrialStatus::BadInput,
                "the float64 scores of a check need " +
                    std::to_string(static_cast<int64_t>(scores) >> 20) +
                    " MiB, the limit is " +
                    std::to_string(request.maxCheckBytes >> 20) +
                    " MiB: check smaller lengths, fewer heads, or raise "
                    "--check-limit");
  return true;
}

/// How far definitions are optimized: not at all where that would take longer
/// than they run.
unsigned TrialRun::chooseOptimization() const {
  const Work &work = report.work;
  auto counted = static_cast<double>(std::max<int64_t>(work.countedPairs, 1));
  double flops = work.flops * static_cast<double>(work.pairs) / counted;
  return flops < kMaxUnoptimizedFlops ? 0 : 2;
}

std::optional<RunResult> TrialRun::define(HostOptions::Kind kind) {
  HostOptions options;
  options.kind = kind;
  options.optimization = chooseOptimization();
  options.processor = request.processor;
  auto oracle = HostProgram::compile(module, request.function, options);
  if (failed(oracle)) {
    fail(TrialStatus::BadInput, "");
    return std::nullopt;
  }
  auto result = runOnHost(*oracle, operands);
  if (result.ok())
    return std::move(*result);
  fail(TrialStatus::BadInput, result.message());
  return std::nullopt;
}

/// Compares with the definitions, which run on the CPU.
bool TrialRun::check() {
  std::optional<RunResult> float64 = define(HostOptions::Kind::OracleF64);
  std::optional<RunResult> unfused =
      float64 ? define(HostOptions::Kind::OracleInput) : std::nullopt;
  if (!unfused)
    return false;
  ErrorTerms terms;
  if (ScoredOp op = findOperation(request.function))
    terms = findErrorTerms(op, report.manifest, operands);
  RunResult result = readResult(report.manifest, operands);
  report.check = checkErrorRule(result, *float64, *unfused, terms);
  if (report.check->missesLse) {
    std::optional<RunResult> narrow = define(HostOptions::Kind::OracleScore);
    if (!narrow)
      return false;
    terms.scoreLoss += measureScoreLoss(*float64, *narrow);
    report.check = checkErrorRule(result, *float64, *unfused, terms);
  }
  if (report.check->missesSum) {
    std::optional<RunResult> saved = define(HostOptions::Kind::OracleSaved);
    if (!saved)
      return false;
    report.check = checkErrorRule(result, *float64, *unfused, terms, &*saved);
  }
  for (const auto &[info, tensor] :
       llvm::zip_equal(report.manifest.arguments, operands.tensors))
    if (tensor && !tensor->isPaddingIntact() && report.check->passes())
      report.check->failure =
          "memory beside the elements of '" + info.name + "' was written";
  if (!report.check->passes())
    report.status = TrialStatus::CheckFailed;
  return true;
}

bool TrialRun::writeOutputs() {
  for (const auto &[name, path] : request.outputs) {
    bool isWritten = false;
    for (const auto &[info, tensor] :
         llvm::zip_equal(report.manifest.arguments, operands.tensors)) {
      if (!info.isOutput || info.name != name)
        continue;
      if (Status status = writeNpy(path, *tensor); !status.ok())
        return fail(TrialStatus::BadInput, status.message());
      isWritten = true;
    }
    if (!isWritten)
      return fail(TrialStatus::BadInput, "no output is called '" + name + "'");
  }
  return true;
}

TrialReport TrialRun::run() {
  bool isRun = request.target == "cpu" ? runOnCPU() : runOnGPU();
  if (isRun && writeOutputs() && request.check && !check())
    return std::move(report);
  if (report.status == TrialStatus::Ok && !report.difference.empty())
    report.status = TrialStatus::CheckFailed;
  return std::move(report);
}

TrialReport attn::runTrial(ModuleOp module, const TrialRequest &request) {
  return TrialRun(module, request).run();
}
