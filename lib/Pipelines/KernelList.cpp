//===- KernelList.cpp - the kernels of a tile program ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/KernelList.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/Identifier.h"

#include <set>

using namespace mlir;
using namespace attn;

static std::string print(PlanAttr plan) {
  std::string text;
  llvm::raw_string_ostream(text) << Attribute(plan);
  return text;
}

std::string attn::describePlan(func::FuncOp function) {
  std::string text;
  function.walk([&](ScoredOp op) {
    if (PlanAttr plan = op.getPlanAttr())
      text = print(plan);
  });
  return text;
}

/// The results that `kernel` writes, by their numbers as arguments.
static std::vector<int64_t> findResults(tile::KernelOp kernel,
                                        const Artifact &artifact) {
  std::set<int64_t> numbers;
  kernel.walk([&](tile::StoreOp store) {
    auto argument = dyn_cast<BlockArgument>(store.getView());
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
