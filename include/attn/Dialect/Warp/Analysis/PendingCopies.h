//===- PendingCopies.h - how many copies may be in flight -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `warp.await` has to wait until the copy of its item is complete. What the
// hardware offers is weaker: copies form groups that complete in the order in
// which they were issued, and one can wait until at most N groups are pending
// (cp.async.wait_group N). Every `warp.copy_async` is one group, also when its
// condition is false, so
//
//   N = number of warp.copy_async executed after the one that issued the item
//       and before the await.
//
// A smaller number is also right, it only waits for more. N is not written
// anywhere; this file derives it from the program.
//
// The item's number is base + offset (RingItem). From the await we walk
// backwards through the program and count copies until we meet the one of our
// item. Where control flow joins we take both ways and the smaller count:
//
// - At the start of the body of `scf.for %n = %lo to %hi step 1` we come from
//   the end of the body, one iteration earlier: n is the successor of that
//   iteration's n, so the item n + j is (n' + 1) + j. Or from the front of the
//   loop: n = lo, the item is lo + j.
// - After `scf.for %n = %a to %b step 1`, looking for the item b + j, we come
//   from its last iteration, n = b - 1: the item is n + 1 + j. Or the loop ran
//   no iteration; then, as loops in a chain cover one range [lo, a), [a, b),
//   [b, hi), a = b and the item is a + j.
// - Other operations with regions are stepped over and counted as no copy.
//
// If we meet the start of the kernel the answer is 0: wait for everything.
//
// Example, two rings of depth 2, prologue K0 V0, body: await K[n]; copy
// K[n+1]; await V[n]; copy V[n+1]. From `await K[n]` back: the front of the
// loop gives V0 (1), K0: found, 1. The previous iteration gives V[n'+1] = V[n]
// (1), K[n'+1] = K[n]: found, 1. So wait_group 1. From `await V[n]`: K[n+1]
// (1), then V: found, 1.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_ANALYSIS_PENDINGCOPIES_H
#define ATTN_DIALECT_WARP_ANALYSIS_PENDINGCOPIES_H

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn::warp {

/// How many copies younger than the awaited item may be in flight when the
/// await is reached: the N of a group wait. Fails if nothing ever fills the
/// ring, which W3 refuses.
FailureOr<int64_t> countYoungerCopies(AwaitOp await);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_ANALYSIS_PENDINGCOPIES_H
