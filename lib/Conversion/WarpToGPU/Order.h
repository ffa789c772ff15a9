//===- Order.h - integers are computed where they are used ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ORDER_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ORDER_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn::warp {

/// Moves integers to their first use: one element after the other.
void orderIntegers(gpu::GPUFuncOp function);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ORDER_H
