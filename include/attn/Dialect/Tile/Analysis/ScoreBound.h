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

#include "attn/Dialect/Tile/IR/Tile.h"
#include <optional>

namespace attn::tile {

/// exp(x - m) may be computed as exp2(c x - c m) where x and m are at most
/// this: the product with log2(e) is then rounded by 2^-15 at most, which the
/// weights of a row that another block gave do not share.
constexpr float maxFoldedScore = 512;

/// The greatest magnitude that a score of `op` can have, if its score function
/// sets a limit. NaN does not count, nor does the -inf of hidden keys.
std::optional<double> boundMagnitude(ScoresOp op);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_SCOREBOUND_H
