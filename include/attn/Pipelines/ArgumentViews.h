//===- ArgumentViews.h - arguments in other dimensions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A graph that was raised may have arguments of rank 2, 3 or 5, or with the
// heads inside, and reshapes and transposes between them and the attention.
// These move no element: kernels see the arguments in four dimensions, as the
// attention does, and the launch says where they lie.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_ARGUMENTVIEWS_H
#define ATTN_PIPELINES_ARGUMENTVIEWS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Gives `function`, with one operation of attention, the arguments and results
/// that the attention has, and takes out the reshapes and transposes in
/// between.
LogicalResult absorbArgumentViews(func::FuncOp function);

} // namespace attn

#endif // ATTN_PIPELINES_ARGUMENTVIEWS_H
