//===- x - Session.cpp - the compiler for programs, errors as values ----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/Session.h"

#include "attn/Execute/PlainLocale.h"
#include "attn/Execute/Processor.h"
#include "attn/Pipelines/AttentionFunctions.h"
#include "attn/Pipelines/InputText.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Pipelines/Raise.h"
#include "attn/Support/BuildId.h"
#include "attn/Support/Version.h"
#include "attn/Target/Ptxas.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace attn;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

Session::Session()
    // One function is too little work for a pool of threads.
    : context(makeRegistry(), MLIRContext::Threading::DISABLED),
      handler(&context,
              [this](Diagnostic &diagnostic) { return record(diagnostic); }) {
  context.printOpOnDiagnostic(false);
  initializeBackends();
}

static StringRef severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  return "error";
}

/// A new line of `messages`, with the place it is about.
static void beginLine(std::string &messages, FileLineColLoc location) {
  if (!messages.empty())
    messages += "\n";
  if (location && location.getLine() != 0)
    messages += std::to_string(location.getLine()) + ":" +
                std::to_string(location.getColumn()) + ": ";
}

static void append(std::string &messages, Diagnostic &diagnostic) {
  beginLine(messages, dyn_cast<FileLineColLoc>(diagnostic.getLocation()));
  messages += severityName(diagnostic.getSeverity());
  messages += ": " + diagnostic.str();
  for (Diagnostic &note : diagnostic.getNotes())
    append(messages, note);
}

LogicalResult Session::record(Diagnostic &diagnostic) {
  std::lock_guard<std::mutex> lock(mutex);
  append(messages, diagnostic);
  return success();
}

// What was said until now, as the reason of a failure.
runtime::Status Session::takeError() {
  std::string text = std::move(messages);
  messages.clear();
  if (text.empty())
    text = "error: the compiler failed without a diagnostic";
  return runtime::Status::error(std::move(text));
}

runtime::Result<OwningOpRef<ModuleOp>> Session::parse(StringRef text) {
  PlainLocale locale;
  OwningOpRef<ModuleOp> module = parseInput(text, "text", &context);
  if (!module)
    return takeError();
  return std::move(module);
}

namespace {
/// Writes the remarks of attn-raise down.
class RaiseLog final : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit RaiseLog(RaisedText &raised) : raised(raised) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    bool isRaised = remark.getRemarkType() == llvm::remarks::Type::Passed;
    beginLine(raised.log,
              remark.getLocation()->findInstanceOf<FileLineColLoc>());
    raised.log += isRaised ? "raised: " : "not raised: ";
    for (const remark::detail::Remark::Arg &argument : remark.getArgs())
      raised.log += argument.val;
    raised.numRaised += isRaised;
  }

private:
  RaisedText &raised;
};
} // namespace

runtime::Result<RaisedText> Session::raise(StringRef text) {
  PlainLocale locale;
  runtime::Result<OwningOpRef<ModuleOp>> module = parse(text);
  if (!module.ok())
    return module.status();
  RaisedText raised;
  remark::RemarkCategories wanted;
  wanted.passed = wanted.missed = "convert-linalg-to-attn";
  PassManager manager(&context);
  buildRaisePipeline(manager);
  bool isDone =
      succeeded(remark::enableOptimizationRemarks(
          context, std::make_unique<RaiseLog>(raised),
          std::make_unique<remark::RemarkEmittingPolicyAll>(), wanted)) &&
      succeeded(manager.run(**module));
  context.setRemarkEngine(nullptr);
  if (!isDone)
    return takeError();
  raised.text = printProgram(**module);
  return raised;
}

runtime::Result<HostProgram>
Session::compileForHost(StringRef text, const HostOptions &options) {
  PlainLocale locale;
  runtime::Result<OwningOpRef<ModuleOp>> module = parse(text);
  if (!module.ok())
    return module.status();
  FailureOr<HostProgram> program = HostProgram::compile(**module, "", options);
  if (failed(program))
    return takeError();
  return std::move(*program);
}

// Which assembler it is, and not where: what lies at a path may change.
static std::string describePtxas(const CompileOptions &options) {
  if (options.cubin == CompileOptions::Cubin::No)
    return "unused";
  std::string path = findPtxas(options.ptxas);
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (path.empty() || !file)
    return "none";
  StringRef bytes = (*file)->getBuffer();
  return std::to_string(bytes.size()) + " bytes " +
         llvm::utohexstr(llvm::xxh3_64bits(bytes));
}

// Everything that the artifact depends on. The plan holds every choice: which
// options, results or GPU it came from does not matter.
static runtime::CacheKey makeKey(StringRef text,
                                 const CompileOptions &options) {
  runtime::CacheKey key;
  key.op = text.str();
  key.plan = options.plan;
  key.target = options.target;
  key.compiler = std::string(versionString) + " llvm " + llvmVersionString +
                 " build " + buildId();
  key.options = "function " + options.function + "\nptxas " +
                describePtxas(options) + "\ncubin " +
                std::to_string(static_cast<int>(options.cubin)) + "\nstrict " +
                std::to_string(options.strict) + "\nfunctions " +
                std::to_string(static_cast<int>(options.functions)) +
                (options.gradients.lse ? " lse" : "") +
                (options.gradients.captures ? " captures" : "") +
                "\nbackward plan " + options.backwardPlan;
  for (const auto &[name, plan] : options.plans)
    key.options +=
        "\nplan of " + name + (plan.isPicked ? " picked " : " ") +
        (plan.variant ? "variant " + std::to_string(*plan.variant) + " of "
                      : "") +
        plan.plan;
  return key;
}

/// The same for all sizes; nothing if they are already.
static std::optional<CompileOptions>
withAllVariants(const CompileOptions &options) {
  CompileOptions whole = options;
  bool isOther = false;
  for (auto &[name, plan] : whole.plans) {
    isOther |= plan.variant.has_value();
    plan.variant = std::nullopt;
  }
  return isOther ? std::optional(std::move(whole)) : std::nullopt;
}

/// What was compiled with the same plans, or with all of a rule that one is
/// wanted of. A plan that was picked, and kept, has given what it gives where
/// it is asked for.
static std::optional<Artifact> findCompiled(const runtime::Cache &cache,
                                            const runtime::CacheKey &key,
                                            StringRef text,
                                            const CompileOptions &options) {
  if (std::optional<Artifact> found = cache.find(key))
    return found;
  if (std::optional<CompileOptions> whole = withAllVariants(options))
    return findCompiled(cache, makeKey(text, *whole), text, *whole);
  if (options.plans.size() != 1 || options.plans.begin()->second.isPicked)
    return std::nullopt;
  CompileOptions picked = options;
  picked.plans.begin()->second.isPicked = true;
  std::optional<Artifact> found = cache.find(makeKey(text, picked));
  if (found && found->variants.size() == 1 &&
      found->variants.front().plan == options.plans.begin()->second.plan)
    return found;
  return std::nullopt;
}

runtime::Result<Artifact> Session::compile(StringRef text,
                                           const CompileOptions &options,
                                           const runtime::Cache *cache) {
  PlainLocale locale;
  fromCache = false;
  if (options.onRoom || options.last != Room::PTX)
    cache = nullptr;
  runtime::Result<OwningOpRef<ModuleOp>> module = parse(text);
  if (!module.ok())
    return module.status();
  // Once, and not again for the plans and for the code.
  if (failed(prepareAttention(**module, options.function)))
    return takeError();
  CompileOptions planned = options;
  runtime::CacheKey key;
  if (cache) {
    FailureOr<CompileOptions> resolved = resolvePlans(**module, options);
    if (failed(resolved))
      return takeError();
    planned = std::move(*resolved);
    key = makeKey(text, planned);
    if (std::optional<Artifact> found =
            findCompiled(*cache, key, text, planned)) {
      fromCache = true;
      messages.clear();
      return std::move(*found);
    }
  }
  FailureOr<Artifact> artifact = attn::compile(**module, planned);
  if (failed(artifact))
    return takeError();
  if (cache) {
    runtime::Status stored = cache->store(key, *artifact);
    if (!stored.ok())
      messages += (messages.empty() ? "" : "\n") +
                  ("warning: not cached: " + stored.message());
  }
  return std::move(*artifact);
}
