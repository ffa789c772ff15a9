//===- LoopChain.h - loops over consecutive blocks -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_LOOPCHAIN_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_LOOPCHAIN_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Support/BlockLoops.h"

#include <string>

namespace attn::warp {

/// One tile of the chain: its slot, and in each loop its copy, the operations
/// that compute the copied box from the induction variable, and the last
/// reader.
struct BufferedTile {
  AllocOp alloc;
  SmallVector<CopyOp> copies;
  SmallVector<SmallVector<Operation *>> slices;
  SmallVector<Operation *> lastReaders;
};

/// A tile that is copied once, before the loops.
struct EntryTile {
  AllocOp alloc;
  CopyOp copy;
  SmallVector<LoadFragOp> loads;
};

/// Loops over consecutive blocks, and what they copy.
struct LoopChain : BlockLoops {
  SmallVector<BufferedTile> tiles;
  SmallVector<EntryTile> entries;
};

/// The chain of a kernel; says why there is none.
FailureOr<LoopChain> matchLoopChain(KernelOp kernel, std::string &reason);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_LOOPCHAIN_H
