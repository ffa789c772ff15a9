//===- Gradients.cpp - the gradients of a function - -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Gradients.h"

#include "attn/Dialect/Attn/Analysis/TracedView.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Pipelines/ArgumentViews.h"
#include "attn/Pipelines/Signature.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace attn;

static bool hasAttention(func::FuncOp function) {
  return function.walk([](AttentionOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Where query, key and value are views of arguments, those arguments become
/// what the attention sees. What is no argument, attn-differentiate tells of.
static LogicalResult absorbViews(func::FuncOp function) {
  bool isSeen = true;
  function.walk([&](AttentionOp op) {
    for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()}) {
      FailureOr<TracedView> view = traceView(tensor);
      isSeen &= succeeded(view) && isa<BlockArgument>(view->source);
    }
  });
  return isSeen ? absorbArgumentViews(function) : success();
}

/// Differentiates function `name`; returns its name.
static FailureOr<std::string>
differentiate(ModuleOp module, StringRef name, StringRef what,
              const AttnDifferentiatePassOptions &options) {
  FailureOr<func::FuncOp> function = findFunction(module, name);
  if (failed(function))
    return failure();
  if (!hasAttention(*function))
    return function->emitError("function '")
           << function->getName()
           << "' has no attn.attention, wanted one to compute " << what
           << " of";
  for (auto other : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (other != *function && hasAttention(other))
      other.erase();
  if (failed(absorbViews(*function)))
    return failure();
  PassManager manager(module->getName());
  manager.addPass(createAttnDifferentiatePass(options));
  if (failed(manager.run(module)))
    return failure();
  return function->getName().str();
}

FailureOr<GradientFunctions>
attn::addGradients(ModuleOp module, StringRef name,
                   const GradientRequest &request) {
  AttnDifferentiatePassOptions options;
  options.lseGradient = request.lse;
  options.captureGradients = request.captures;
  FailureOr<std::string> forward =
      differentiate(module, name, "gradients", options);
  if (failed(forward))
    return failure();
  return GradientFunctions{*forward, *forward + "_backward"};
}

FailureOr<std::string> attn::addTangents(ModuleOp module, StringRef name) {
  AttnDifferentiatePassOptions options;
  options.mode = DerivativeMode::JVP;
  FailureOr<std::string> forward =
      differentiate(module, name, "tangents", options);
  if (failed(forward))
    return failure();
  return *forward + "_jvp";
}
