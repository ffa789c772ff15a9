//===- PassedBlocks.h - items that other groups use -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_PASSEDBLOCKS_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_PASSEDBLOCKS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::warp {

/// Builds the loops over blocks that groups pass over; where the rings do not
/// allow it all groups go through all blocks, and `reason` says why. The items
/// have no numbers yet.
void passOverBlocks(RewriterBase &rewriter, RoleOp consumer,
                    std::string &reason);

/// Makes the bounds of a group arithmetic on its number.
void expandGroupBounds(RewriterBase &rewriter, RoleOp consumer);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_PASSEDBLOCKS_H
