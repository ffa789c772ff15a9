//===- DeadOps.h - what nobody uses any more --------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_DEADOPS_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_DEADOPS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// Erases the operations of a block, not those of inner ones, that have no
/// effects and whose results are used by nothing that stays.
void eraseDeadOps(RewriterBase &rewriter, Block *block);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_DEADOPS_H
