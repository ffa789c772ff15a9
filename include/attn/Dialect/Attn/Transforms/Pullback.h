//===- Pullback.h - the pullback of a score region -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code of the score once more, and after it adjoints, from the last
// operation to the first (reverse mode: Griewank and Walther, "Evaluating
// Derivatives", section 3.2). Only values that depend on x, or on a capture
// with a gradient, have one; a read of such a capture becomes an
// attn.capture_add.
//
// Where captures are constants, the score is a function of x alone, and one
// number is its derivative: what goes back is dy times this number, what goes
// forward is tx times the same.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PULLBACK_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_PULLBACK_H

#include "attn/Support/LLVM.h"

namespace mlir {
class RewriterBase;
} // namespace mlir

namespace attn {

class AttentionBackwardOp;
class AttentionJvpOp;

/// Writes the pullback of the score region of `op`, which has none yet; there
/// stays none where dy goes back as it is. An operation without derivative is
/// an error, at its place.
mlir::LogicalResult buildPullback(mlir::RewriterBase &rewriter,
                                  AttentionBackwardOp op);

/// The same for the pushforward, in which captures are constants.
mlir::LogicalResult buildPushforward(mlir::RewriterBase &rewriter,
                                     AttentionJvpOp op);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PULLBACK_H
