//===- SlopedKernel.h - a kernel whose scores have a slope ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_SLOPEDKERNEL_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_SLOPEDKERNEL_H

#include "attn/Dialect/Attn/IR/KeySlope.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Support/LLVM.h"

namespace attn::tile {

/// What of a kernel is read and changed.
struct SlopedKernel {
  KernelOp grid;
  BlockLoops chain;
  LoadOp query, key, value;
  KeySlope form;
  KeyInterval shown;
  /// Which key of a row has the greatest bias: the last or the first that it
  /// sees, or the one where a distance is 0.
  enum class Nearest { Last, First, Peak } nearest = Nearest::Last;
  int64_t rowsOfTile = 0, keysOfBlock = 0;

  /// Fails, with the reason in `reason`, where scores or masks have another
  /// form, or scale and slope cannot be computed in another kernel.
  static FailureOr<SlopedKernel> read(KernelOp grid, std::string &reason);
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_SLOPEDKERNEL_H
