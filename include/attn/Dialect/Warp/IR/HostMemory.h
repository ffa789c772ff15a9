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

} // namespace attn

#endif // ATTN_DIALECT_WARP_IR_HOSTMEMORY_H
