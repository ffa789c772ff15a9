//===- BackwardKernels.h - kernels of gradients of attention --*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_BACKWARDKERNELS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_BACKWARDKERNELS_H

#include "KernelBuilder.h"

namespace attn {

/// Builds the kernels of one function, in the order in which they run. `b`
/// stands before its return, and does so again after each.
class BackwardKernels : public KernelValues {
public:
  BackwardKernels(OpBuilder &b, AttentionBackwardOp op, IRMapping &mapping,
                  StringRef name);

  /// delta and lse of each query, for the others.
  void buildRows();
  void buildQueryGradient(Value output);
  /// Gradients of keys and of values; null where nobody asks for one.
  void buildKeyGradients(Value keyOutput, Value valueOutput);
  void buildSinkGradient(Value output);

private:
  /// What a kernel accumulates over the blocks of queries.
  struct Sum {
    Value output;
    int64_t numColumns;
    double factor;
    bool isKey;
    Value workspace = {}; // of all heads, where a key head has several
  };
  /// The numbers of a block as indices and as coordinates.
  struct BlockNumbers {
    Value batch, head, keyHead, first;
    Value batch32, head32;
  };
  /// Scores of a block, what they are made of and what goes back through them.
  struct Step {
    ScoreCoordinates at;
    Value products, scores, weights;
  };

  // BackwardRows.cpp
  Value allocate(Type type, ArrayRef<Value> sizes);
  void sumHeads(const Sum &sum);

  // Backward.cpp
  tile::KernelOp beginKernel(const Twine &suffix, ValueRange grid);
  BlockNumbers readNumbers(tile::KernelOp kernel);
  Value coordinates(Value first, int64_t size, int64_t axis);
  Value gather(Value view, ValueRange indices, ArrayRef<int64_t> shape);
  Value load(Value view, const BlockNumbers &block, Value head, Value row,
             int64_t rows, int64_t columns);
  Value multiply(Value lhs, double factor);
  Value broadcast(Value value, Type type);
  Step buildWeights(OpBuilder &outer, Value lhs, Value rhs,
                    const ScoreCoordinates &at, Value lse);
  Value keepScaled(OpBuilder &outer, const Step &step, Value weights);
  Value buildScoreGradient(OpBuilder &outer, const Step &step, Value dWeights,
                           Value delta);
  void buildKeyGradient(StringRef suffix, ArrayRef<Sum> sums);
  void hideQueriesPastEnd(const Step &step);

  OpBuilder &b;
  AttentionBackwardOp op;
  std::string name;
  Type f32;
  Value output, lse, dOutput, dLse; // dLse null where there is none
  Value queryLength32;
  /// lse and delta - d_lse by batch entry, head and query, up to the end of the
  /// last block: a query past the end, or without keys, has an lse of +inf,
  /// with which every weight is 0.
  Value rowLse, rowDelta;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_BACKWARDKERNELS_H
