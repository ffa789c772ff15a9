//===- x - Compile.cpp - the compiler for C -----------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Handles.h"

#include "attn/Execute/Session.h"
#include "attn/Runtime/Cache.h"

using namespace mlir;
using namespace attn;

namespace {
/// What the caller asked for, with every member there.
struct ParsedOptions {
  std::string target = "sm_80", plan, results, gpu, processor = "native";
  std::optional<std::string> cacheDirectory, ptxas;
  PassRequest passes;
  FunctionChoice functions = FunctionChoice::Forward;
  GradientRequest gradients;
  std::string backwardPlan;
  std::optional<LaunchQuantities> sizes;
};
} // namespace

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

// The member at `member` if the caller's structure has it; else zero.
template <typename T>
static T read(const AttnCompileOptions *options,
              T AttnCompileOptions::*member) {
  auto offset = reinterpret_cast<const char *>(&(options->*member)) -
                reinterpret_cast<const char *>(options);
  if (options->struct_size < static_cast<size_t>(offset) + sizeof(T))
    return T();
  return options->*member;
}

static runtime::Status readFunctions(const AttnCompileOptions *given,
                                     ParsedOptions &options) {
  int32_t functions = read(given, &AttnCompileOptions::functions);
  if (functions < ATTN_FORWARD || functions > ATTN_JVP)
    return runtime::Status::error(
        "attnCompile: functions is " + std::to_string(functions) +
        ", wanted ATTN_FORWARD, ATTN_BACKWARD, ATTN_BOTH or ATTN_JVP (0 to 3)");
  bool lse = false, noCaptures = false;
  for (auto [name, member, flag] :
       {std::tuple("lse_gradient", &AttnCompileOptions::lse_gradient, &lse),
        std::tuple("no_capture_gradients",
                   &AttnCompileOptions::no_capture_gradients, &noCaptures)}) {
    int32_t value = read(given, member);
    std::string prefix = std::string("attnCompile: ") + name;
    if (value != 0 && value != 1)
      return runtime::Status::error(prefix + " is " + std::to_string(value) +
                                    ", wanted 0 or 1");
    if (value == 1 && functions != ATTN_BACKWARD && functions != ATTN_BOTH)
      return runtime::Status::error(prefix +
                                    " comes with ATTN_BACKWARD or ATTN_BOTH");
    *flag = value == 1;
  }
  options.functions = static_cast<FunctionChoice>(functions);
  options.gradients = {lse, /*captures=*/!noCaptures};
  if (const char *plan = read(given, &AttnCompileOptions::backward_plan))
    options.backwardPlan = plan;
  return {};
}

static runtime::Status readSizes(const AttnCompileOptions *given,
                                 ParsedOptions &options) {
  const AttnLaunchSizes *sizes = read(given, &AttnCompileOptions::sizes);
  if (!sizes)
    return {};
  // Until API version 12 it ended before batch_key_heads.
  constexpr size_t before = offsetof(AttnLaunchSizes, batch_key_heads);
  if (sizes->struct_size != sizeof(AttnLaunchSizes) &&
      sizes->struct_size != before)
    return runtime::Status::error(
        "attnCompile: struct_size of the sizes is " +
        std::to_string(sizes->struct_size) + ", this library knows " +
        std::to_string(sizeof(AttnLaunchSizes)) + " bytes");
  constexpr int64_t usualHeads = 4; // of the query for one of the key
  int64_t keyHeads = sizes->struct_size == before ? 0 : sizes->batch_key_heads;
  if (keyHeads == 0)
    keyHeads = (sizes->batch_heads + usualHeads - 1) / usualHeads;
  LaunchQuantities values = {sizes->query_length, sizes->key_length,
                             sizes->batch_heads, sizes->multiprocessors,
                             keyHeads};
  for (size_t number = 0; number < values.size(); ++number) {
    auto quantity = static_cast<LaunchQuantity>(number);
    int64_t least = quantity == LaunchQuantity::Multiprocessors ? 1 : 0;
    if (values[number] < least)
      return runtime::Status::error(
          "attnCompile: sizes: " + std::string(quantityName(quantity)) +
          " is " + std::to_string(values[number]) + ", wanted " +
          std::to_string(least) + " or more");
  }
  options.sizes = values;
  return {};
}

static runtime::Result<ParsedOptions>
readOptions(const AttnCompileOptions *given) {
  ParsedOptions options;
  if (!given)
    return options;
  if (given->struct_size < sizeof(size_t) ||
      given->struct_size > sizeof(AttnCompileOptions))
    return runtime::Status::error(
        "attnCompile: struct_size of the options is " +
        std::to_string(given->struct_size) + ", this library knows " +
        std::to_string(sizeof(AttnCompileOptions)) + " bytes");
  if (const char *target = read(given, &AttnCompileOptions::target))
    options.target = target;
  if (const char *plan = read(given, &AttnCompileOptions::plan))
    options.plan = plan;
  if (const char *path = read(given, &AttnCompileOptions::cache_directory))
    options.cacheDirectory = path;
  if (const char *ptxas = read(given, &AttnCompileOptions::ptxas))
    options.ptxas = ptxas;
  if (const char *path = read(given, &AttnCompileOptions::results_file))
    options.results = path;
  if (const char *name = read(given, &AttnCompileOptions::gpu))
    options.gpu = name;
  if (const char *names = read(given, &AttnCompileOptions::disabled_passes))
    options.passes.disabled = splitPassNames(names);
  if (const char *names = read(given, &AttnCompileOptions::enabled_passes))
    options.passes.enabled = splitPassNames(names);
  if (const char *name = read(given, &AttnCompileOptions::cpu); name && *name)
    options.processor = name;
  if (runtime::Status status = readFunctions(given, options); !status.ok())
    return status;
  if (runtime::Status status = readSizes(given, options); !status.ok())
    return status;
  return options;
}

//===----------------------------------------------------------------------===//
// The CPU
//===----------------------------------------------------------------------===//

namespace {
/// A kernel in this process.
class HostKernel final : public capi::Kernel {
public:
  explicit HostKernel(HostProgram program) : program(std::move(program)) {}

  const Artifact &artifact() const override { return program.manifest(); }
  runtime::Status launch(runtime::ArgumentSpan arguments, void *,
                         const runtime::WorkspaceMemory *) const override {
    return program.invoke(arguments);
  }
  /// It takes what it needs from the process.
  runtime::Result<int64_t>
  workspaceBytes(runtime::ArgumentSpan arguments) const override {
    auto call = runtime::prepareLaunch(program.manifest(), arguments.copy());
    if (!call.ok())
      return call.status();
    return 0;
  }
  runtime::Result<std::string>
  describeLaunch(runtime::ArgumentSpan arguments) const override {
    auto call = runtime::prepareLaunch(program.manifest(), arguments.copy());
    if (!call.ok())
      return call.status();
    return runtime::describeRelayouts(program.manifest(), *call);
  }
  runtime::Result<runtime::VariantChoice>
  chooseVariant(runtime::ArgumentSpan arguments) const override {
    auto call = runtime::prepareLaunch(program.manifest(), arguments.copy());
    if (!call.ok())
      return call.status();
    return runtime::VariantChoice();
  }
  int64_t relayouts() const override { return program.relayouts(); }
  runtime::Status synchronize() const override { return {}; }

private:
  HostProgram program;
};
} // namespace

AttnKernel *attnCompileForCPU(const char *text, size_t size,
                              const AttnCompileOptions *given) {
  runtime::Result<ParsedOptions> options = readOptions(given);
  if (!options.ok() || !text) {
    capi::setError(text ? options.message()
                        : "attnCompileForCPU: text is NULL");
    return nullptr;
  }
  if (options->sizes) {
    capi::setError(
        "attnCompileForCPU: got sizes of a launch, a program for the "
        "CPU has one plan for all");
    return nullptr;
  }
  HostOptions hostOptions;
  hostOptions.plan = options->plan;
  hostOptions.results = options->results;
  hostOptions.gpu = options->gpu;
  hostOptions.passes = options->passes;
  hostOptions.processor = options->processor;
  hostOptions.functions = options->functions;
  hostOptions.gradients = options->gradients;
  Session session;
  runtime::Result<HostProgram> program =
      session.compileForHost({text, size}, hostOptions);
  if (!program.ok()) {
    capi::setError(program.message());
    return nullptr;
  }
  auto *handle = new AttnKernel;
  handle->manifest = program->manifest().manifest();
  handle->kernel = std::make_unique<HostKernel>(std::move(*program));
  return handle;
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

// Where `options` says that artifacts are kept; nothing if nowhere.
static runtime::Result<std::optional<runtime::Cache>>
openCache(const ParsedOptions &options) {
  std::optional<runtime::Cache> cache;
  if (!options.cacheDirectory)
    return cache;
  if (!options.cacheDirectory->empty()) {
    cache.emplace(*options.cacheDirectory);
    return cache;
  }
  runtime::Result<runtime::Cache> user = runtime::Cache::user();
  if (!user.ok())
    return user.status();
  cache = *user;
  return cache;
}

AttnArtifact *attnCompile(const char *text, size_t size,
                          const AttnCompileOptions *given) {
  runtime::Result<ParsedOptions> options = readOptions(given);
  if (!options.ok() || !text) {
    capi::setError(text ? options.message() : "attnCompile: text is NULL");
    return nullptr;
  }
  if (options->target == "cpu") {
    capi::setError("attnCompile: a program for the CPU is no artifact, use "
                   "attnCompileForCPU");
    return nullptr;
  }
  runtime::Result<std::optional<runtime::Cache>> cache = openCache(*options);
  if (!cache.ok()) {
    capi::setError(cache.message());
    return nullptr;
  }
  CompileOptions compileOptions;
  compileOptions.target = options->target;
  compileOptions.plan = options->plan;
  compileOptions.passes = options->passes;
  compileOptions.results = options->results;
  compileOptions.gpu = options->gpu;
  compileOptions.functions = options->functions;
  compileOptions.gradients = options->gradients;
  compileOptions.backwardPlan = options->backwardPlan;
  compileOptions.sizes = options->sizes;
  compileOptions.cubin = CompileOptions::Cubin::No;
  if (options->ptxas) {
    compileOptions.ptxas = *options->ptxas;
    compileOptions.cubin = options->ptxas->empty()
                               ? CompileOptions::Cubin::IfPossible
                               : CompileOptions::Cubin::Required;
  }
  Session session;
  runtime::Result<Artifact> artifact = session.compile(
      {text, size}, compileOptions, *cache ? &**cache : nullptr);
  if (!artifact.ok()) {
    capi::setError(artifact.message());
    return nullptr;
  }
  return new AttnArtifact(std::move(*artifact), session.log(),
                          session.isFromCache());
}
