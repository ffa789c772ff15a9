//===- Sines.h - sines and cosines of numbers of any period -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_SINES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_SINES_H

#include "Floats.h"

namespace attn::warp {

/// Within 1.5e-7 where |x| is at most 10^6, within 1.1e-6 up to 4 * 10^6 and
/// 1.1e-4 up to 2^22 pi; beyond, where numbers of f32 are a radian apart or
/// more, something from -1 to 1.
mlir::Value computeSine(Floats &f, mlir::Value x);
mlir::Value computeCosine(Floats &f, mlir::Value x);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_SINES_H
