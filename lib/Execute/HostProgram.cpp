//===- HostProgram.cpp - an attention function compiled into this process -===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/HostProgram.h"

#include "attn/Conversion/CaptureReads.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Execute/Engine.h"
#include "attn/Execute/MachineMemory.h"
#include "attn/Pipelines/ArgumentViews.h"
#include "attn/Pipelines/AttentionFunctions.h"
#include "attn/Pipelines/KernelList.h"
#include "attn/Pipelines/Signature.h"
#include "attn/Runtime/Relayout.h"
#include "attn/Support/Version.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <cstdlib>

using namespace mlir;
using namespace attn;

HostProgram::HostProgram() = default;
HostProgram::HostProgram(HostProgram &&) = default;
HostProgram &HostProgram::operator=(HostProgram &&) = default;
HostProgram::~HostProgram() = default;

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static LogicalResult runPasses(Operation *op,
                               function_ref<void(OpPassManager &)> build) {
  PassManager manager(op->getName());
  build(manager);
  return manager.run(op);
}

static LogicalResult lowerCaptureReads(ModuleOp module) {
  if (failed(runPasses(module, [](OpPassManager &manager) {
        manager.addPass(createAttnExpandVariantsPass());
        manager.addPass(createAttnExpandMathPass());
      })))
    return failure();
  for (auto function : module.getOps<func::FuncOp>())
    buildCaptureReads(function);
  return runPasses(module, buildLinalgToLLVMPipeline);
}

static LogicalResult lowerToLLVM(ModuleOp module, const HostOptions &options,
                                 Artifact &description) {
  if (options.kind == HostOptions::Kind::CaptureReads)
    return lowerCaptureReads(module);
  if (options.kind != HostOptions::Kind::Tiled) {
    OracleOptions oracle;
    oracle.precision = options.kind == HostOptions::Kind::OracleF64
                           ? OraclePrecision::F64
                       : options.kind == HostOptions::Kind::OracleScore
                           ? OraclePrecision::Score
                       : options.kind == HostOptions::Kind::OracleSaved
                           ? OraclePrecision::Saved
                           : OraclePrecision::Input;
    return runPasses(module, [&](OpPassManager &manager) {
      buildOraclePipeline(manager, oracle);
    });
  }
  plan::AttnPlanOptions planning;
  planning.target = "cpu";
  planning.planText = options.plan;
  planning.results = options.results;
  planning.gpu = options.gpu;
  llvm::append_range(planning.without, options.passes.disabled);
  llvm::append_range(planning.with, options.passes.enabled);
  if (failed(runPasses(module, [&](OpPassManager &manager) {
        buildPlanPipeline(manager, planning);
      })))
    return failure();
  VariantInfo &variant = description.variants.front();
  for (auto function : module.getOps<func::FuncOp>())
    llvm::raw_string_ostream(variant.plan) << findPlan(function);
  for (KernelInfo &kernel : variant.kernels)
    kernel.plan = variant.plan;
  if (failed(lowerPlannedToTile(module, runPasses)))
    return failure();
  return runPasses(module, buildTileToLLVMPipeline);
}

/// The arguments stay, and whoever looks has not to obey the checks.
static void returnFinding(Artifact &description) {
  llvm::erase_if(description.arguments,
                 [](const ArgumentInfo &info) { return info.isOutput; });
  ArgumentInfo &finding = description.arguments.emplace_back();
  finding.name = "finding";
  finding.isTensor = finding.isOutput = finding.isDense = true;
  finding.element = ElementKind::I64;
  finding.shape = {CaptureFinding::numNumbers};
  description.checks.clear();
}

/// Function `name`, or its gradients, alone.
static FailureOr<OwningOpRef<ModuleOp>>
chooseFunction(ModuleOp module, std::string name, const HostOptions &options) {
  if (options.functions == FunctionChoice::Both)
    return module.emitError("a program is one function: expected a function or "
                            "its gradients, got both");
  OwningOpRef<ModuleOp> prepared = module.clone();
  FailureOr<std::string> chosen = prepareOneAttention(*prepared, name);
  if (failed(chosen))
    return failure();
  OwningOpRef<ModuleOp> alone = isolateFunction(*prepared, *chosen);
  if (options.functions == FunctionChoice::Forward)
    return alone;
  if (options.functions == FunctionChoice::Jvp) {
    FailureOr<std::string> tangents = addTangents(*alone, *chosen);
    if (failed(tangents))
      return failure();
    return isolateFunction(*alone, *tangents);
  }
  FailureOr<GradientFunctions> names =
      addGradients(*alone, *chosen, options.gradients);
  if (failed(names))
    return failure();
  return isolateFunction(*alone, names->backward);
}

FailureOr<HostProgram> HostProgram::compile(ModuleOp module, StringRef name,
                                            const HostOptions &options) {
  FailureOr<OwningOpRef<ModuleOp>> chosen =
      chooseFunction(module, name.str(), options);
  if (failed(chosen))
    return failure();
  ModuleOp alone = **chosen;
  func::FuncOp function = *alone.getOps<func::FuncOp>().begin();
  HostProgram program;
  Artifact &description = program.description;
  if (failed(describeSignature(function, description)))
    return failure();
  description.target = "cpu";
  description.compilerVersion = versionString;
  KernelInfo &kernel = description.variants.front().kernels.emplace_back();
  kernel.entry = description.name;
  for (LaunchExpr &blocks : kernel.grid)
    blocks.value = 1; // the loop over blocks is inside
  for (ArgumentInfo &info : description.arguments)
    info.isDense = info.isOutput && options.kind != HostOptions::Kind::Tiled;
  // Copied here, of whatever size the elements are.
  constexpr int64_t elementSizes[] = {1, 2, 4, 8}, allElements = int64_t(1)
                                                                 << 47;
  for (int64_t bytes : elementSizes)
    description.relayouts.push_back({description.name, bytes, 1, allElements});
  if (options.kind == HostOptions::Kind::CaptureReads)
    returnFinding(description);
  for (auto [number, info] : llvm::enumerate(description.arguments))
    if (info.isOutput)
      kernel.results.push_back(int64_t(number));
  if (options.kind == HostOptions::Kind::OracleF64 ||
      options.kind == HostOptions::Kind::OracleScore ||
      options.kind == HostOptions::Kind::OracleSaved)
    for (ArgumentInfo &info : description.arguments)
      if (info.isOutput)
        info.element = ElementKind::F64;

  if (failed(absorbArgumentViews(function)) ||
      failed(lowerToLLVM(alone, options, description)))
    return failure();
  auto engine =
      createHostEngine(alone, options.optimization, options.processor);
  if (failed(engine))
    return failure();
  program.engine = std::move(*engine);
  auto entry = program.engine->lookupPacked(description.name);
  if (!entry)
    return module.emitError("cannot link the compiled function: ")
           << llvm::toString(entry.takeError());
  program.entry = *entry;
  return program;
}

//===----------------------------------------------------------------------===//
// Calling
//===----------------------------------------------------------------------===//

void HostProgram::relayout(const runtime::LaunchCall &call, bool outputs,
                           void *memory) const {
  for (const runtime::RelayoutCall &copy : call.relayouts) {
    if (copy.isOutput != outputs)
      continue;
    runtime::relayoutHere(copy,
                          static_cast<char *>(memory) + copy.place.offset);
    relayoutCount->fetch_add(1, std::memory_order_relaxed);
  }
}

namespace {
struct FreeMemory {
  void operator()(void *memory) const { std::free(memory); }
};
} // namespace
using HostMemory = std::unique_ptr<void, FreeMemory>;

// That many bytes, a multiple of the alignment; null where the machine has not
// as many, or does not give them.
static HostMemory allocate(int64_t bytes) {
  if (bytes == 0 || bytes > memoryLimit())
    return nullptr;
  return HostMemory(std::aligned_alloc(runtime::kWorkspaceAlignment,
                                       static_cast<size_t>(bytes)));
}

void HostProgram::run(runtime::PackedLaunch &launch) const {
  if (!launch.call.isEmpty)
    entry(launch.kernels[0].parameters.data());
}

runtime::Status HostProgram::invoke(runtime::ArgumentSpan arguments) const {
  runtime::KnownLaunches &launches = runtime::KnownLaunches::here();
  if (runtime::KnownLaunch *known =
          launches.find(number, description, arguments)) {
    run(known->launch);
    return runtime::Status();
  }
  auto call = runtime::prepareLaunch(description, arguments.copy());
  if (!call.ok())
    return call.status();
  if (auto known = runtime::KnownLaunch::make(description, arguments, *call)) {
    run(launches.keep(number, arguments, std::move(known)).launch);
    return runtime::Status();
  }
  if (call->isEmpty)
    return runtime::Status();
  int64_t bytes = call->relayouts.empty() ? 0 : call->workspaceBytes;
  HostMemory memory = allocate(bytes);
  if (bytes != 0 && !memory)
    return runtime::Status::error(
        "copies of " + std::to_string(bytes) +
        " bytes do not fit the memory of this machine:\n" +
        StringRef(runtime::describeRelayouts(description, *call))
            .rtrim()
            .str());
  runtime::PackedLaunch launch(std::move(*call));
  launch.place(memory.get());
  relayout(launch.call, /*outputs=*/false, memory.get());
  run(launch);
  relayout(launch.call, /*outputs=*/true, memory.get());
  return runtime::Status();
}
