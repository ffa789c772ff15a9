//===- attn-opt.cpp - pass driver -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../CrashGuard.h"
#include "Upstream.h"
#include "WrongRoom.h"
#include "attn/Check/Passes.h"
#include "attn/Pipelines/InputText.h"
#include "attn/Pipelines/OutputFile.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Support/Version.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

static constexpr char overview[] =
    R"(attn-opt: runs passes of the attention compiler on a .mlir file

The project's passes begin with attn-, tile-, warp-, convert-linalg-to-attn,
convert-attn-, convert-tile- or convert-warp-; the others are upstream's.

Examples:
  attn-opt f.mlir                                  parse, verify, print
  attn-opt f.mlir --attn-plan=target=sm_80 --convert-attn-to-tile
  attn-opt g.mlir --attn-raise --remarks-filter=.* find attention in a graph
  attn-opt f.mlir --tile-peel-masks --tile-expand-softmax --mlir-timing
  attn-opt f.mlir --attn-sm80 --mlir-print-ir-after-all \
                  --mlir-print-ir-after-change \
                  --mlir-print-ir-tree-dir=dump    one file per pass that changes
                                                   something

A pass that finds nothing to work on warns.
)";

/// The options of LLVM's backends would bury the ones of this tool.
/// `--help-hidden` shows them, and they keep working.
static void hideBackendOptions() {
  for (auto [name, option] : llvm::cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == llvm::cl::NotHidden &&
        !name.starts_with("help") && name != "version")
      option->setHiddenFlag(llvm::cl::Hidden);
}

static void printVersion(llvm::raw_ostream &os) {
  os << "attn " << attn::versionString << " (MLIR " << attn::llvmVersionString
     << ")\n";
}

static std::optional<attn::TextFault>
findFault(llvm::StringRef text, const mlir::DialectRegistry &registry,
          const mlir::MlirOptMainConfig &config) {
  std::optional<attn::TextFault> fault = attn::findTextFault(text);
  if (fault)
    return fault;
  llvm::SmallVector<llvm::StringRef> parts = {text};
  if (!config.inputSplitMarker().empty()) {
    parts.clear();
    text.split(parts, config.inputSplitMarker());
  }
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects(config.shouldAllowUnregisteredDialects());
  for (llvm::StringRef part : parts) {
    fault = attn::findEscapedValue(part, &context);
    if (fault) {
      fault->offset += part.data() - text.data();
      return fault;
    }
  }
  return std::nullopt;
}

/// Refuses what MLIR's parser would not survive.
static llvm::LogicalResult checkInput(const llvm::MemoryBuffer &file,
                                      const mlir::DialectRegistry &registry,
                                      const mlir::MlirOptMainConfig &config) {
  llvm::StringRef text = file.getBuffer();
  std::optional<attn::TextFault> fault = findFault(text, registry, config);
  if (!fault)
    return llvm::success();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(file.getMemBufferRef()), llvm::SMLoc());
  sources.PrintMessage(llvm::SMLoc::getFromPointer(text.data() + fault->offset),
                       llvm::SourceMgr::DK_Error, fault->message);
  return llvm::failure();
}

/// What MlirOptMain does with a file, with an eye on the file and the passes.
static llvm::LogicalResult process(const std::string &input,
                                   const std::string &output,
                                   mlir::DialectRegistry &registry,
                                   const mlir::MlirOptMainConfig &options) {
  mlir::MlirOptMainConfig config = options;
  config.setPassPipelineSetupFn([options](mlir::PassManager &manager) {
    if (failed(options.setupPassPipeline(manager)))
      return llvm::failure();
    manager.addInstrumentation(attn::createWrongRoomWarning());
    return llvm::success();
  });
  std::string error;
  auto file = mlir::openInputFile(input, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return llvm::failure();
  }
  if (failed(checkInput(*file, registry, config)))
    return llvm::failure();
  if (output == "-")
    return mlir::MlirOptMain(llvm::outs(), std::move(file), registry, config);
  // A file appears whole or not at all.
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (failed(mlir::MlirOptMain(stream, std::move(file), registry, config)))
    return llvm::failure();
  error = llvm::toString(attn::writeOutputFile(
      output, [&](llvm::raw_ostream &os) { os << text; }));
  if (!error.empty())
    llvm::errs() << "attn-opt: error: " << error << "\n";
  return llvm::success(error.empty());
}

/// MLIR would start a thread per processor, which ends the process where it may
/// not have them, and gains nothing here; --mlir-disable-threading=false does.
static void runInOneThread() {
  mlir::registerMLIRContextCLOptions();
  llvm::cl::Option *option =
      llvm::cl::getRegisteredOptions().lookup("mlir-disable-threading");
  static_cast<llvm::cl::opt<bool> *>(option)->setInitialValue(true);
}

static int run(int argc, char **argv) {
  llvm::cl::SetVersionPrinter(printVersion);
  hideBackendOptions();

  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  attn::registerUpstream(registry);
  attn::registerPassesAndPipelines();
  attn::registerAttnCheckPasses();
  runInOneThread();
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, overview, registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, output, registry));
  return mlir::asMainReturnCode(process(input, output, registry, config));
}

int main(int argc, char **argv) {
  return attn::runGuarded(argc, argv, "attn-opt",
                          [&] { return run(argc, argv); });
}
