//===- Raise.cpp - the pipeline from plain graphs to attention -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Raise.h"

#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace attn;

void attn::buildRaisePipeline(OpPassManager &manager) {
  manager.addNestedPass<func::FuncOp>(createAttnNormalizeInput());
  manager.addNestedPass<func::FuncOp>(createConvertLinalgToAttn());
}

void attn::registerRaisePipelines() {
  PassPipelineRegistration<>(
      "attn-raise",
      "Graphs of linalg, tensor and arith that compute attention become "
      "attn.attention",
      buildRaisePipeline);
}
