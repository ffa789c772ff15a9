//===- Products.h - products of tiles, by their atoms -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_PRODUCTS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_PRODUCTS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace attn::warp {

/// Products by their number, what each wait has to hold, and the registers as
/// the lowering goes along.
struct ProductsInFlight {
  struct Registers {
    SmallVector<Value> accumulators, left;
  };
  struct Wait {
    int64_t product = 0, pending = 0;
    SmallVector<int64_t> inFlight;
  };
  llvm::DenseMap<Operation *, int64_t> numbers;
  llvm::DenseMap<Operation *, Wait> waits;
  llvm::DenseSet<Operation *> startAtZero;
  SmallVector<Registers> products;

  /// Reads a function before anything of it is lowered.
  static ProductsInFlight plan(gpu::GPUFuncOp function);
};

void populateProductPatterns(const TypeConverter &converter,
                             RewritePatternSet &patterns,
                             ProductsInFlight &inFlight);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_PRODUCTS_H
