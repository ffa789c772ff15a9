//===- SharedMemory.h - addresses in shared memory --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_SHAREDMEMORY_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_SHAREDMEMORY_H

#include "attn/Layout/Swizzle.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"

namespace attn::warp {

/// The address (i32) of a byte of shared memory, for `op`'s kernel.
Value sharedAddress(OpBuilder &builder, Operation *op, int64_t offset,
                    int64_t alignment = layout::SharedTile().alignment());

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_SHAREDMEMORY_H
