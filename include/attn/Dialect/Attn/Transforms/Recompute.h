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

#include <cstdint>
#include <optional>

namespace attn {

class AttentionBackwardOp;
class PlanAttr;

/// Checks that programs by the plan of `op` can compute again what it says, or
/// what the plan says, where one does, and that both say the same.
LogicalResult checkRecompute(AttentionBackwardOp op);

/// Up to how many queries two programs are faster than the one by `plan` that
/// would compute the gradients of `op` for many, where that was measured;
/// nothing where it was not, where one program cannot, or where `op` says how
/// many there are.
std::optional<int64_t> findMostQueriesOfTwo(AttentionBackwardOp op,
                                            PlanAttr plan);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_RECOMPUTE_H
