//===- CopiedTiles.h - copies and who reads them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_COPIEDTILES_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_COPIEDTILES_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Support/RoleRegisters.h"

#include <string>

namespace attn::warp {

/// A copy and what reads its tile: first and last, operations of its block.
struct CopiedTile {
  CopyOp copy;
  AllocOp alloc;
  SmallVector<Operation *> readers;
  Operation *first = nullptr, *last = nullptr;
  /// All readers stand in the block of the copy itself.
  bool isLocal = true;
  /// It is the transposed right operand of its first reader.
  bool isTransposed = false;
};

/// The copies of a kernel without roles, in order; says what is in the way.
FailureOr<SmallVector<CopiedTile>> matchCopiedTiles(KernelOp kernel,
                                                    std::string &reason);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_COPIEDTILES_H
