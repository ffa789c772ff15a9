//===- attn-bench.cpp - measures plans, and keeps the fastest -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CrashGuard.h"
#include "../GradientOptions.h"
#include "../OperandOptions.h"
#include "../ToolOptions.h"
#include "attn/Pipelines/OutputFile.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Tune/Tuning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

static constexpr char overview[] =
    R"(attn-bench: measures a function with an attn.attention on the GPU

Without --tune: the plan that the compiler takes, or --plan. With --tune: every
legal plan. The kernels are compiled first; then all are called in turn, in a new
random order each round; then the three fastest once more, beside the same plans
with every scheduler (sm_90a). --results=FILE keeps what was found, beside what the
file holds already; attn-compile, attn-run and the libraries take the fastest
plan from there.

--also measures for further shapes, too. Where a function leaves the length of its
queries open, the compiler makes a rule of what was measured for several lengths:
it compiles a variant for each range of lengths that another plan serves by more
than 1 %; and others for few blocks (batch entries times heads times length, by
the multiprocessors), where that gains as much. The report ends with that rule,
in the form that --plan takes.

--backward measures the gradients of the function instead, everything that a call
launches; what they read of the forward is random, too. They have plans of their
own, and rows of their own in FILE.

Examples:
  attn-bench causal.mlir --target=sm_90a --shape=b=2,h=16,sq=8192
  attn-bench causal.mlir --target=sm_90a --tune --dry-run
  attn-bench causal.mlir --target=sm_90a --shape=b=2,h=16,sq=8192 --tune \
             --results=h200.json
  attn-bench causal.mlir --target=sm_90a --shape=b=32,h=16,sq=512 \
             --also=b=4,h=16,sq=4096 --also=b=1,h=16,sq=16384 \
             --also=b=1,h=2,sq=4096 --tune --results=h200.json
  attn-compile causal.mlir --target=sm_90a --results=h200.json -o causal.attn
  attn-bench causal.mlir --target=sm_90a --shape=b=4,h=16,sq=4096 --backward
  attn-bench causal.mlir --target=sm_90a --shape=b=4,h=16,sq=4096 --backward \
             --tune --json --results=h200.json
  attn-compile causal.mlir --target=sm_90a --backward --results=h200.json \
               -o causal_backward.attn

Exit status: 0 done, 1 the program, the plan, a shape or a file is wrong, 3 no
device to run on, or it failed, 70 the compiler itself failed.
)";

namespace {
struct BenchCommand : ToolOptions {
  BenchCommand()
      : ToolOptions("attn-bench", "What to measure on: sm_80 or sm_90a") {}

  OperandOptions operands{category};
  GradientOptions gradients{category};
  cl::opt<bool> tune{"tune", cl::desc("Measure every legal plan"),
                     cl::cat(category)};
  cl::list<std::string> also{
      "also", cl::desc("A further shape, as --shape takes it"),
      cl::value_desc("b=2,sq=128,..."), cl::cat(category)};
  cl::opt<bool> dryRun{"dry-run",
                       cl::desc("Only list what would be measured, and what "
                                "the plan model expects"),
                       cl::cat(category)};
  cl::opt<unsigned> repeats{"repeats", cl::desc("Rounds of a measurement"),
                            cl::init(20), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Print the report as JSON"),
                     cl::cat(category)};
  cl::opt<bool> quiet{"quiet", cl::desc("Do not say what is going on"),
                      cl::cat(category)};
};
} // namespace

static double teraflops(const TuningReport &report, const Timing &timing) {
  return report.work.flops / timing.median * 1e-12;
}

static void printText(const TuningReport &report, llvm::raw_ostream &os) {
  os << "function  " << report.function << "\n"
     << "kernel    " << report.key.describe() << "\n";
  if (!report.device.empty())
    os << "device    " << report.device << "\n"
       << "shapes    " << llvm::join(report.shapes, ", ") << "\n";
  for (const Candidate &candidate : report.candidates) {
    os << candidate.plan
       << llvm::format(" %.4f clocks per score", candidate.clocksPerScore);
    if (candidate.registers >= 0)
      os << ", " << candidate.registers << " registers, "
         << candidate.spillBytes << " bytes of spills";
    if (candidate.timing)
      os << llvm::format(", %.4g us, %.4g TFLOP/s",
                         candidate.timing->median * 1e6,
                         teraflops(report, *candidate.timing));
    if (!candidate.refusal.empty())
      os << ", not measured: " << candidate.refusal;
    os << (candidate.isPick ? " (pick)" : "")
       << (&candidate == report.best() ? " (fastest)" : "") << "\n";
  }
}

/// What a call launches, in order; with figures where there is machine code.
static llvm::json::Array describeKernels(ArrayRef<KernelInfo> kernels) {
  llvm::json::Array list;
  for (const KernelInfo &kernel : kernels) {
    llvm::json::Object object{{"entry", kernel.entry},
                              {"threads", kernel.threads},
                              {"shared_bytes", kernel.sharedBytes}};
    if (kernel.registers >= 0) {
      object["registers"] = kernel.registers;
      object["spill_store_bytes"] = kernel.spillStoreBytes;
    }
    list.push_back(std::move(object));
  }
  return list;
}

static llvm::json::Object toJSON(const TuningReport &report) {
  llvm::json::Array candidates;
  for (const Candidate &candidate : report.candidates) {
    llvm::json::Object object{{"plan", candidate.plan},
                              {"clocks_per_score", candidate.clocksPerScore},
                              {"pick", candidate.isPick}};
    if (candidate.registers >= 0) {
      object["registers"] = candidate.registers;
      object["spill_store_bytes"] = candidate.spillBytes;
    }
    if (candidate.compileSeconds > 0)
      object["compile_s"] = candidate.compileSeconds;
    if (!candidate.kernels.empty())
      object["kernels"] = describeKernels(candidate.kernels);
    if (!candidate.refusal.empty())
      object["refusal"] = candidate.refusal;
    if (const auto &timing = candidate.timing) {
      object["median_s"] = timing->median;
      object["best_s"] = timing->best;
      object["samples"] = timing->samples;
      object["calls_per_sample"] = timing->callsPerSample;
      object["tflops"] = teraflops(report, *timing);
    }
    candidates.push_back(std::move(object));
  }
  llvm::json::Object object{{"function", report.function},
                            {"kernel", report.key.describe()},
                            {"target", report.key.target},
                            {"shapes", llvm::json::Array(report.shapes)},
                            {"candidates", std::move(candidates)}};
  if (!report.device.empty()) {
    object["device"] = report.device;
    object["flops"] = report.work.flops;
    object["bytes"] = report.work.bytes;
  }
  return object;
}

/// What the compiler makes of several lengths; empty for one.
static std::string ruleOf(ArrayRef<TuningReport> reports) {
  plan::Results results;
  for (const TuningReport &report : reports)
    results.insert(report.result());
  SmallVector<const plan::Measurement *> lengths =
      results.findLengths(reports.front().key, reports.front().device);
  return lengths.size() > 1 ? plan::printLengthPlans(plan::planLengths(lengths))
                            : "";
}

static void printReports(const BenchCommand &options,
                         ArrayRef<TuningReport> reports) {
  llvm::raw_ostream &os = llvm::outs();
  std::string rule = ruleOf(reports);
  if (!options.json) {
    for (const TuningReport &report : reports)
      printText(report, os);
    if (!rule.empty())
      os << "rule      " << rule << "\n";
    return;
  }
  llvm::json::Object object = toJSON(reports.front());
  if (reports.size() > 1) {
    llvm::json::Array list;
    for (const TuningReport &report : reports)
      list.push_back(toJSON(report));
    object = llvm::json::Object{{"reports", std::move(list)}};
    if (!rule.empty())
      object["rule"] = rule;
  }
  os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(object)));
}

/// What the file holds already stays.
static LogicalResult writeResults(const BenchCommand &options,
                                  ArrayRef<TuningReport> reports) {
  plan::Results results;
  std::string error;
  if (llvm::sys::fs::exists(options.results)) {
    FailureOr<plan::Results> known =
        plan::Results::read(options.results, error);
    if (failed(known))
      return options.fail("cannot read '" + options.results + "': " + error);
    results = std::move(*known);
  }
  for (const TuningReport &report : reports)
    results.insert(report.result());
  if (llvm::Error failed =
          writeOutputFile(options.results, [&](llvm::raw_ostream &stream) {
            stream << results.print();
          }))
    return options.fail(llvm::toString(std::move(failed)));
  return success();
}

static int run(int argc, char **argv) {
  registerMLIRContextCLOptions();
  BenchCommand options;
  options.read(argc, argv, overview);
  constexpr int badInput = static_cast<int>(TrialStatus::BadInput);
  TuningRequest request;
  request.tune = options.tune;
  request.dryRun = options.dryRun;
  request.trial.target = options.target;
  request.trial.plan = options.plan;
  request.trial.passes = options.passes();
  request.trial.ptxas = options.assembler();
  request.trial.repeats = std::max(1u, options.repeats.getValue());
  if (failed(options.operands.read(options, request.trial.operands)))
    return badInput;
  if (!options.quiet)
    request.progress = [](const std::string &line) {
      llvm::errs() << "attn-bench: " << line << "\n";
    };

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = options.parse(context, sources);
  if (!module)
    return badInput;
  FailureOr<std::string> forward = options.gradients.apply(options, *module);
  if (failed(forward))
    return badInput;
  request.trial.forward = *forward;
  request.trial.function = options.function;
  std::vector<TuningReport> reports;
  std::vector<std::string> shapes = {request.trial.operands.shape};
  shapes.insert(shapes.end(), options.also.begin(), options.also.end());
  std::map<std::string, Artifact> compiled;
  if (shapes.size() > 1)
    request.compiled = &compiled;
  for (const std::string &shape : shapes) {
    request.trial.operands.shape = shape;
    TuningReport &report = reports.emplace_back(runTuning(*module, request));
    if (report.status == TrialStatus::Ok)
      continue;
    if (!report.message.empty())
      (void)options.fail(report.message);
    return static_cast<int>(report.status);
  }
  printReports(options, reports);
  if (!options.results.empty() && !options.dryRun &&
      failed(writeResults(options, reports)))
    return badInput;
  return 0;
}

int main(int argc, char **argv) {
  return runGuarded(argc, argv, "attn-bench", [&] { return run(argc, argv); });
}
