//===- SharedMemory.cpp - addresses in shared memory ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedMemory.h"

#include "Integers.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::warp;

/// The block's dynamic shared memory: an external array without a size, whose
/// alignment `gpu.dynamic_shared_memory` could not ask for.
static LLVM::GlobalOp sharedMemory(OpBuilder &builder, Operation *op,
                                   int64_t alignment) {
  auto module = op->getParentOfType<gpu::GPUModuleOp>();
  constexpr StringLiteral name = "attn_shared_memory";
  if (auto global = module.lookupSymbol<LLVM::GlobalOp>(name)) {
    if (global.getAlignment().value_or(0) < static_cast<uint64_t>(alignment))
      global.setAlignment(alignment);
    return global;
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  return LLVM::GlobalOp::create(
      builder, module.getLoc(),
      LLVM::LLVMArrayType::get(builder.getI8Type(), 0),
      /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
      alignment, static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
}

Value attn::warp::sharedAddress(OpBuilder &builder, Operation *op,
                                int64_t offset, int64_t alignment) {
  Location loc = op->getLoc();
  Value memory = LLVM::AddressOfOp::create(
      builder, loc, sharedMemory(builder, op, alignment));
  Integers ints(builder, loc);
  return ints.add(
      LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), memory),
      offset);
}
