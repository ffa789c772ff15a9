//===- Turns.h - warpgroups one after the other -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_TURNS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_TURNS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn::warp {

/// Named barriers: 0 is that of the block, then come those of turns and of
/// warpgroups, one for each group.
inline constexpr int64_t firstTurnBarrier = 1, firstGroupBarrier = 8;
/// Groups that have both.
inline constexpr int64_t maxGroups = firstGroupBarrier - firstTurnBarrier;

/// Replaces turns by their bodies between named barriers.
LogicalResult lowerTurns(RewriterBase &rewriter, gpu::GPUFuncOp function);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_TURNS_H
