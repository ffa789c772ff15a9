//===- JoinedRings.h - rings whose items come together ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of a gradient takes four items, q, d_o and a row of numbers for each,
// which are copied one after the other and given back together. With barriers
// of their own, warps wait for each of them, one wait of some fifty cycles
// after the other; joined rings have one pair of barriers for each slot, and
// the first wait is for all. On an H100 the kernel of d_key and d_value takes
// 0.97 to 0.99 of the time, with an arrival for each ring. Now warps arrive
// once, when they release the last.
//
// Rings are joined if they have one depth, one role that fills them by copies,
// the same roles that drain them, and in every block of operations that uses
// one of them
//
// (1) each is filled or awaited exactly once, with an item of the same number,
//     and no fill has a condition;
// (2) what is awaited is released in the same block;
// (3) between the first and the last fill no other ring or mailbox is used.
//
// Why this adds no deadlock to the proof of RoleProtocol.cpp: by (3) the fills
// of a block may count as one, the awaits as one at the place of the first. A
// warp at that await has released all earlier items of all these rings, by (1)
// and (2), and the fill waits for nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_JOINEDRINGS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_JOINEDRINGS_H

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn::warp {

struct JoinedRings {
  /// Rings that share the barriers of the first, two or more.
  SmallVector<SmallVector<RingOp>> groups;
  /// Copies and awaits that come after the first of their group in a block,
  /// which has waited for all.
  llvm::DenseSet<Operation *> followers;
  /// Of the releases of joined rings: the last of their group in the block,
  /// which arrives for all.
  llvm::DenseMap<Operation *, Operation *> arrivals;
};

JoinedRings findJoinedRings(KernelOp kernel);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_JOINEDRINGS_H
