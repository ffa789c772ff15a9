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
#include "attn/Host/ValidateRaise.h"
#include "attn/Pipelines/InputText.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Support/Version.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
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
  attn-opt f.mlir --tile-fold-exp2 --mlir-print-ir-after-change \
                  --mlir-print-ir-tree-dir=dump    one file per pass
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

/// Refuses a file that MLIR's parser would not survive. What comes through a
/// pipe is read once only, by MLIR.
static llvm::LogicalResult checkInput(const std::string &path) {
  if (path == "-")
    return llvm::success();
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return llvm::success(); // told below
  llvm::StringRef text = (*file)->getBuffer();
  std::optional<attn::TextFault> fault = attn::findTextFault(text);
  if (!fault)
    return llvm::success();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  sources.PrintMessage(llvm::SMLoc::getFromPointer(text.data() + fault->offset),
                       llvm::SourceMgr::DK_Error, fault->message);
  return llvm::failure();
}

static int run(int argc, char **argv) {
  llvm::cl::SetVersionPrinter(printVersion);
  hideBackendOptions();

  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  attn::registerUpstream(registry);
  attn::registerPassesAndPipelines();
  attn::registerValidateRaisePass();
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, overview, registry);
  if (failed(checkInput(input)))
    return EXIT_FAILURE;
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}

int main(int argc, char **argv) {
  return attn::runGuarded(argc, argv, "attn-opt",
                          [&] { return run(argc, argv); });
}
