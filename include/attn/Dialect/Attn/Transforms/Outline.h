//===- Outline.h - attentions as functions of their own -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_OUTLINE_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_OUTLINE_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// Whether the function is one attn.attention of its arguments, with views and
/// scalar code around it: a kernel can be made of it as it stands.
bool isAttentionAlone(func::FuncOp function);

/// Makes each attn.attention of `caller` a private function beside it, which
/// `caller` calls; one that `known` holds already where it is the same but for
/// names. New ones are added to `known`. Returns the function of each
/// attention, in their order; none where the caller is an attention alone.
SmallVector<func::FuncOp>
outlineAttention(func::FuncOp caller, SmallVectorImpl<func::FuncOp> &known);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_OUTLINE_H
