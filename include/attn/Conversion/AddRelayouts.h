//===- AddRelayouts.h - kernels that copy tensors -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ADDRELAYOUTS_H
#define ATTN_CONVERSION_ADDRELAYOUTS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn {

/// Adds a kernel that copies a tensor of rank 4 and of elements of that many
/// bytes from any layout into any other; what it is says `warp.relayout`.
gpu::GPUFuncOp addRelayout(gpu::GPUModuleOp module, StringRef name,
                           int64_t elementBytes);

} // namespace attn

#endif // ATTN_CONVERSION_ADDRELAYOUTS_H
