//===- attn-simulate.cpp - a warp kernel under many schedules ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A test tool. It compiles a function up to the Warp room, as attn-compile
// does, runs it on the simulator once per seed, and checks each result with the
// error rule.
//
//===----------------------------------------------------------------------===//

#include "../../tools/CrashGuard.h"
#include "../../tools/GradientOptions.h"
#include "../../tools/ToolOptions.h"
#include "Simulator/WarpSimulator.h"
#include "attn/Check/ErrorTerms.h"
#include "attn/Check/SavedResults.h"
#include "attn/Execute/HostProgram.h"
#include "attn/Execute/Operands.h"
#include "attn/Pipelines/Compile.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

static constexpr char overview[] =
    R"(attn-simulate: runs a function's warp kernel on the CPU, warp by warp

Each seed is another order of the warps. Inputs are random, as in attn-run, and
o and lse of every run, or the gradients, are checked with the error rule.

  attn-simulate f.mlir --target=sm_90a --shape=h=2,sq=100,sk=170 --seeds=8
  attn-simulate f.mlir --target=sm_80 --shape=h=2,sq=100 --backward

Exit status: 0 done, 1 the program, the plan or a shape is wrong, 2 a schedule
or a result is wrong, 70 the compiler itself failed.
)";

namespace {
struct Options : ToolOptions {
  Options()
      : ToolOptions("attn-simulate", "What to simulate: sm_80 or sm_90a") {}

  GradientOptions gradients{category};
  cl::opt<std::string> shape{
      "shape", cl::desc("Sizes, as for attn-run --shape"), cl::cat(category)};
  cl::list<std::string> scalars{"scalar", cl::desc("The value of a scalar"),
                                cl::value_desc("name=value"),
                                cl::cat(category)};
  cl::list<std::string> inputs{
      "input", cl::desc("Read an argument from a file"),
      cl::value_desc("name=file.npy"), cl::cat(category)};
  cl::opt<unsigned> seeds{"seeds", cl::desc("How many schedules"), cl::init(4),
                          cl::cat(category)};
  cl::opt<unsigned> seed{"seed", cl::desc("Of the inputs"), cl::init(0),
                         cl::cat(category)};
};

enum Status { Done = 0, BadInput = 1, Wrong = 2 };
} // namespace

static SmallVector<simulator::HostArgument>
toArguments(const Artifact &manifest, Operands &operands) {
  SmallVector<simulator::HostArgument> result;
  for (auto [info, argument] :
       llvm::zip_equal(manifest.arguments, operands.arguments())) {
    simulator::HostArgument &to = result.emplace_back();
    if (argument.kind == runtime::Argument::Kind::Tensor) {
      to.data = argument.data;
      to.sizes.assign(argument.sizes, argument.sizes + argument.rank);
      to.strides.assign(argument.strides, argument.strides + argument.rank);
    } else if (auto bits = runtime::scalarBits(argument, info.element);
               bits.ok()) {
      to.scalar = *bits;
    }
  }
  return result;
}

static FailureOr<RunResult> runOracle(ModuleOp module, const Options &options,
                                      HostOptions::Kind kind,
                                      Operands &operands) {
  HostOptions host;
  host.kind = kind;
  FailureOr<HostProgram> program =
      HostProgram::compile(module, options.function, host);
  if (failed(program))
    return failure();
  runtime::Result<RunResult> result = runOnHost(*program, operands);
  if (!result.ok())
    return options.fail(result.message());
  return std::move(*result);
}

static FailureOr<OperandRequest> makeRequest(const Options &options) {
  OperandRequest request;
  request.shape = options.shape;
  request.seed = options.seed;
  for (StringRef item : options.inputs)
    request.files[item.split('=').first.str()] = item.split('=').second.str();
  for (StringRef item : options.scalars)
    if (item.split('=').second.getAsDouble(
            request.scalars[item.split('=').first.str()]))
      return options.fail("--scalar=" + item + ": wanted NAME=NUMBER");
  return request;
}

/// What gradients read of the forward is no random number.
static LogicalResult readForward(ModuleOp module, const Options &options,
                                 const Artifact &manifest,
                                 const OperandRequest &request,
                                 Operands &operands) {
  if (!readsForward(manifest))
    return success();
  FailureOr<HostProgram> forward =
      compileForward(module, options.function, HostOptions());
  if (failed(forward))
    return failure();
  runtime::Status filled =
      fillSavedResults(*forward, manifest, request, operands);
  return filled.ok() ? success() : options.fail(filled.message());
}

static Status simulate(ModuleOp module, const Options &options) {
  const TargetInfo *target = findTarget(options.target.getValue());
  if (!target || target->sm == 0)
    return (void)options.fail("cannot simulate '" + options.target +
                              "', wanted sm_80 or sm_90a"),
           BadInput;
  std::string text;
  CompileOptions compile;
  compile.target = options.target;
  compile.plan = options.plan;
  compile.function = options.function;
  compile.passes = options.passes();
  compile.last = Room::Warp;
  compile.firstShown = Room::Warp;
  compile.onRoom = [&](Room, StringRef left) {
    text = left.str();
    return success();
  };
  FailureOr<Artifact> manifest = attn::compile(module, compile);
  FailureOr<OperandRequest> request = makeRequest(options);
  if (failed(manifest) || failed(request))
    return BadInput;
  auto kernels = parseSourceString<ModuleOp>(text, module.getContext());
  auto operands = makeOperands(*manifest, *request);
  if (!kernels || !operands.ok())
    return (void)options.fail(operands.message()), BadInput;
  if (failed(readForward(module, options, *manifest, *request, *operands)))
    return BadInput;
  FailureOr<RunResult> exact =
      runOracle(module, options, HostOptions::Kind::OracleF64, *operands);
  FailureOr<RunResult> unfused =
      runOracle(module, options, HostOptions::Kind::OracleInput, *operands);
  if (failed(exact) || failed(unfused))
    return BadInput;

  auto host = kernels->lookupSymbol<func::FuncOp>(manifest->name);
  ErrorTerms terms;
  module.lookupSymbol(manifest->name)->walk([&](ScoredOp op) {
    terms = findErrorTerms(op, *manifest, *operands);
  });
  ErrorReport worst;
  for (unsigned seed = 0; seed < options.seeds; ++seed) {
    for (auto [info, tensor] :
         llvm::zip_equal(manifest->arguments, operands->tensors))
      if (info.isOutput)
        tensor->poison();
    if (failed(simulator::simulateWarps(host, toArguments(*manifest, *operands),
                                        seed)))
      return (void)options.fail("schedule " + llvm::Twine(seed)), Wrong;
    ErrorReport report = checkErrorRule(readResult(*manifest, *operands),
                                        *exact, *unfused, terms);
    if (!report.passes())
      return (void)options.fail("schedule " + llvm::Twine(seed) + ": " +
                                report.failure),
             Wrong;
    if (report.error >= worst.error)
      worst = report;
  }
  llvm::outs() << options.seeds << " schedules";
  if (worst.hasOutput)
    llvm::outs() << ": error " << worst.error << ", bound " << worst.bound;
  for (const GradientReport &gradient : worst.gradients)
    llvm::outs() << "; " << gradient.name << ": error " << gradient.error
                 << ", bound " << gradient.bound;
  llvm::outs() << "\n";
  return Done;
}

static int run(int argc, char **argv) {
  registerMLIRContextCLOptions();
  Options options;
  options.read(argc, argv, overview);
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = options.parse(context, sources);
  if (!module || failed(options.gradients.apply(options, *module)))
    return BadInput;
  return simulate(*module, options);
}

int main(int argc, char **argv) {
  return attn::runGuarded(argc, argv, "attn-simulate",
                          [&] { return run(argc, argv); });
}
