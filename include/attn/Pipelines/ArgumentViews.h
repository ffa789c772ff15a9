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

#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// For each dimension of a value the parts of dimensions of another that it
/// counts through.
using ViewParts = std::vector<std::vector<ViewPart>>;

/// How `value` is made of a block argument by reshapes and transposes alone.
struct TracedView {
  Value source;
  ViewParts parts;

  /// `value` is the source itself.
  bool isWhole() const;
};

/// Follows `value` through tensor.expand_shape, tensor.collapse_shape,
/// linalg.transpose and tensor.cast; fails where it cannot say what it sees.
FailureOr<TracedView> traceView(Value value);

/// The reverse of a trace: for each dimension of the source, the parts of the
/// value's dimensions, which have `sizes`. Fails where no strides say it.
FailureOr<ViewParts> invertView(const TracedView &view, ArrayRef<int64_t> sizes,
                                int64_t sourceRank);

/// Gives `function`, with one operation of attention, the arguments and results
/// that the attention has, and takes out the reshapes and transposes in
/// between.
LogicalResult absorbArgumentViews(func::FuncOp function);

} // namespace attn

#endif // ATTN_PIPELINES_ARGUMENTVIEWS_H
