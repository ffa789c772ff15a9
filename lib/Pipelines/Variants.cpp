//===- Variants.cpp - a function for each plan, one image -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Variants.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace attn;

/// The plans of the cases, each once, and the rule over their numbers.
static SmallVector<PlanAttr> numberPlans(ArrayRef<plan::PlanCase> cases,
                                         VariantRule &rule) {
  SmallVector<PlanAttr> plans;
  std::vector<VariantRule::Case> numbered;
  for (const plan::PlanCase &entry : cases) {
    auto *found = llvm::find(plans, entry.plan);
    numbered.push_back({entry.condition, found - plans.begin()});
    if (found == plans.end())
      plans.push_back(entry.plan);
  }
  rule = plans.size() == 1 ? VariantRule() : VariantRule(std::move(numbered));
  return plans;
}

std::optional<RulePart>
attn::keepVariant(SmallVectorImpl<plan::PlanCase> &cases,
                  const std::optional<LaunchQuantities> &sizes,
                  std::optional<size_t> wanted) {
  VariantRule rule;
  SmallVector<PlanAttr> plans = numberPlans(cases, rule);
  if (plans.size() == 1 || (!sizes && !wanted))
    return std::nullopt;
  size_t variant = wanted ? *wanted : rule.choose(*sizes);
  cases.assign({plan::PlanCase{LaunchCondition(), plans[variant]}});
  return RulePart{std::move(rule), static_cast<int64_t>(variant)};
}

SmallVector<std::string> attn::splitVariants(func::FuncOp function,
                                             ArrayRef<plan::PlanCase> cases,
                                             Artifact &artifact) {
  SmallVector<PlanAttr> plans = numberPlans(cases, artifact.rule);
  artifact.variants.assign(plans.size(), VariantInfo());
  SmallVector<func::FuncOp> functions = {function};
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  for (size_t number = 1; number < plans.size(); ++number) {
    func::FuncOp copy = function.clone();
    copy.setName((function.getName() + "_variant" + Twine(number)).str());
    symbols.insert(copy);
    functions.push_back(copy);
  }
  SmallVector<std::string> names;
  for (auto [variant, plan, info] :
       llvm::zip_equal(functions, plans, artifact.variants)) {
    names.push_back(variant.getName().str());
    llvm::raw_string_ostream(info.plan) << plan;
    variant.walk([plan = plan](ScoredOp op) { op.setPlanAttr(plan); });
  }
  if (plans.size() > 1)
    function.walk([&](ScoredOp op) {
      op->emitRemark() << "compiled in " << plans.size()
                       << " variants: " << plan::printPlanCases(cases);
    });
  return names;
}

/// Whether `kernels` has what does the work of `other`, of another module: a
/// relayout of such elements, or the name of shared memory, which is then
/// aligned for both. Names of other kernels are those of their functions, and
/// differ.
static bool hasSame(gpu::GPUModuleOp kernels, Operation &other) {
  if (auto memory = dyn_cast<LLVM::GlobalOp>(other)) {
    auto known = kernels.lookupSymbol<LLVM::GlobalOp>(memory.getSymName());
    if (known && memory.getAlignment() > known.getAlignment())
      known.setAlignment(memory.getAlignment());
    return known != nullptr;
  }
  StringRef relayout = warp::WarpDialect::kRelayoutAttrName;
  return other.hasAttr(relayout) &&
         llvm::any_of(kernels.getOps<gpu::GPUFuncOp>(), [&](Operation *op) {
           return op->getAttr(relayout) == other.getAttr(relayout);
         });
}

void attn::joinKernels(ModuleOp module) {
  auto modules = llvm::to_vector(module.getOps<gpu::GPUModuleOp>());
  gpu::GPUModuleOp first = modules.front();
  for (gpu::GPUModuleOp other : ArrayRef(modules).drop_front()) {
    for (Operation &op : llvm::make_early_inc_range(*other.getBody()))
      if (!hasSame(first, op))
        op.moveBefore(first.getBody(), first.getBody()->end());
    other.erase();
  }
  module.walk([&](gpu::LaunchFuncOp launch) {
    launch.setKernelAttr(SymbolRefAttr::get(
        first.getNameAttr(), {FlatSymbolRefAttr::get(launch.getKernelName())}));
  });
}
