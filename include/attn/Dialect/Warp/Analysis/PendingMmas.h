//===- PendingMmas.h - which products are in flight -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `warp.wait` has to wait for its product. What the hardware offers is
// weaker: products complete in the order of issue, and one can wait until at
// most N of them are unfinished (wgmma.wait_group N). By W1 everything issued
// in a block is waited for in that block, so
//
//   N = number of products issued after ours, in this block (or turns of it)
//   and
//       before the wait, that are not yet waited for.
//
// Products in regions between the two (a branch, a loop) are waited for there.
//
// Example: issue S; issue O; wait S (N = 1); …; wait O (N = 0).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_ANALYSIS_PENDINGMMAS_H
#define ATTN_DIALECT_WARP_ANALYSIS_PENDINGMMAS_H

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn::warp {

/// The product that a wait waits for.
MmaAsyncOp getIssue(WaitOp wait);

/// The products issued in the block of the wait, before it, whose own waits do
/// not stand before it; in the order of issue. That of the wait is among them,
/// and its registers and those of all others belong to the tensor cores until
/// then.
SmallVector<MmaAsyncOp> getInFlight(WaitOp wait);

/// The N of a group wait.
int64_t countYoungerMmas(WaitOp wait);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_ANALYSIS_PENDINGMMAS_H
