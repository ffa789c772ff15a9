//===- GroupLoops.h - loops that differ from group to group -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_GROUPLOOPS_H
#define ATTN_DIALECT_WARP_IR_GROUPLOOPS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::warp {

/// Whether a value is computed from the number of a group.
bool dependsOnGroup(Value value);

/// The end of all blocks at which a loop passes over those of other groups.
enum class PassedEnd { Lower, Upper };

/// Where `loop` takes the items of blocks that only other groups need and gives
/// them back: all of its work, from or up to a block that depends on the group.
std::optional<PassedEnd> getPassedEnd(scf::ForOp loop);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_IR_GROUPLOOPS_H
