//===- KernelList.cpp - the kernels of a tile program ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/KernelList.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/Identifier.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <set>

using namespace mlir;
using namespace attn;

static std::string print(PlanAttr plan) {
  std::string text;
  llvm::raw_string_ostream(text) << Attribute(plan);
  return text;
}

PlanAttr attn::findPlan(func::FuncOp function) {
  PlanAttr plan;
  function.walk([&](Operation *op) {
    if (auto scored = dyn_cast<ScoredOp>(op))
      plan = scored.getPlanAttr();
    else if (auto kernel = dyn_cast<tile::KernelOp>(op))
      plan = kernel.getPlan();
    return plan ? WalkResult::interrupt() : WalkResult::advance();
  });
  return plan;
}

/// The results that `kernel` writes, by their numbers as arguments.
static std::vector<int64_t> findResults(tile::KernelOp kernel,
                                        const Artifact &artifact) {
  std::set<int64_t> numbers;
  kernel.walk([&](Operation *op) {
    Value memory;
    if (auto store = dyn_cast<tile::StoreOp>(op))
      memory = store.getView();
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      memory = store.getMemRef();
    auto argument = dyn_cast_or_null<BlockArgument>(memory);
    if (argument && argument.getOwner()->isEntryBlock() &&
        artifact.arguments[argument.getArgNumber()].isOutput)
      numbers.insert(argument.getArgNumber());
  });
  return {numbers.begin(), numbers.end()};
}

void attn::describeKernels(func::FuncOp function, const Artifact &artifact,
                           VariantInfo &variant) {
  variant.kernels.clear();
  for (auto kernel : function.getOps<tile::KernelOp>()) {
    KernelInfo &info = variant.kernels.emplace_back();
    info.entry = ptxIdentifier(kernel.getSymName().str());
    info.plan = print(kernel.getPlan());
    info.results = findResults(kernel, artifact);
  }
}
