//===- Compile.cpp - the compiler as a function -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Compile.h"

#include "Compilation.h"
#include "PlanSearch.h"
#include "SeparateModule.h"

#include "attn/Pipelines/AttentionFunctions.h"
#include "attn/Target/Jobs.h"

#include <atomic>

using namespace mlir;
using namespace attn;

static constexpr std::pair<Room, StringLiteral> roomNames[] = {
    {Room::Attn, "attn"}, {Room::Tile, "tile"}, {Room::Warp, "warp"},
    {Room::GPU, "gpu"},   {Room::NVVM, "nvvm"}, {Room::LLVM, "llvm"},
    {Room::PTX, "ptx"}};

StringRef attn::roomName(Room room) {
  for (auto [candidate, name] : roomNames)
    if (candidate == room)
      return name;
  llvm_unreachable("unknown room");
}

std::optional<Room> attn::findRoom(StringRef name) {
  for (auto [room, candidate] : roomNames)
    if (candidate == name)
      return room;
  return std::nullopt;
}

std::string attn::printProgram(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().printNameLocAsPrefix());
  return text;
}

namespace {
/// What is compiled of a module: a function of it, by options of its own.
struct ChosenFunction {
  OwningOpRef<ModuleOp> module;
  CompileOptions options;
};
} // namespace

/// One function, its gradients, both, or the one with its tangents.
static LogicalResult chooseFunctions(OwningOpRef<ModuleOp> module,
                                     const CompileOptions &options,
                                     std::vector<ChosenFunction> &chosen) {
  if (options.functions == FunctionChoice::Forward) {
    chosen.push_back({std::move(module), options});
    return success();
  }
  if (options.functions == FunctionChoice::Jvp) {
    FailureOr<std::string> name = addTangents(*module, options.function);
    if (failed(name))
      return failure();
    CompileOptions tangents = options;
    tangents.function = *name;
    chosen.push_back({std::move(module), std::move(tangents)});
    return success();
  }
  FailureOr<GradientFunctions> names =
      addGradients(*module, options.function, options.gradients);
  if (failed(names))
    return failure();
  CompileOptions backward = options;
  backward.function = names->backward;
  if (options.functions == FunctionChoice::Both) {
    CompileOptions forward = options;
    forward.function = names->forward;
    chosen.push_back({OwningOpRef<ModuleOp>(module->clone()), forward});
    backward.plan = options.backwardPlan;
  }
  chosen.push_back({std::move(module), std::move(backward)});
  return success();
}

static FailureOr<std::vector<ChosenFunction>>
chooseFunctions(ModuleOp module, const CompileOptions &options) {
  if (options.functions != FunctionChoice::Both &&
      !options.backwardPlan.empty())
    return module.emitError("got a plan of gradients beside a function, "
                            "expected it only where both are compiled");
  OwningOpRef<ModuleOp> prepared = module.clone();
  FailureOr<AttentionFunctions> functions =
      prepareAttention(*prepared, options.function);
  if (failed(functions))
    return failure();
  std::vector<ChosenFunction> chosen;
  for (const std::string &name : functions->names) {
    CompileOptions one = options;
    one.function = name;
    OwningOpRef<ModuleOp> own = functions->isUnchanged
                                    ? OwningOpRef<ModuleOp>(module.clone())
                                    : isolateFunction(*prepared, name);
    if (failed(chooseFunctions(std::move(own), one, chosen)))
      return failure();
  }
  for (ChosenFunction &function : chosen)
    if (auto known = options.plans.find(function.options.function);
        known != options.plans.end()) {
      function.options.plan = known->second.plan;
      function.options.isPlanPicked = known->second.isPicked;
      function.options.variant = known->second.variant;
    }
  return chosen;
}

/// Each with the threads that the options give. They go on beside each other in
/// contexts of their own, the first one in its own, and say what they have to
/// say in order: the first one, and the others when all are done.
static std::vector<FailureOr<Artifact>>
compileFunctions(std::vector<ChosenFunction> &chosen, unsigned threads) {
  std::vector<std::unique_ptr<SeparateModule>> others(chosen.size());
  if (threads > 1)
    for (size_t number = 1; number < chosen.size(); ++number)
      others[number] = std::make_unique<SeparateModule>(*chosen[number].module);
  std::vector<FailureOr<Artifact>> artifacts;
  artifacts.resize(chosen.size(), failure());
  std::atomic<size_t> firstFailed = chosen.size();
  runJobs(chosen.size(), threads, [&](size_t number) {
    if (number > firstFailed)
      return;
    SeparateModule *other = others[number].get();
    artifacts[number] = compileSparingly(
        other ? other->get() : *chosen[number].module, chosen[number].options);
    size_t first = firstFailed;
    while (failed(artifacts[number]) && number < first &&
           !firstFailed.compare_exchange_weak(first, number)) {
    }
  });
  for (auto [other, artifact] : llvm::zip_equal(others, artifacts)) {
    if (other)
      other->say();
    if (failed(artifact))
      break;
  }
  return artifacts;
}

FailureOr<Artifact> attn::compile(ModuleOp module,
                                  const CompileOptions &options) {
  FailureOr<std::vector<ChosenFunction>> chosen =
      chooseFunctions(module, options);
  if (failed(chosen))
    return failure();
  // Who looks on sees one room after another.
  bool isWatched = options.onRoom || module.getContext()->getRemarkEngine();
  unsigned threads = options.threads != 0 ? options.threads : countProcessors();
  std::optional<Artifact> artifact;
  for (FailureOr<Artifact> &compiled :
       compileFunctions(*chosen, isWatched ? 1 : threads)) {
    if (failed(compiled))
      return failure();
    if (artifact)
      artifact->companions.push_back(std::move(*compiled));
    else
      artifact = std::move(*compiled);
  }
  return std::move(*artifact);
}

FailureOr<CompileOptions> attn::resolvePlans(ModuleOp module,
                                             const CompileOptions &options) {
  FailureOr<std::vector<ChosenFunction>> chosen =
      chooseFunctions(module, options);
  if (failed(chosen))
    return failure();
  CompileOptions resolved = options;
  for (const ChosenFunction &function : *chosen) {
    Compilation compilation(*function.module, function.options);
    FailureOr<std::string> plan = compilation.resolvePlan();
    if (failed(plan))
      return failure();
    resolved.plans[function.options.function] = {
        std::move(*plan), compilation.isPicked(), compilation.getVariant()};
  }
  resolved.plan = resolved.backwardPlan = "";
  resolved.results = resolved.gpu = "";
  resolved.sizes = std::nullopt;
  resolved.passes = PassRequest();
  return resolved;
}
