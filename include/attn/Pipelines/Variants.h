//===- Variants.h - a function for each plan, one image ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_VARIANTS_H
#define ATTN_PIPELINES_VARIANTS_H

#include "attn/Plan/ChoosePlans.h"
#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Leaves of `cases` the plan that is variant number `wanted` of their rule
/// alone, or the one for `sizes` where no number is given; says which one of
/// which rule. Nothing if there is one plan, or neither is given.
std::optional<RulePart>
keepVariant(SmallVectorImpl<plan::PlanCase> &cases,
            const std::optional<LaunchQuantities> &sizes,
            std::optional<size_t> wanted);

/// Gives the attention of `function` the first plan of `cases`, and makes
/// copies of the function, `@NAME_variant1`, …, for the others: the variants of
/// `artifact`, whose rule follows the cases. Returns the names of the
/// functions. A remark lists the plans where there are several.
SmallVector<std::string> splitVariants(func::FuncOp function,
                                       ArrayRef<plan::PlanCase> cases,
                                       Artifact &artifact);

/// Moves the kernels of all functions of `module` into the first gpu.module, so
/// that variants are one image; what two of them have alike is there once.
void joinKernels(ModuleOp module);

} // namespace attn

#endif // ATTN_PIPELINES_VARIANTS_H
