//===- OperandOptions.h - what a tool calls a function on -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The options of attn-run and attn-bench that make the arguments of a call.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_OPERANDOPTIONS_H
#define ATTN_TOOLS_OPERANDOPTIONS_H

#include "ToolOptions.h"
#include "attn/Execute/Operands.h"

namespace attn {

struct OperandOptions {
  explicit OperandOptions(llvm::cl::OptionCategory &category);

  /// Fills `request`; prints what is wrong.
  LogicalResult read(const ToolOptions &tool, OperandRequest &request) const;

  llvm::cl::opt<std::string> shape;
  llvm::cl::opt<std::string> layout;
  llvm::cl::opt<unsigned> padding;
  llvm::cl::list<std::string> inputs;
  llvm::cl::list<std::string> scalars;
  llvm::cl::opt<unsigned> seed;
};

/// Splits NAME=VALUE, an item of the list `flag`.
LogicalResult splitItem(const ToolOptions &tool, StringRef item, StringRef flag,
                        std::map<std::string, std::string> &into);

} // namespace attn

#endif // ATTN_TOOLS_OPERANDOPTIONS_H
