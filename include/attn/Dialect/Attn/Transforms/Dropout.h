//===- Dropout.h - which weights dropout keeps -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_DROPOUT_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_DROPOUT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Region.h"

namespace attn {

/// Builds in `region`, which is empty, the scalar code that tells which weights
/// stay (C29): a block over (b, h, i, j, seed, offset), all i32, that yields an
/// i1 as a mask region does.
void buildKeepRegion(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Region &region, double probability);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_DROPOUT_H
