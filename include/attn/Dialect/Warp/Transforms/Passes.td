//===- Passes.td - passes -*- tablegen -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_TRANSFORMS_PASSES_TD
#define ATTN_DIALECT_WARP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // ATTN_DIALECT_WARP_TRANSFORMS_PASSES_TD
