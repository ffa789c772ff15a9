//===- LaunchAttributes.h - what a launch says to the runtime -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_LAUNCHATTRIBUTES_H
#define ATTN_CONVERSION_LAUNCHATTRIBUTES_H

#include "attn/Dialect/Warp/IR/HostMemory.h"
#include "attn/Support/LLVM.h"

namespace attn {

/// On a `gpu.launch_func`: for each tensor map behind the arguments of the
/// host, in order, its argument, rows and columns of the box, and bytes of the
/// swizzle.
inline constexpr llvm::StringLiteral kTensorMapsAttrName = "warp.tensor_maps";

/// On a `gpu.launch_func`: its blocks stay and share the work out; the grid's x
/// is at most the number of multiprocessors.
inline constexpr llvm::StringLiteral kResidentAttrName = "warp.resident";

/// On a `gpu.func`: it copies a tensor into another layout; bytes of an
/// element, and elements of the last two dimensions for each block.
inline constexpr llvm::StringLiteral kRelayoutAttrName = "warp.relayout";

} // namespace attn

#endif // ATTN_CONVERSION_LAUNCHATTRIBUTES_H
