//===- Recompute.h - what gradients compute again ---------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_RECOMPUTE_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_RECOMPUTE_H

#include "attn/Support/LLVM.h"

namespace attn {

class AttentionBackwardOp;

/// Checks that programs by the plan of `op` can compute again what it says, or
/// what the plan says, where one does, and that both say the same.
LogicalResult checkRecompute(AttentionBackwardOp op);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_RECOMPUTE_H
