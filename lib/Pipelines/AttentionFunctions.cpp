//===- AttentionFunctions.cpp - functions of one attention ----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/AttentionFunctions.h"

#include "attn/Conversion/LinalgToAttn.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Outline.h"
#include "attn/Pipelines/Signature.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace attn;

template <typename Op> static bool has(func::FuncOp function) {
  return function.walk([](Op) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static std::string listNames(ArrayRef<std::string> names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

/// The functions with an attention that `function` calls, each once.
static SmallVector<std::string> findCalled(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  SetVector<StringRef> names;
  function.walk([&](func::CallOp call) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (callee && !callee.isExternal() && has<AttentionOp>(callee))
      names.insert(callee.getName());
  });
  return llvm::map_to_vector(names, [](StringRef name) { return name.str(); });
}

/// Graphs become attn.attention; why others do not is a note.
static LogicalResult raise(func::FuncOp function) {
  // No pass has loaded what the graph becomes.
  MLIRContext *context = function.getContext();
  context->loadDialect<AttnDialect, arith::ArithDialect, func::FuncDialect,
                       linalg::LinalgDialect, math::MathDialect,
                       tensor::TensorDialect>();
  IRRewriter rewriter(context);
  normalizeInput(rewriter, function);
  SmallVector<RaisedGraph> graphs = raiseAttention(rewriter, function);
  for (const RaisedGraph &graph : graphs)
    if (graph.attention)
      emitRemark(graph.loc) << "raised to " << graph.text;
  if (has<AttentionOp>(function))
    return success();
  InFlightDiagnostic error = function.emitError("function '")
                             << function.getName()
                             << "' has 0 attention operations, wanted 1";
  for (const RaisedGraph &graph : graphs)
    error.attachNote(graph.loc)
        << "this product is not raised to one: " << graph.text;
  return error;
}

static FailureOr<AttentionFunctions> prepare(func::FuncOp function) {
  if (isWarpProgram(function) || has<AttentionBackwardOp>(function) ||
      has<AttentionJvpOp>(function) || isAttentionAlone(function))
    return AttentionFunctions{{function.getName().str()},
                              /*isUnchanged=*/true};
  if (!has<AttentionOp>(function))
    if (auto names = findCalled(function); !names.empty())
      return AttentionFunctions{std::move(names)};
  if (failed(raise(function)))
    return failure();
  if (isAttentionAlone(function))
    return AttentionFunctions{{function.getName().str()}};
  SmallVector<func::FuncOp> known;
  outlineAttention(function, known);
  AttentionFunctions functions{findCalled(function)};
  function.emitRemark("the attentions of '")
      << function.getName()
      << "' are functions of their own: " << listNames(functions.names);
  return functions;
}

FailureOr<AttentionFunctions> attn::prepareAttention(ModuleOp module,
                                                     StringRef name) {
  if (!name.empty() && !module.lookupSymbol<func::FuncOp>(name))
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
      if (function.isPublic() && !function.isExternal() &&
          name.starts_with((function.getName() + "_attention_").str()) &&
          failed(prepare(function)))
        return failure();
  FailureOr<func::FuncOp> function = findFunction(module, name);
  if (failed(function))
    return failure();
  return prepare(*function);
}

FailureOr<std::string> attn::prepareOneAttention(ModuleOp module,
                                                 StringRef name) {
  FailureOr<AttentionFunctions> functions = prepareAttention(module, name);
  if (failed(functions))
    return failure();
  if (functions->names.size() == 1)
    return std::move(functions->names.front());
  return module.emitError("a program is one function, got ")
         << functions->names.size()
         << ", expected the name of one: " << listNames(functions->names);
}

OwningOpRef<ModuleOp> attn::isolateFunction(ModuleOp module, StringRef name) {
  OwningOpRef<ModuleOp> copy = module.clone();
  for (auto function : llvm::make_early_inc_range(copy->getOps<func::FuncOp>()))
    if (function.getName() != name)
      function.erase();
  for (auto function : copy->getOps<func::FuncOp>())
    function.setPublic();
  return copy;
}
