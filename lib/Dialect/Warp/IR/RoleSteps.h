//===- RoleSteps.h - what a role does with items, in order ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_IR_ROLESTEPS_H
#define ATTN_LIB_DIALECT_WARP_IR_ROLESTEPS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include <vector>

namespace attn::warp {

/// A use of an item, or a loop with uses in it.
struct Step {
  Operation *op;
  Value ring;
  std::vector<Step> body;
};

/// The uses of a block, in order; turns are looked into. Emits an error if
/// there are some that stand in no loop of roles.
LogicalResult listSteps(Block *block, std::vector<Step> &steps);

/// W3 (d), for the list of the block that a `warp.narrow` stands in, and for
/// its loops.
LogicalResult verifyNarrowed(ArrayRef<Step> steps, Block *block);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_IR_ROLESTEPS_H
