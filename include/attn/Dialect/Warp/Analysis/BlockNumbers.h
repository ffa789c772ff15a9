//===- BlockNumbers.h - how large numbers of blocks are ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_ANALYSIS_BLOCKNUMBERS_H
#define ATTN_DIALECT_WARP_ANALYSIS_BLOCKNUMBERS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <optional>

namespace attn::warp {

/// The most queries and keys that a launch may have.
inline constexpr int64_t maxPositions = int64_t(1) << 30;

/// Whether the dimension is a number of heads, of queries or of keys: one of a
/// view whose rows are of a known size, as those of Q, K, V and results are. A
/// table of such rows with more of them would fill no memory that there is.
bool isCountOfPositions(memref::DimOp dim);

/// The largest number below `size`, which counts rows or blocks of them.
std::optional<int64_t> getMostBelow(Value size);

/// How large a number of a block can be: what the operation that gives it is
/// marked with, if anything.
std::optional<int64_t> getMost(Operation *op);
void setMost(Operation *op, int64_t most);
void dropMost(Operation *op);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_ANALYSIS_BLOCKNUMBERS_H
