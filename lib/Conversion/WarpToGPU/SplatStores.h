//===- SplatStores.h - tiles of one number to memory ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_SPLATSTORES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_SPLATSTORES_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/APInt.h"

namespace attn::warp {

/// Stores of tiles that are one number, constant and repeated to 32 bits.
struct SplatStores {
  llvm::DenseMap<Operation *, llvm::APInt> words;

  /// Reads a function before anything of it is lowered.
  static SplatStores plan(gpu::GPUFuncOp function);
};

void populateSplatStorePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns,
                                const SplatStores &stores);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_SPLATSTORES_H
