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
#include "attn/Target/LiveRegisters.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>
#include <vector>

namespace attn {

/// Registers the back end that the functions below need, which call this. Not
/// while another thread registers one of another kind, or looks for one: LLVM
/// keeps them in a list without a lock (attn/Execute/Processor.h).
void initializeGPUBackend();

/// Kernels as LLVM IR for NVPTX, and then as PTX. Large kernels are modules of
/// their own, so that threads can work on them; which these are, and so the
/// code, does not depend on the number of threads.
class KernelCode {
public:
  /// Optimises a `gpu.module` of functions of the llvm dialect at the level of
  /// its `#nvvm.target`. The error names what is wrong with it.
  static FailureOr<KernelCode> translate(gpu::GPUModuleOp kernels,
                                         unsigned threads);
  /// LiveRegisters.h; nothing if there is no such kernel.
  std::optional<RegisterLiveness> countLiveRegisters(StringRef kernel) const;
  /// Takes a kernel out.
  void drop(StringRef kernel);
  /// All kernels in one module.
  std::string print() const;
  /// The PTX text. Once: it takes the IR. `reducesStrength`: multiples of a
  /// number that are added are made of each other, and values are numbered once
  /// more, which takes LLVM a while; always, where warps multiply.
  FailureOr<std::string> emitPTX(unsigned threads, bool reducesStrength);

private:
  /// Some of the kernels.
  struct Part {
    // Before what is made in it.
    std::unique_ptr<llvm::LLVMContext> context =
        std::make_unique<llvm::LLVMContext>();
    std::unique_ptr<llvm::Module> module;
    std::unique_ptr<llvm::TargetMachine> machine;
    SmallString<0> ptx;
  };
  explicit KernelCode(gpu::GPUModuleOp kernels) : kernels(kernels) {}

  gpu::GPUModuleOp kernels;
  std::vector<Part> parts;
};

} // namespace attn

#endif // ATTN_TARGET_PTX_H
