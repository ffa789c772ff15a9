//===- Copies.h - slots, rings and the copies that fill them ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_COPIES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_COPIES_H

#include "Roles.h"

#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {

/// How `warp.await`s wait: for all but so many copy groups, or not at all,
/// where the next operation is an await that waits for both.
struct AwaitPlan {
  std::optional<int64_t> pending;
};
using AwaitPlans = llvm::DenseMap<Operation *, AwaitPlan>;

/// Where the warps meet for a `warp.store_frag` to a slot.
struct StoreFragPlan {
  bool meetsBefore = true, meetsAfter = true;
};
using StoreFragPlans = llvm::DenseMap<Operation *, StoreFragPlan>;

void populateCopyPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns, const AwaitPlans &awaits,
                          const StoreFragPlans &stores, RolePlan &roles);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_COPIES_H
