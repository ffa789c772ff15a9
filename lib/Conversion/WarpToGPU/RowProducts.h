//===- RowProducts.h - warp.dot_rows as loads and fmas -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ROWPRODUCTS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ROWPRODUCTS_H

#include "attn/Support/LLVM.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {

/// warp.dot_rows.
void populateRowProductPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ROWPRODUCTS_H
