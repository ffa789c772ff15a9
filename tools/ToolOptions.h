//===- ToolOptions.h - what every tool that compiles takes -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options that attn-compile, attn-run and attn-bench share, under one name
// and with one meaning.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_TOOLOPTIONS_H
#define ATTN_TOOLS_TOOLOPTIONS_H

#include "attn/Pipelines/PassSelection.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

#include <optional>
#include <string>

namespace attn {

/// What every tool, the libraries and passes take where no target is given.
inline constexpr char defaultTarget[] = "sm_80";

struct ToolOptions {
  /// `targets` lists what --target takes, in words.
  ToolOptions(const char *tool, const char *targets);

  /// Shows the options of this tool and MLIR's in --help, and not those of
  /// LLVM's back ends; then reads the command line.
  void read(int argc, char **argv, const char *overview);

  /// Prints "TOOL: error: message".
  LogicalResult fail(const llvm::Twine &message) const;
  /// The module in the input file; null after a diagnostic.
  OwningOpRef<ModuleOp> parse(MLIRContext &context,
                              llvm::SourceMgr &sources) const;
  PassRequest passes() const;
  /// The ptxas asked for, or that of the CUDA Toolkit in the environment.
  std::string assembler() const;

  std::string tool;
  /// The category and --target refer to their text, they do not keep it.
  std::string heading, targets;
  /// What --help says after the options.
  std::string passList;
  std::optional<llvm::cl::extrahelp> listOfPasses;
  llvm::cl::OptionCategory category;
  llvm::cl::opt<std::string> input;
  llvm::cl::opt<std::string> target;
  llvm::cl::opt<std::string> function;
  llvm::cl::opt<std::string> plan;
  llvm::cl::list<std::string> disabled;
  llvm::cl::list<std::string> enabled;
  llvm::cl::opt<std::string> results;
  llvm::cl::opt<std::string> ptxas;
};

} // namespace attn

#endif // ATTN_TOOLS_TOOLOPTIONS_H
