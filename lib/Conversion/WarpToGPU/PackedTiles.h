//===- PackedTiles.h - tiles in memory as lanes hold them -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_PACKEDTILES_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_PACKEDTILES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir {
class TypeConverter;
}

namespace attn::warp {

/// Adds an f32 to the one at an address, atomically.
void emitAdd(OpBuilder &builder, Location loc, Value address, Value value);

/// warp.store of packed tiles, and warp.load. `addsVectors`: four floats are
/// added at a time.
void populatePackedTilePatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns, bool addsVectors);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_PACKEDTILES_H
