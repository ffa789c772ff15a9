//===- Elementwise.h - upstream arithmetic, register by register ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ELEMENTWISE_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ELEMENTWISE_H

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::warp {
struct Positions;

void populateElementwisePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns,
                                 const Positions &positions,
                                 const DecisionPaths &exact);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ELEMENTWISE_H
