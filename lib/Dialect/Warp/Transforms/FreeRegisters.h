//===- FreeRegisters.h - what products leave to a lane -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_FREEREGISTERS_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_FREEREGISTERS_H

#include "attn/Dialect/Warp/IR/Warp.h"

namespace attn::warp {

/// The registers of a lane, of 32 bits, that hold a fragment: operands of
/// products are packed, elsewhere each element is a value by itself. 0 for what
/// is no fragment.
int64_t countRegisters(Type type);

/// How many registers of a lane are free for captured numbers that arrive
/// beside `products` in flight in the body of a role's loop: those that it does
/// not carry from step to step, that the products and rows that are loaded
/// before do not take, and that masks and functions of scores leave. At least a
/// few; all, outside of roles.
int64_t countFreeRegisters(Block *body, ArrayRef<MmaAsyncOp> products);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_FREEREGISTERS_H
