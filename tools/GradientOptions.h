//===- GradientOptions.h - a tool that computes gradients - -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_GRADIENTOPTIONS_H
#define ATTN_TOOLS_GRADIENTOPTIONS_H

#include "ToolOptions.h"
#include "attn/Pipelines/Gradients.h"

namespace attn {

struct GradientOptions {
  explicit GradientOptions(llvm::cl::OptionCategory &category)
      : backward("backward",
                 llvm::cl::desc("Instead of the function its gradients, which "
                                "attn-differentiate makes: @NAME_backward"),
                 llvm::cl::cat(category)),
        lseGradient("lse-gradient",
                    llvm::cl::desc("With --backward: there is a gradient of "
                                   "lse, too"),
                    llvm::cl::cat(category)),
        jvp("jvp",
            llvm::cl::desc("Instead of the function that with its tangents, "
                           "which attn-differentiate makes: @NAME_jvp"),
            llvm::cl::cat(category)),
        noCaptureGradients(
            "no-capture-gradients",
            llvm::cl::desc("With --backward: captures of floats have none"),
            llvm::cl::cat(category)) {}

  /// Puts the gradients into the module and makes them the function that the
  /// tool works on, or the tangents. Returns the name of the forward; empty
  /// without --backward.
  FailureOr<std::string> apply(ToolOptions &tool, ModuleOp module) const {
    for (const llvm::cl::opt<bool> *flag : {&lseGradient, &noCaptureGradients})
      if (*flag && !backward)
        return tool.fail("--" + flag->ArgStr + " comes with --backward");
    if (jvp && backward)
      return tool.fail("got --jvp and --backward: tangents or gradients?");
    if (jvp) {
      FailureOr<std::string> name = addTangents(module, tool.function);
      if (failed(name))
        return failure();
      tool.function.setValue(*name);
      return std::string();
    }
    if (!backward)
      return std::string();
    FailureOr<GradientFunctions> names =
        addGradients(module, tool.function, request());
    if (failed(names))
      return failure();
    tool.function.setValue(names->backward);
    return names->forward;
  }

  GradientRequest request() const {
    GradientRequest request;
    request.lse = lseGradient;
    request.captures = !noCaptureGradients;
    return request;
  }

  llvm::cl::opt<bool> backward, lseGradient, jvp, noCaptureGradients;
};

} // namespace attn

#endif // ATTN_TOOLS_GRADIENTOPTIONS_H
