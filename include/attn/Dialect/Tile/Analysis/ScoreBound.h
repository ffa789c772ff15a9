//===- ScoreBound.h - how large scores can be -------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Intervals of f32 values, from what computes them: a softcap keeps scores
// within its cap, whatever the products of queries and keys are.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_SCOREBOUND_H
#define ATTN_DIALECT_TILE_ANALYSIS_SCOREBOUND_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace attn::tile {

/// Of a number below it, the product with log2(e) is rounded by 2^-4 at most: no
/// more than f32 rounds the number itself by. exp(x - m) may then be computed as
/// exp2(c x - c m).
constexpr float maxFoldedScore = 0x1p20f;

/// The greatest magnitude that an element of `scores` can have, if the
/// operations that compute them set a limit. NaN does not count, nor does the
/// -inf of hidden keys.
std::optional<double> boundMagnitude(Value scores);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_SCOREBOUND_H
