//===- Stores.h - fragments to global memory --------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_STORES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_STORES_H

#include "attn/Support/LLVM.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {

void populateStorePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_STORES_H
