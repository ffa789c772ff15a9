//===- PTX.h - kernels as LLVM IR and PTX -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_PTX_H
#define ATTN_TARGET_PTX_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace attn {

/// Registers the back end that the functions below need, which call this. Not
/// while another thread registers one of another kind, or looks for one: LLVM
/// keeps them in a list without a lock (attn/Execute/Processor.h).
void initializeGPUBackend();

/// A `gpu.module` of functions of the llvm dialect as LLVM IR for NVPTX,
/// optimised at the level of its `#nvvm.target`. The error names what is
/// wrong with the module.
FailureOr<std::unique_ptr<llvm::Module>>
translateKernels(gpu::GPUModuleOp kernels, llvm::LLVMContext &context);

/// The PTX text of a module of `translateKernels`.
FailureOr<std::string> emitPTX(gpu::GPUModuleOp kernels, llvm::Module &module);

} // namespace attn

#endif // ATTN_TARGET_PTX_H
