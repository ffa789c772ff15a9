//===- Passes.h - passes -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H

#include "attn/Support/LLVM.h"
#include "mlir/Pass/Pass.h"

namespace attn {
/// Vectors times the Jacobian (gradients), or the Jacobian times vectors
/// (tangents).
enum class DerivativeMode { VJP, JVP };

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PASSES_H
