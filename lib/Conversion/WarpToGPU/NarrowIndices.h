//===- NarrowIndices.h - numbers that 32 bits hold --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_NARROWINDICES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_NARROWINDICES_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn::warp {

/// Computes in 32 bits what a kernel, whose operations on fragments stand as
/// they are, computes of indices that surely fit: bounds of blocks and loops.
/// An index takes two registers, and its minimum four instructions.
LogicalResult narrowIndices(gpu::GPUFuncOp function);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_NARROWINDICES_H
