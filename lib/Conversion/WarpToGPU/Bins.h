//===- Bins.h - sums by element in shared memory ----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_BINS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_BINS_H

#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {

/// warp.clear_bins, warp.scatter_add and warp.store_bins.
void populateBinPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_BINS_H
