//===- Gathers.h - elements of global memory to fragments -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_GATHERS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_GATHERS_H

#include "attn/Support/LLVM.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {
struct Positions;

/// warp.gather.
void populateGatherPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns,
                            const Positions &positions);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_GATHERS_H
