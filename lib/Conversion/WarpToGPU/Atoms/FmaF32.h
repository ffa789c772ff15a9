//===- FmaF32.h - f32 products by multiply-adds -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_FMAF32_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_FMAF32_H

#include "Product.h"

namespace attn::warp {

ProductEmitter emitFmaF32;

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_ATOMS_FMAF32_H
