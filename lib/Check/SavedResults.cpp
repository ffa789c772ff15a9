//===- SavedResults.cpp - what gradients read of the forward - -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Check/SavedResults.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pipelines/Signature.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;
using namespace attn;
using attn::runtime::Status;

/// The forward over the operands that it shares with its gradients, and with
/// their regions.
static AttentionOp createForward(OpBuilder &b, AttentionBackwardOp op) {
  auto forward = AttentionOp::create(
      b, op.getLoc(), op.getOutput().getType(), op.getLse().getType(),
      op.getQuery(), op.getKey(), op.getValue(), op.getSink(),
      op.getDropoutKey(), op.getCaptures(), op.getScaleAttr(),
      op.getDropoutPAttr(), op.getSortedCapturesAttr(),
      /*variants=*/ArrayAttr(), op.getNumericsAttr(), PlanAttr());
  forward.getScore().takeBody(op.getScore());
  forward.getMask().takeBody(op.getMask());
  return forward;
}

/// Makes a function of gradients return output and lse.
static void returnForward(func::FuncOp function, AttentionBackwardOp op) {
  OpBuilder b(op);
  AttentionOp forward = createForward(b, op);
  function.getBody().front().getTerminator()->setOperands(
      forward->getResults());
  function.removeResAttrsAttr();
  function.setFunctionType(b.getFunctionType(function.getArgumentTypes(),
                                             forward->getResultTypes()));
  op.erase();
}

/// Output or lse, as an argument.
static bool isSaved(const ArgumentInfo &info) {
  return !info.isOutput &&
         (info.is(ArgumentRole::Output) || info.is(ArgumentRole::Lse));
}

bool attn::readsForward(const Artifact &manifest) {
  return llvm::any_of(manifest.arguments, isSaved);
}

FailureOr<HostProgram> attn::compileForward(ModuleOp module, StringRef name,
                                            HostOptions options) {
  FailureOr<func::FuncOp> function = findFunction(module, name);
  if (failed(function))
    return failure();
  OwningOpRef<ModuleOp> copy = module.clone();
  auto forward = copy->lookupSymbol<func::FuncOp>(function->getName());
  AttentionBackwardOp backward;
  forward.walk([&](AttentionBackwardOp op) { backward = op; });
  returnForward(forward, backward);
  options.kind = HostOptions::Kind::OracleF64;
  return HostProgram::compile(*copy, forward.getName(), options);
}

Status attn::fillSavedResults(const HostProgram &forward,
                              const Artifact &manifest,
                              const OperandRequest &request,
                              Operands &operands) {
  std::optional<HostTensor> output, lse;
  runtime::Arguments given = operands.arguments(), arguments;
  for (auto [info, argument, tensor] :
       llvm::zip_equal(manifest.arguments, given, operands.tensors)) {
    if (info.isOutput)
      continue;
    arguments.push_back(argument);
    if (!isSaved(info))
      continue;
    if (!info.view.empty() && !request.files.count(info.name))
      return Status::error("'" + info.name +
                           "' is reshaped before it is read, so what the "
                           "forward gives is not known: give --input=" +
                           info.name + "=FILE");
    (info.is(ArgumentRole::Lse) ? lse : output)
        .emplace(ElementKind::F64, tensor->sizes());
  }
  arguments.push_back(output->argument());
  arguments.push_back(lse->argument());
  if (Status status = forward.invoke(arguments); !status.ok())
    return status;
  for (auto [info, tensor] :
       llvm::zip_equal(manifest.arguments, operands.tensors))
    if (isSaved(info) && !request.files.count(info.name))
      tensor->assign((info.is(ArgumentRole::Lse) ? lse : output)->values());
  return Status();
}
