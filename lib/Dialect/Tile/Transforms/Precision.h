//===- Precision.h - what programs promise of roundings ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_PRECISION_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_PRECISION_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Operation.h"

namespace attn::tile {

/// Whether `op` stands in a program without `fast_math`, or one with products
/// of ieee: what a score or a gradient is made of is computed as it is written.
bool isPrecise(Operation *op);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_PRECISION_H
