//===- TracedView.h - tensors that others are views of -------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reshapes and transposes move no element: what they give is another tensor,
// seen in other dimensions. Kernels take strides, and see what they like.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_ANALYSIS_TRACEDVIEW_H
#define ATTN_DIALECT_ATTN_ANALYSIS_TRACEDVIEW_H

#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"

namespace attn {

/// Whether an operation gives the elements of its first operand, all of them.
bool isView(Operation *op);

/// For each dimension of a value the parts of dimensions of another that it
/// counts through.
using ViewParts = std::vector<std::vector<ViewPart>>;

/// How `value` is made of `source` by reshapes and transposes alone.
struct TracedView {
  Value source;
  ViewParts parts;

  /// `value` is the source itself.
  bool isWhole() const;
};

/// Follows `value` through tensor.expand_shape, tensor.collapse_shape,
/// linalg.transpose and tensor.cast, to `source` if there is one and else as
/// far as it goes; fails where it cannot say what it sees.
FailureOr<TracedView> traceView(Value value, Value source = {});

/// The reverse of a trace: for each dimension of the source, the parts of the
/// value's dimensions, which have `sizes`. Fails where no strides say it.
FailureOr<ViewParts> invertView(const TracedView &view, ArrayRef<int64_t> sizes,
                                int64_t sourceRank);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_ANALYSIS_TRACEDVIEW_H
