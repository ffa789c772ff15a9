//===- ExpandVariants.h - sugar into regions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_EXPANDVARIANTS_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_EXPANDVARIANTS_H

#include "attn/Support/LLVM.h"

namespace mlir {
class RewriterBase;
} // namespace mlir

namespace attn {

class AttentionOp;

/// Replaces the operation by one whose `variants` have become part of its score
/// and mask regions; returns the new one, or the same where there was nothing
/// to expand.
AttentionOp expandVariants(RewriterBase &rewriter, AttentionOp op);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_EXPANDVARIANTS_H
