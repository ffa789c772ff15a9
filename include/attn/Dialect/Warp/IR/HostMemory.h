//===- HostMemory.h - memory that the host function allocates -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_HOSTMEMORY_H
#define ATTN_DIALECT_WARP_IR_HOSTMEMORY_H

#include "attn/Support/LLVM.h"

namespace attn {

/// On a `memref.alloc` of a host function: all bytes are zero when the first
/// kernel starts.
inline constexpr llvm::StringLiteral kZeroedAttrName = "warp.zeroed";

/// Beside it: all bytes are zero again when the last kernel has ended, so that
/// the next launch may find them so.
inline constexpr llvm::StringLiteral kRestoredAttrName = "warp.restored";

} // namespace attn

#endif // ATTN_DIALECT_WARP_IR_HOSTMEMORY_H
