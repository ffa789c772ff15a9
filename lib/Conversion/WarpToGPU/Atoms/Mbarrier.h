//===- Mbarrier.h - barriers in shared memory -------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MBARRIER_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MBARRIER_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// A PTX statement with i32 inputs and no result; it touches memory.
void emitStatement(OpBuilder &builder, Location loc, StringRef text,
                   ValueRange operands = {});

/// Sets up the barrier at an address (i32) for `count` arrivals.
void emitBarrierInit(OpBuilder &builder, Location loc, Value barrier,
                     int64_t count);
/// Makes the set-up barriers known to TMA.
void emitBarrierInitFence(OpBuilder &builder, Location loc);
/// Whether the phase of a parity (i32) is complete (i1).
Value emitBarrierTest(OpBuilder &builder, Location loc, Value barrier,
                      Value parity);
/// Waits until the phase of a parity (i32) is complete; not where `isComplete`,
/// if given, says that it is.
void emitBarrierWait(OpBuilder &builder, Location loc, Value barrier,
                     Value parity, Value isComplete = {});
/// One arrival, by lane 0 of the warp.
void emitBarrierArrive(OpBuilder &builder, Location loc, Value barrier);
/// One arrival, by a lane of the warp, that also expects `bytes` by TMA.
void emitBarrierExpect(OpBuilder &builder, Location loc, Value barrier,
                       int64_t bytes);
/// What this thread wrote to shared memory is known to wgmma and TMA.
void emitProxyFence(OpBuilder &builder, Location loc);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MBARRIER_H
