//===- Passes.h - passes -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_WARP_TRANSFORMS_PASSES_H

#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace attn::warp {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_TRANSFORMS_PASSES_H
