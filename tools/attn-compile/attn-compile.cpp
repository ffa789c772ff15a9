//===- attn-compile.cpp - attention in, kernels out -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CrashGuard.h"
#include "../GradientOptions.h"
#include "../ToolOptions.h"
#include "attn/Pipelines/ArgumentViews.h"
#include "attn/Pipelines/AttentionFunctions.h"
#include "attn/Pipelines/CPU.h"
#include "attn/Pipelines/Compile.h"
#include "attn/Pipelines/OutputFile.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Pipelines/Signature.h"
#include "attn/Target/Header.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fcntl.h>
#include <unistd.h>

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

static constexpr char overview[] =
    R"(attn-compile: compiles a function with an attn.attention, or one that was
written in the Warp room. Of a function with several, with other operations, or in
linalg, the attentions are compiled: graphs are raised (attn-opt --attn-raise),
each attention is a function, NAME_attention_N (--attn-outline), and one artifact
has them all

Examples:
  attn-compile causal.mlir -o causal.attn          artifact for sm_80
  attn-compile causal.mlir --emit=ptx              PTX on standard output
  attn-compile causal.mlir --emit=cubin -o f.cubin needs the CUDA Toolkit
  attn-compile causal.mlir --emit=header -o causal.h
                                                   C header with the artifact
  attn-compile causal.mlir --emit=tile --target=cpu
  attn-compile causal.mlir --dump-to=rooms -o f.attn
                                                   what every room leaves
  attn-compile causal.mlir --mlir-timing -o f.attn where the time goes
  attn-compile causal.mlir --disable-pass=tile-overlap-products,warp-insert-turns ...
                                                   slower, never wrong
  attn-compile causal.mlir --backward -o b.attn    its gradients, alone
  attn-compile causal.mlir --with-backward -o both.attn
                                                   one artifact with both
  attn-compile causal.mlir --with-backward --emit=header -o causal.h
                                                   C header with both
  attn-compile layers.mlir -o layers.attn          each attention of a module
  attn-compile layers.mlir --function=f_attention_1 --emit=ptx
  attn-compile causal.mlir --plan='#attn.plan<target = sm_80, block_q = 64, ...>'

Exit status: 0 done, 1 the program or the command line is wrong, 70 the
compiler itself failed. On failure no output file is written.
)";

namespace {
struct CompileCommand : ToolOptions {
  CompileCommand()
      : ToolOptions("attn-compile",
                    "What to compile for: sm_80, sm_90a or cpu") {}

  GradientOptions gradients{category};
  cl::opt<bool> withBackward{
      "with-backward",
      cl::desc("The function and its gradients, @NAME_backward, in one "
               "artifact; --plan is that of the function"),
      cl::cat(category)};
  cl::opt<std::string> backwardPlan{
      "backward-plan",
      cl::desc("With --with-backward: the plan of the gradients, as --plan"),
      cl::value_desc("#attn.plan<...>"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Output file; - is stdout"),
                              cl::value_desc("file"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<std::string> emit{
      "emit",
      cl::desc("What to write: attn, tile, warp, gpu, nvvm, llvm, ptx, cubin, "
               "header or artifact (the default; llvm for cpu)"),
      cl::value_desc("room"), cl::cat(category)};
  cl::opt<std::string> gpu{
      "gpu",
      cl::desc("The GPU that the kernel is for, by the name its driver gives "
               "it: where no plan is given, the fastest one measured on it is "
               "taken, from --results or else from the file that comes with "
               "the compiler"),
      cl::value_desc("NVIDIA H200|none|..."), cl::cat(category)};
  cl::opt<std::string> dump{
      "dump-to", cl::desc("Write what every room leaves into a directory"),
      cl::value_desc("directory"), cl::cat(category)};
  cl::opt<bool> strict{"strict",
                       cl::desc("Spills and warnings of ptxas are errors"),
                       cl::cat(category)};
};

/// What goes to the output file.
struct CompiledOutput {
  std::string bytes;
  bool isText = true;
};
} // namespace

static LogicalResult fail(const llvm::Twine &message) {
  llvm::errs() << "attn-compile: error: " << message << "\n";
  return failure();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static LogicalResult writeFile(StringRef path, StringRef bytes) {
  llvm::Error error = writeOutputFile(
      path, [&](llvm::raw_ostream &stream) { stream << bytes; });
  return error ? fail(llvm::toString(std::move(error))) : success();
}

/// Under whatever name: -, /dev/stdout, /dev/tty.
static bool isTerminal(StringRef path) {
  if (path == "-")
    return llvm::outs().is_displayed();
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status) ||
      status.type() != llvm::sys::fs::file_type::character_file)
    return false; // a pipe would see that it is opened
  int file = open(path.str().c_str(), O_WRONLY | O_NOCTTY);
  bool isDisplayed = file >= 0 && isatty(file);
  if (file >= 0)
    close(file);
  return isDisplayed;
}

static LogicalResult writeCompiledOutput(StringRef path,
                                         const CompiledOutput &product) {
  if (!product.isText && isTerminal(path))
    return fail("not writing an artifact, which is no text, to a terminal: "
                "give -o FILE, or another --emit");
  if (path != "-")
    return writeFile(path, product.bytes);
  llvm::outs() << product.bytes;
  return success();
}

static StringRef dumpName(Room room) {
  switch (room) {
  case Room::Attn:
    return "1-attn.mlir";
  case Room::Tile:
    return "2-tile.mlir";
  case Room::Warp:
    return "3-warp.mlir";
  case Room::GPU:
    return "4-gpu.mlir";
  case Room::NVVM:
    return "5-nvvm.mlir";
  case Room::LLVM:
    return "6-llvm.ll";
  case Room::PTX:
    return "7-kernel.ptx";
  }
  llvm_unreachable("unknown room");
}

/// `folder` is one in that of --dump-to.
static LogicalResult dump(const CompileCommand &options, StringRef name,
                          StringRef text, StringRef folder = "") {
  if (options.dump.empty())
    return success();
  SmallString<128> path(options.dump.getValue());
  if (!folder.empty())
    llvm::sys::path::append(path, folder);
  if (std::error_code error = llvm::sys::fs::create_directories(path))
    return fail("cannot create '" + path + "': " + error.message());
  llvm::sys::path::append(path, name);
  return writeFile(path, text);
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

static LogicalResult configure(PassManager &manager) {
  return applyPassManagerCLOptions(manager);
}

/// One thread where MLIR is to have no others, or where its passes print, which
/// they do as they run; else as many as there are processors.
static unsigned countThreads() {
  auto isOn = [](const cl::Option *option) {
    return static_cast<const cl::opt<bool> *>(option)->getValue();
  };
  for (const auto &[name, option] : cl::getRegisteredOptions())
    if (name == "mlir-disable-threading"
            ? isOn(option)
            : option->getNumOccurrences() > 0 &&
                  (name.starts_with("mlir-print-ir") ||
                   name.starts_with("mlir-pass")))
      return 1;
  return 0;
}

/// Whether the options for gradients go together.
static LogicalResult checkFunctions(const CompileCommand &options) {
  bool isBoth = options.withBackward;
  StringRef emit = options.emit.empty() ? "artifact" : StringRef(options.emit);
  if (isBoth && options.gradients.backward)
    return fail("got --backward and --with-backward, expected one of them: the "
                "gradients alone, or the function with them");
  if (isBoth && options.gradients.jvp)
    return fail("got --jvp and --with-backward, expected one of them: an "
                "artifact has a function with its gradients, or with its "
                "tangents");
  if (!isBoth && !options.backwardPlan.empty())
    return fail("--backward-plan comes with --with-backward; the plan of "
                "--backward is --plan");
  if (isBoth && options.target == "cpu")
    return fail("--with-backward makes an artifact, which cpu has none of: "
                "expected --backward");
  if (isBoth && emit != "artifact" && emit != "header")
    return fail("--with-backward gives an artifact or a header, got --emit=" +
                emit + ": expected --backward");
  return success();
}

/// The GPU whose measured plans are taken; empty for none.
static std::string gpuName(const CompileCommand &options) {
  return options.gpu == "none" ? "" : options.gpu.getValue();
}

static FailureOr<CompiledOutput> compileForGPU(ModuleOp module,
                                               ArrayRef<std::string> names,
                                               const CompileCommand &options,
                                               TimingScope &timing) {
  StringRef emit = options.emit.empty() ? "artifact" : StringRef(options.emit);
  std::optional<Room> room = findRoom(emit);
  if (!room && emit != "cubin" && emit != "header" && emit != "artifact")
    return fail("unknown --emit=" + emit +
                ", expected attn, tile, warp, gpu, nvvm, llvm, ptx, cubin, "
                "header or artifact");
  if (names.size() > 1 && emit != "artifact" && emit != "header")
    return fail("the attentions are " + std::to_string(names.size()) +
                " functions, and --emit=" + emit +
                " gives one: expected --function=" + names.front() +
                " or another, or an artifact or a header");
  CompiledOutput product;
  CompileOptions compileOptions;
  if (options.withBackward) { // else the gradients are in the module already
    compileOptions.functions = FunctionChoice::Both;
    compileOptions.gradients = options.gradients.request();
  }
  compileOptions.backwardPlan = options.backwardPlan;
  compileOptions.target = options.target;
  compileOptions.plan = options.plan;
  compileOptions.function = options.function;
  compileOptions.passes = options.passes();
  compileOptions.results = options.results;
  compileOptions.gpu = gpuName(options);
  compileOptions.strict = options.strict;
  compileOptions.configure = configure;
  compileOptions.threads = countThreads();
  compileOptions.timing = &timing;
  if (room) {
    compileOptions.last = *room;
    compileOptions.cubin = CompileOptions::Cubin::No;
  } else {
    compileOptions.ptxas = options.assembler();
    compileOptions.cubin = emit == "cubin" ? CompileOptions::Cubin::Required
                                           : CompileOptions::Cubin::IfPossible;
  }
  // Where the first one dumps, and those after it.
  SmallVector<std::string> folders;
  for (const std::string &name : names) {
    folders.push_back(folders.empty() ? "" : name);
    if (options.withBackward)
      folders.push_back(names.size() == 1 ? "backward" : name + "_backward");
  }
  unsigned begun = 0;
  if (room && options.dump.empty())
    compileOptions.firstShown = *room;
  if (room || !options.dump.empty())
    compileOptions.onRoom = [&](Room left, StringRef text) {
      if (room == left)
        product.bytes = text.str();
      begun += left == Room::Attn;
      return dump(options, dumpName(left), text,
                  begun == 0 ? "" : folders[begun - 1]);
    };
  FailureOr<Artifact> artifact = compile(module, compileOptions);
  if (failed(artifact))
    return failure();
  if (room)
    return product;
  auto cubinOf = [](const Artifact &function) {
    return std::string(function.cubin.begin(), function.cubin.end());
  };
  if (failed(dump(options, "9-manifest.json", artifact->manifest())))
    return failure();
  for (auto [number, function] : llvm::enumerate(artifact->functions())) {
    std::string cubin = cubinOf(*function);
    if (!cubin.empty() &&
        failed(dump(options, "8-kernel.cubin", cubin, folders[number])))
      return failure();
  }
  product.isText = emit == "header";
  product.bytes = emit == "cubin"    ? cubinOf(*artifact)
                  : emit == "header" ? emitHeader(*artifact)
                                     : artifact->serialize();
  return product;
}

static FailureOr<CompiledOutput> compileForCPU(ModuleOp module,
                                               ArrayRef<std::string> names,
                                               const CompileCommand &options,
                                               TimingScope &timing) {
  StringRef emit = options.emit.empty() ? "llvm" : StringRef(options.emit);
  if (emit != "attn" && emit != "tile" && emit != "llvm")
    return fail("cannot --emit=" + emit +
                " for cpu, expected attn, tile or llvm");
  plan::AttnPlanOptions planning;
  planning.target = "cpu";
  planning.planText = options.plan;
  planning.results = options.results;
  planning.gpu = gpuName(options);
  llvm::append_range(planning.without, options.disabled);
  llvm::append_range(planning.with, options.enabled);
  auto run = [&](StringRef name, Operation *op,
                 llvm::function_ref<void(OpPassManager &)> build) {
    PassManager manager(op->getName());
    build(manager);
    TimingScope scope = timing.nest(name);
    manager.enableTiming(scope);
    return success(succeeded(configure(manager)) && succeeded(manager.run(op)));
  };
  auto text = [&](auto &&thing) {
    CompiledOutput product;
    llvm::raw_string_ostream stream(product.bytes);
    stream << thing;
    return product;
  };
  for (const std::string &name : names) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    Artifact description;
    if (failed(describeSignature(function, description)) ||
        failed(absorbArgumentViews(function)))
      return failure();
  }
  CompiledOutput product = text(printProgram(module));
  if (failed(dump(options, dumpName(Room::Attn), product.bytes)) ||
      emit == "attn")
    return product;
  if (failed(run("tile", module,
                 [&](OpPassManager &manager) {
                   buildPlanPipeline(manager, planning);
                 })) ||
      failed(lowerPlannedToTile(module, [&](Operation *op, auto build) {
        return run("tile", op, build);
      })))
    return failure();
  product = text(printProgram(module));
  if (failed(dump(options, dumpName(Room::Tile), product.bytes)) ||
      emit == "tile")
    return product;
  if (failed(run("llvm", module, buildTileToLLVMPipeline)))
    return failure();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> ir = translateModuleToLLVMIR(module, context);
  if (!ir)
    return failure();
  product = text(*ir);
  if (failed(dump(options, dumpName(Room::LLVM), product.bytes)))
    return failure();
  return product;
}

//===----------------------------------------------------------------------===//
// The tool
//===----------------------------------------------------------------------===//

static int run(int argc, char **argv) {
  registerAsmPrinterCLOptions();
  registerMLIRContextCLOptions();
  registerPassesAndPipelines(); // --mlir-print-ir-after knows passes by name
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  CompileCommand options;
  options.read(argc, argv, overview);

  DefaultTimingManager timingManager;
  applyDefaultTimingManagerCLOptions(timingManager);
  TimingScope timing = timingManager.getRootScope();

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  TimingScope parsing = timing.nest("parse");
  OwningOpRef<ModuleOp> module = options.parse(context, sources);
  parsing.stop();
  if (!module)
    return 1;
  if (failed(checkFunctions(options)))
    return 1;
  FailureOr<AttentionFunctions> functions =
      prepareAttention(*module, options.function);
  if (failed(functions))
    return 1;
  SmallVector<std::string> names = functions->names;
  bool isJvp = options.gradients.jvp;
  if ((options.gradients.backward || isJvp) && names.size() > 1) {
    (void)fail(std::string(isJvp ? "--jvp" : "--backward") +
               " gives one function, got " + std::to_string(names.size()) +
               ": expected --function=" + names.front() + " or another" +
               (isJvp ? "" : ", or --with-backward"));
    return 1;
  }
  if (!functions->isUnchanged && names.size() == 1)
    module = isolateFunction(*module, names.front());
  if (names.size() == 1)
    options.function.setValue(names.front());
  FailureOr<std::string> forward =
      options.withBackward ? FailureOr<std::string>(std::string())
                           : options.gradients.apply(options, *module);
  if (failed(forward))
    return 1;
  if (!forward->empty()) // the gradients alone
    names = {options.function.getValue()};
  bool isForCPU = options.target == "cpu";
  // The GPU's compiler looks for them again, below the function that calls
  // them.
  for (auto function :
       llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
    if ((!forward->empty() || (isForCPU && !functions->isUnchanged)) &&
        !llvm::is_contained(names, function.getName()))
      function.erase();
  FailureOr<CompiledOutput> product =
      isForCPU ? compileForCPU(*module, names, options, timing)
               : compileForGPU(*module, names, options, timing);
  if (failed(product) || failed(writeCompiledOutput(options.output, *product)))
    return 1;
  return 0;
}

int main(int argc, char **argv) {
  return runGuarded(argc, argv, "attn-compile",
                    [&] { return run(argc, argv); });
}
