//===- Kernel.h - the kernel function and its launch ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_KERNEL_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_KERNEL_H

#include "Copies.h"
#include "Roles.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn::warp {

/// What the kernels are compiled for.
struct KernelTarget {
  StringRef chip, features;
};

/// The `warp.kernel`s of a host function, in order. One that is not in the
/// entry block is an error.
FailureOr<SmallVector<KernelOp>> findKernels(func::FuncOp host);

/// A kernel moved out of its host function.
struct OutlinedKernel {
  gpu::GPUFuncOp function;
  AwaitPlans awaits;
  StoreFragPlans storeFrags;
  RolePlan roles;
  /// Runs beside the kernel before it: all of its threads wait for that one
  /// when they end, idle blocks, too. The kernel after it waits for this alone.
  bool waitsAtEnd = false;
};

/// Moves `kernel` into a new `gpu.func` called `name`, with the arguments of
/// `host` and what it allocates, and launches it from `host`.
FailureOr<OutlinedKernel> outlineKernel(RewriterBase &rewriter,
                                        func::FuncOp host, KernelOp kernel,
                                        StringRef name,
                                        const KernelTarget &target);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_KERNEL_H
