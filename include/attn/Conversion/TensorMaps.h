//===- TensorMaps.h - parameters behind the arguments -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TENSORMAPS_H
#define ATTN_CONVERSION_TENSORMAPS_H

#include "attn/Support/LLVM.h"

namespace attn {

/// On a `gpu.launch_func`: for each tensor map behind the arguments of the
/// host, in order, its argument, rows and columns of the box, and bytes of the
/// swizzle.
inline constexpr llvm::StringLiteral kTensorMapsAttrName = "warp.tensor_maps";

} // namespace attn

#endif // ATTN_CONVERSION_TENSORMAPS_H
