//===- Turns.h - values that a turn passes on -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `warp.turn` says who may run, not when: its body belongs to the block
// around it. The rules of pending values and slots look through it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_TURNS_H
#define ATTN_DIALECT_WARP_IR_TURNS_H

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn::warp {

/// The block that an operation belongs to: outside all turns.
Block *getHomeBlock(Operation *op);

/// The operation that stands for `op` in `home`: `op` itself, or what holds it
/// (a turn, a branch, a loop); null if it stands elsewhere.
Operation *getAncestorIn(Block *home, Operation *op);

/// Whether `a` runs before `b`, both in `home` or in turns of it (or in regions
/// there: then the operation that holds it counts).
bool runsBefore(Block *home, Operation *a, Operation *b);

/// The uses of a value, and of the results of turns that yield it; the yields
/// themselves are left out.
SmallVector<OpOperand *> getUsesThroughTurns(Value value);

/// Where the value comes from: not a result of a turn.
Value getSourceThroughTurns(Value value);

/// Moves operations of one block, in their order, to a turn that stands where
/// the first one did and yields what others use.
void moveToTurn(RewriterBase &rewriter, ArrayRef<Operation *> ops);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_IR_TURNS_H
