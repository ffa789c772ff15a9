//===- Parts.h - key blocks that a warpgroup passes over --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_PARTS_H
#define ATTN_DIALECT_WARP_IR_PARTS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::warp {

/// Which end of the blocks a loop passes over.
enum class PassedEnd { Lower, Upper };

/// A loop over the blocks of a tile that are not those of the own rows.
struct PassedBlocks {
  NarrowOp narrow;
  PassedEnd end;
};

/// What `loop` passes over; nothing if it goes through own blocks.
std::optional<PassedBlocks> getPassedBlocks(scf::ForOp loop);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_IR_PARTS_H
