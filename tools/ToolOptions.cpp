//===- ToolOptions.cpp - what every tool that compiles takes -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToolOptions.h"

#include "FindPtxas.h"
#include "attn/Pipelines/InputText.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Support/Version.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

ToolOptions::ToolOptions(const char *tool, const char *targets)
    : tool(tool), heading(this->tool + " options"),
      targets(std::string(targets) + "; default: " + defaultTarget),
      category(heading), input(cl::Positional, cl::desc("<input file>"),
                               cl::init("-"), cl::cat(category)),
      target("target", cl::desc(this->targets), cl::init(defaultTarget),
             cl::cat(category)),
      function("function",
               cl::desc("Which function; default: the only public one"),
               cl::value_desc("name"), cl::cat(category)),
      plan("plan",
           cl::desc("The plan, as in IR; for a GPU also a rule over several: "
                    "\"query_length <= 1024 -> PLAN; PLAN\""),
           cl::value_desc("#attn.plan<...>"), cl::cat(category)),
      disabled("disable-pass", cl::CommaSeparated,
               cl::desc("Optional passes that the plan shall leave out: "
                        "slower, never wrong. They are listed below"),
               cl::value_desc("tile-overlap-products,..."), cl::cat(category)),
      enabled("enable-pass", cl::CommaSeparated,
              cl::desc("Optional passes that the plan shall have although the "
                       "target does not run them by default"),
              cl::value_desc("tile-lazy-max,..."), cl::cat(category)),
      results("results",
              cl::desc("File of measured plans, which attn-bench writes: the "
                       "fastest is taken where no plan is given"),
              cl::value_desc("file"), cl::cat(category)),
      ptxas("ptxas",
            cl::desc("The assembler or the root of a CUDA Toolkit; default: "
                     "CUDAToolkit_ROOT, CUDA_HOME, CUDA_PATH, then PATH"),
            cl::value_desc("path"), cl::cat(category)) {
  registerPassesAndPipelines(); // they say what they do
  passList = describeOptionalPasses();
  listOfPasses.emplace(passList);
}

static void printVersion(llvm::raw_ostream &os) {
  os << "attn " << versionString << " (MLIR " << llvmVersionString << ")\n";
}

void ToolOptions::read(int argc, char **argv, const char *overview) {
  for (auto [name, option] : cl::getRegisteredOptions())
    if (!llvm::is_contained(option->Categories, &category) &&
        option->getOptionHiddenFlag() == cl::NotHidden &&
        !name.starts_with("help") && name != "version" &&
        !name.starts_with("mlir-"))
      option->setHiddenFlag(cl::Hidden);
  cl::SetVersionPrinter(printVersion);
  cl::ParseCommandLineOptions(argc, argv, overview);
}

LogicalResult ToolOptions::fail(const llvm::Twine &message) const {
  llvm::errs() << tool << ": error: " << message << "\n";
  return failure();
}

OwningOpRef<ModuleOp> ToolOptions::parse(MLIRContext &context,
                                         llvm::SourceMgr &sources) const {
  std::string message;
  auto file = openInputFile(input, &message);
  if (!file) {
    (void)fail(message);
    return {};
  }
  StringRef text = file->getBuffer();
  sources.AddNewSourceBuffer(std::move(file), SMLoc());
  if (std::optional<TextFault> fault = findTextFault(text)) {
    sources.PrintMessage(SMLoc::getFromPointer(text.data() + fault->offset),
                         llvm::SourceMgr::DK_Error, fault->message);
    return {};
  }
  return parseModule(sources, &context);
}

PassRequest ToolOptions::passes() const {
  return {{disabled.begin(), disabled.end()}, {enabled.begin(), enabled.end()}};
}

std::string ToolOptions::assembler() const { return choosePtxas(ptxas); }
