//===- Divisors.h - what integers are divided by ------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Quotients and remainders by constants in the code of a mask. Shifts to the
// right are quotients, and masks of the lowest bits are remainders.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_DIVISORS_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_DIVISORS_H

#include "mlir/IR/Operation.h"
#include <optional>

namespace attn::tile {

/// Divisors beyond which all positions have one quotient.
inline constexpr int64_t maxDivisor = int64_t(1) << 30;

/// The constant c, 1 to `maxDivisor`, if `op` is x / c, rounded in some way.
/// All ways are the same of what is not negative.
std::optional<int64_t> getQuotientDivisor(mlir::Operation *op);

/// The constant c, 1 to `maxDivisor`, if `op` is the remainder of x / c.
std::optional<int64_t> getRemainderDivisor(mlir::Operation *op);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_DIVISORS_H
