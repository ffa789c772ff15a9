//===- FragmentGroups.h - fragments that are spread alike -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic, branches, loops and packed memory want fragments in one grid of
// warps: these are a group. Products tie their accumulator and their result
// alone, as operands lie in slots, or may. A splat has the grid of each use.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_FRAGMENTGROUPS_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_FRAGMENTGROUPS_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::warp {

struct FragmentGroup {
  SmallVector<Value> values;
  SmallVector<OpOperand *> splats;    // uses beside values of the group
  SmallVector<MmaOp> products;        // whose results are in it
  SmallVector<ConvertOp> converts;    // of values in it
  SmallVector<StoreFragOp> exchanges; // likewise
  /// Why the warps must be stacked along the rows; empty if they need not be.
  std::string obstacle;
};

/// The groups of the kernels of a function, in their order.
std::vector<FragmentGroup> collectFragmentGroups(func::FuncOp function);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_FRAGMENTGROUPS_H
