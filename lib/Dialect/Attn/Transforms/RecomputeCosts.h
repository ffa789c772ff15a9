//===- RecomputeCosts.h - bytes and operations of gradients -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RECOMPUTECOSTS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RECOMPUTECOSTS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include <string>

namespace attn {

/// What gradients take, beside their operands and results, if they keep or
/// compute again the numbers between them: `640 bytes, 4096 operations` of a
/// call where its sizes are known, else of each row (a query of a head), row
/// and block of keys, and score (a pair of query and key, hidden or not). Bytes
/// count when they are written and when they are read.
class RecomputeCosts {
public:
  explicit RecomputeCosts(AttentionBackwardOp op);

  /// All products, with so many programs that compute the scores.
  std::string ofScores(int numPrograms) const;
  /// All products, if the forward had saved the weights.
  std::string ofSavedWeights() const;
  std::string ofSavedLse() const;
  std::string ofComputedLse() const;
  /// rowsum(dO * O), of each row once, or in each step.
  std::string ofDelta() const;
  std::string ofDeltaByBlock() const;
  /// Functions, divisions and reads of the score region; those of them that
  /// the pullback computes, too.
  int64_t countCostly() const;
  int64_t countShared() const;
  /// Of one such value of each score.
  std::string ofSavedIntermediates() const;
  /// Whether dropout keeps a weight.
  std::string ofDrawnBits() const;
  std::string ofSavedBits() const;

private:
  /// Bytes or operations.
  struct Amount {
    double ofRow = 0, ofBlock = 0, ofScore = 0;
  };
  std::string print(Amount amount) const;
  std::string print(Amount bytes, Amount operations) const;

  AttentionBackwardOp op;
  int64_t dim, valueDim, elementBytes;
  /// Where sizes are known.
  std::optional<double> rows, blocks, scores;
};

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RECOMPUTECOSTS_H
