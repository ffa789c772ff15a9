//===- Parts.h - key blocks of a warpgroup ----------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_PARTS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_PARTS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn::warp {

/// Replaces what differs between the groups of a consumer by arithmetic.
void lowerParts(RewriterBase &rewriter, gpu::GPUFuncOp function);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_PARTS_H
