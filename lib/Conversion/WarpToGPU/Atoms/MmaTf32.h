//===- MmaTf32.h - f32 products by mma.sync m16n8k8 tf32 --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MMATF32_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MMATF32_H

#include "Product.h"

namespace attn::warp {

ProductEmitter emitMmaTF32;
/// An A operand of f32, read once into registers.
SmallVector<Value> loadFragF32(OpBuilder &builder, LoadFragOp op, Value slot);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MMATF32_H
