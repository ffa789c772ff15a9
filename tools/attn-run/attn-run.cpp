//===- attn-run.cpp - compile, run, check and time -*- C++ -*-===//
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
#include "Report.h"
#include "attn/Execute/Processor.h"
#include "attn/Pipelines/AttentionFunctions.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Support/TargetInfo.h"
#include "attn/Tune/Trial.h"
#include "mlir/IR/AsmState.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

static constexpr char overview[] =
    R"(attn-run: compiles a function with an attn.attention and calls it. A function
with several, with other operations, or in linalg, is run attention by attention,
each on inputs of its own: graphs are raised (attn-opt --attn-raise), and each
attention is a function, NAME_attention_N (--attn-outline)

Inputs are random (normal, variance 1) unless given; outputs are poisoned first.
--check compares with the definition in float64 on the CPU: the error of o may
be at most twice that of the unfused evaluation in the input type, or one unit
in the last place of that type, plus 1e-5 (C20 of attn.attention has the rest).
Gradients (--backward, or a function with an attn.attention_backward) are computed
from random d_o and from what the forward gives: o and lse by its definition in
float64, rounded. Their error may be three times that of the unfused evaluation,
or one unit in the last place, plus 1e-4 (C16 of attn.attention_backward, which
says where gradients of captures and sinks are judged from the output as it was
saved).
--debug-captures refuses captured tensors that are not sorted although they are
searched or promised to be, and indices out of range, which read 0, where they
matter.
--bench counts 2 (d_qk + d_v) operations for each pair of a query and a key that
the causal and window variants leave visible, for gradients 2 (3 d_qk + 2 d_v),
and each tensor's bytes once.

Examples:
  attn-run causal.mlir --target=cpu --shape=b=2,h=8,sq=100,sk=300 --check
  attn-run gqa.mlir --shape=q=1x8x64x128,k=1x2x99x128,v=1x2x99x128 --check
  attn-run bias.mlir --shape=b=1,h=4,sq=64,c0=4x64x64 --scalar=c1=0.5
  attn-run ids.mlir --shape=b=1,h=4,sq=64 --input=c0=ids.npy --debug-captures
  attn-run f.mlir --input=q=q.npy --input=k=k.npy --input=v=v.npy \
                  --output=o=o.npy
  attn-run causal.mlir --target=sm_90a --shape=b=4,h=16,sq=4096 --bench --json
  attn-run f.mlir --target=cpu \
                  --plan='#attn.plan<target = cpu, block_q = 8, block_k = 5>'
  attn-run f.mlir --target=cpu --cpu=x86-64 --check    without AVX and its kin
  attn-run f.mlir --target=sm_90a --shape=b=1,h=8,sq=512 --variant=1 --bench
  attn-run f.mlir --target=cpu --shape=b=1,h=8,sq=100 --backward --check
  attn-run layers.mlir --target=cpu --check            each of its attentions
  attn-run layers.mlir --function=f_attention_1 --check

Arguments are called q, k, v; what the regions capture c0, c1, ...; results o
and lse; the gradients of q d_q, and so on. Where sk and hkv are not given they are those of the queries.

Exit status: 0 done, 1 the program, the plan, a shape or a file is wrong, 2 the
check failed or two calls differ, 3 no device to run on, or it failed, 70 the compiler itself failed.
)";

namespace {
struct RunCommand : ToolOptions {
  RunCommand()
      : ToolOptions("attn-run", "Where to run: cpu, sm_80 or sm_90a") {}

  OperandOptions operands{category};
  GradientOptions gradients{category};
  cl::list<std::string> outputs{"output", cl::desc("Write a result to a file"),
                                cl::value_desc("name=file.npy"),
                                cl::cat(category)};
  cl::opt<bool> check{"check", cl::desc("Compare with float64"),
                      cl::cat(category)};
  cl::opt<bool> debugCaptures{
      "debug-captures",
      cl::desc("Before the call: that captured tensors which are searched or "
               "promised to be sorted are, and that no index of one that "
               "matters is out of range. Looks at all positions"),
      cl::cat(category)};
  cl::opt<unsigned> checkLimit{
      "check-limit",
      cl::desc("Most MiB that the float64 scores of a check may need"),
      cl::init(4096), cl::cat(category)};
  cl::opt<unsigned> launches{
      "launches",
      cl::desc("Call so many times; all calls must give the same bits"),
      cl::value_desc("N"), cl::init(1), cl::cat(category)};
  cl::opt<bool> bench{"bench", cl::desc("Measure the time of a call"),
                      cl::cat(category)};
  cl::opt<unsigned> repeats{"repeats", cl::desc("Samples of a measurement"),
                            cl::init(20), cl::cat(category)};
  cl::opt<std::string> processor{
      "cpu",
      cl::desc("Which processor, and which of its features, programs for the "
               "CPU use, --check's too; default: this one"),
      cl::value_desc("native,-avx512bf16|x86-64-v3|..."), cl::init("native"),
      cl::cat(category)};
  cl::opt<std::string> gpu{
      "gpu",
      cl::desc("The GPU whose measured plans are taken where none is given, "
               "by its name; default: the one that runs the kernel; none: "
               "the compiler's own choice"),
      cl::value_desc("NVIDIA H200|none|..."), cl::cat(category)};
  cl::opt<int> variant{
      "variant",
      cl::desc("Which variant of the kernel runs, by its number; default: the "
               "one that its rule picks for these sizes"),
      cl::value_desc("N"), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Print the report as JSON"),
                     cl::cat(category)};
};
} // namespace

static FailureOr<TrialRequest> makeRequest(const RunCommand &options) {
  TrialRequest request;
  if (!findTarget(options.target.getValue()))
    return options.fail("unknown --target=" + options.target +
                        ", expected cpu, sm_80 or sm_90a");
  request.target = options.target;
  request.function = options.function;
  request.plan = options.plan;
  if (options.variant.getNumOccurrences() != 0)
    request.variant = options.variant;
  request.passes = options.passes();
  request.results = options.results;
  request.gpu = options.gpu;
  request.ptxas = options.assembler();
  request.check = options.check;
  request.debugCaptures = options.debugCaptures;
  request.moreLaunches = int64_t(std::max(1u, options.launches.getValue())) - 1;
  request.bench = options.bench;
  request.repeats = std::max(1u, options.repeats.getValue());
  request.maxCheckBytes = static_cast<int64_t>(options.checkLimit) << 20;
  request.processor = options.processor;
  if (auto known = checkProcessor(request.processor); !known.ok())
    return options.fail("--cpu: " + known.message());
  if (failed(options.operands.read(options, request.operands)))
    return failure();
  for (StringRef item : options.outputs)
    if (failed(splitItem(options, item, "output", request.outputs)))
      return failure();
  return request;
}

static int run(int argc, char **argv) {
  registerMLIRContextCLOptions();
  RunCommand options;
  options.read(argc, argv, overview);
  constexpr int badInput = static_cast<int>(TrialStatus::BadInput);
  FailureOr<TrialRequest> request = makeRequest(options);
  if (failed(request))
    return badInput;

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = options.parse(context, sources);
  if (!module)
    return badInput;
  FailureOr<AttentionFunctions> functions =
      prepareAttention(*module, options.function);
  if (failed(functions))
    return badInput;
  if (functions->names.size() > 1 &&
      !(request->outputs.empty() && request->operands.files.empty())) {
    (void)options.fail("--input and --output are of one function, got " +
                       std::to_string(functions->names.size()) +
                       ": expected --function=" + functions->names.front() +
                       " or another");
    return badInput;
  }
  std::vector<TrialReport> reports;
  auto status = TrialStatus::Ok;
  for (const std::string &name : functions->names) {
    OwningOpRef<ModuleOp> alone = functions->isUnchanged
                                      ? OwningOpRef<ModuleOp>(module->clone())
                                      : isolateFunction(*module, name);
    options.function.setValue(name);
    FailureOr<std::string> forward = options.gradients.apply(options, *alone);
    if (failed(forward))
      return badInput;
    request->forward = *forward;
    request->function = options.function;
    TrialReport report = runTrial(*alone, *request);
    if (report.status != TrialStatus::Ok)
      status = report.status;
    if (report.status != TrialStatus::Ok &&
        report.status != TrialStatus::CheckFailed) {
      if (!report.message.empty())
        (void)options.fail(functions->names.size() == 1
                               ? report.message
                               : "'" + name + "': " + report.message);
      return static_cast<int>(status);
    }
    reports.push_back(std::move(report));
  }
  if (options.json)
    printJSON(reports, llvm::outs());
  else
    printText(reports, llvm::outs());
  return static_cast<int>(status);
}

int main(int argc, char **argv) {
  return attn::runGuarded(argc, argv, "attn-run",
                          [&] { return run(argc, argv); });
}
