//===- Pipelines.h - the compiler as a function -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_PIPELINES_H
#define ATTN_PIPELINES_PIPELINES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Registers every dialect (with external models) the compiler may meet.
void registerDialects(DialectRegistry &registry);

/// Registers the project's passes and named pipelines with the global registry.
void registerPassesAndPipelines();

} // namespace attn

#endif // ATTN_PIPELINES_PIPELINES_H
