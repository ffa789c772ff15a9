//===- LaunchRule.h - how a kernel is launched, as plain data -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_LAUNCHRULE_H
#define ATTN_TARGET_LAUNCHRULE_H

#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Reads every `gpu.launch_func` of `host` (what `convert-warp-to-gpu` left)
/// into the artifact: kernels and workspaces (what the host allocates) of the
/// variant that `host` is, alignment of the arguments. The grid is an
/// expression over sizes of arguments and scalars; what cannot be said as a
/// LaunchExpr is an error.
LogicalResult describeLaunch(func::FuncOp host, Artifact &artifact,
                             VariantInfo &variant);

} // namespace attn

#endif // ATTN_TARGET_LAUNCHRULE_H
