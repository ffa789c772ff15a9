//===- Meetings.h - where warps meet at a slot ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `warp.store_frag` to a slot is synchronous: all warps meet before it, so
// that nobody still reads what it overwrites, and after it, so that all see
// what was written. Where another barrier does as well, one of the two is left
// out:
//
// - before: since the last reader of the slot the warps have met, at an await
//   (the top of a step) or after another such store;
// - after: the next thing that touches shared memory is such a store to another
//   slot, after which they meet.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_MEETINGS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_MEETINGS_H

#include "Copies.h"

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn::warp {

/// The plans of a kernel's stores of fragments to slots.
StoreFragPlans planStoreFrags(KernelOp kernel, const AwaitPlans &awaits);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_MEETINGS_H
