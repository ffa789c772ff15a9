//===- ExpandMath.h - operations in terms of others -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_EXPANDMATH_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_EXPANDMATH_H

#include "attn/Support/LLVM.h"

namespace mlir {
class RewriterBase;
} // namespace mlir

namespace attn {

class ScoredOp;

/// Writes operations of the regions that not every target has instructions or
/// functions for in terms of others: see the pass attn-expand-math.
void expandMath(mlir::RewriterBase &rewriter, ScoredOp op);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_EXPANDMATH_H
