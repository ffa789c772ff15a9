//===- LinalgToAttn.h - attention in plain graphs -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_LINALGTOATTN_H
#define ATTN_CONVERSION_LINALGTOATTN_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

#include <string>

namespace attn {

/// What became of one graph that looks like attention.
struct RaisedGraph {
  Location loc;
  /// The attn.attention that stands for it, or null.
  Operation *attention;
  /// What was recognised, or the edge that failed.
  std::string text;
};

/// Replaces every graph in `func` that computes softmax(score(Q K^T)) V by an
/// attn.attention; a graph that only looks like it stays as it is. Both are
/// listed.
SmallVector<RaisedGraph> raiseAttention(RewriterBase &rewriter,
                                        func::FuncOp func);

/// Writes every graph in `func` that raiseAttention takes in one form: two
/// products, the scores between them with scale, score and mask in one place,
/// and a softmax spelled out. Other graphs stay as they are.
void normalizeInput(RewriterBase &rewriter, func::FuncOp func);

/// The size of each dimension of each argument of `func`, or of what it
/// returns: a number, or one negative number per class of sizes that must be
/// equal; for an index its own value.
SmallVector<SmallVector<int64_t>> sizesOfArguments(func::FuncOp func,
                                                   bool ofResults);

} // namespace attn

#endif // ATTN_CONVERSION_LINALGTOATTN_H
