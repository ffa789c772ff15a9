//===- Engine.h - LLVM IR compiled into this process -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_ENGINE_H
#define ATTN_EXECUTE_ENGINE_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include <memory>

namespace mlir {
class ExecutionEngine;
} // namespace mlir

namespace attn {

/// Compiles a module in the llvm dialect for `processor` (Processor.h), at
/// `optimization` as in `-O2`. The code calls the C library and the library of
/// mathematics, nothing else. What is wrong is said at `module`.
FailureOr<std::unique_ptr<ExecutionEngine>>
createHostEngine(ModuleOp module, unsigned optimization, StringRef processor);

} // namespace attn

#endif // ATTN_EXECUTE_ENGINE_H
