//===- KernelList.h - the kernels of a tile program -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_KERNELLIST_H
#define ATTN_PIPELINES_KERNELLIST_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// The plan of the attention in `function`, or of the first of its kernels;
/// null without one.
PlanAttr findPlan(func::FuncOp function);

/// Lists the kernels of a tile program, a variant of what `artifact` describes:
/// their names and plans, and which results each writes.
void describeKernels(func::FuncOp function, const Artifact &artifact,
                     VariantInfo &variant);

} // namespace attn

#endif // ATTN_PIPELINES_KERNELLIST_H
