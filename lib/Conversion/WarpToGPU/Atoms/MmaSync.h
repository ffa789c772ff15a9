//===- MmaSync.h - mma.sync m16n8k16 ----------------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MMASYNC_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MMASYNC_H

#include "Product.h"

namespace attn::warp {

ProductEmitter emitMmaSync;
/// An A operand of 16-bit elements, read once into registers.
SmallVector<Value> loadFrag16(OpBuilder &builder, LoadFragOp op, Value slot);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_MMASYNC_H
