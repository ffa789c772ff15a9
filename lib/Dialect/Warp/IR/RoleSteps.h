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
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <vector>

namespace attn::warp {

/// An item of a ring or mailbox that is filled, or awaited.
struct ItemUse {
  Value ring, item;
  bool isFill;
};
std::optional<ItemUse> getItemUse(Operation *op);

/// A use of an item, or a loop with uses in it.
struct Step {
  Operation *op;
  std::optional<ItemUse> use;
  std::vector<Step> body;
  /// The last one of a chain of loops that counts as one; null for one loop.
  Operation *last = nullptr;
};

/// The uses of a block, in order; turns are looked into. Emits an error if
/// there are some that stand in no loop of roles.
LogicalResult listSteps(Block *block, std::vector<Step> &steps);

/// Whether `next` is a loop that starts where `loop` ends, at a block that
/// depends on the group.
bool isContinued(const Step &loop, const Step &next);

/// What is left of a list if only some uses count.
std::vector<Step> filterSteps(ArrayRef<Step> steps,
                              llvm::function_ref<bool(const ItemUse &)> counts);

/// A role with its list.
struct RoleSteps {
  RoleOp role;
  std::vector<Step> steps;
};

/// W3 (a): what two roles have in common is in the same order in both, and all
/// of it in one order.
LogicalResult verifyOrder(KernelOp kernel, ArrayRef<RoleSteps> roles);

/// W3 (d), for a list and for its loops.
LogicalResult verifyGroupLoops(ArrayRef<Step> steps);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_IR_ROLESTEPS_H
