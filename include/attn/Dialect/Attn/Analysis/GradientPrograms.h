//===- GradientPrograms.h - how many programs compute gradients -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scores of gradients are computed by one program, which adds parts of d_query
// to memory, by two (one for d_query, one for d_key and d_value) or by three.
// What is possible, and what is faster; attn-recompute decides by it, and plans
// are chosen by it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_ANALYSIS_GRADIENTPROGRAMS_H
#define ATTN_DIALECT_ATTN_ANALYSIS_GRADIENTPROGRAMS_H

#include "attn/Dialect/Attn/IR/Attn.h"

#include <cstdint>
#include <optional>
#include <string>

namespace attn {

/// A head dimension as tiles hold it.
inline int64_t padColumns(int64_t columns) {
  constexpr int64_t depthOfProducts = 16;
  return llvm::alignTo(columns, depthOfProducts);
}

/// What the `recompute` of `op` says of scores.
RecomputedScores getOwnScores(AttentionBackwardOp op);

/// Why so few programs by `plan` cannot compute the gradients; empty where they
/// can.
std::string findProgramObstacle(AttentionBackwardOp op, PlanAttr plan,
                                RecomputedScores scores);

/// Why one program by `plan`, which is possible, would be slower than two;
/// empty where it is faster. A number of queries that is not known counts as
/// many.
std::string findDrawbackOfOne(AttentionBackwardOp op, PlanAttr plan);

/// Whether one program by `plan` computes all gradients.
bool computesOnce(AttentionBackwardOp op, PlanAttr plan);

/// Up to how many queries, and as many keys, two programs are faster than the
/// one by `plan` that computes the gradients of `op` for more, where that was
/// measured; nothing where it was not, where one program cannot, or where `op`
/// says how many there are.
std::optional<int64_t> findMostQueriesOfTwo(AttentionBackwardOp op,
                                            PlanAttr plan);

/// Likewise up to how many keys that each query sees.
std::optional<int64_t> findMostKeysOfTwo(AttentionBackwardOp op, PlanAttr plan);

/// Whether two programs are faster than the one by `plan` only where each tile
/// of both has a multiprocessor: those of f32, whose tiles take long. From
/// timings on an H200, d = 64, 1 to 768 heads: 1.02 to 1.5 times as fast there,
/// 0.74 to 1.01 times elsewhere, 0.1 to 0.6 times with few queries and many
/// keys. At d = 128 and 256, where a tile of one program is not longer than
/// those of two, one takes 0.5 to 1.09 of their time (with 8 heads of 128 keys
/// at d = 128 1.3 times).
bool wantsTwoSideBySide(AttentionBackwardOp op, PlanAttr plan);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_ANALYSIS_GRADIENTPROGRAMS_H
