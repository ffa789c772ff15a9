//===- ScoreDefinition.h - scores and weights, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// With h = k G + g, the query heads are taken apart into [key head, group], so
// that every indexing map is a projected permutation of
//   b, k, g, i (query), j (key), d and e (head dimensions of query and value):
//   s[b,k,g,i,j] = sum_d q[b,k,g,i,d] key[b,k,j,d]
//   x = scale s, y = score(x), -inf where mask is false          (C14, C15)
//   m[b,k,g,i] = max_j y, 0 where that is -inf                        (C17)
//   w = exp(y - m), l = sum_j w
//   p = w / l, 0 where l = 0                                          (C17)
//   o[b,k,g,i,e] = sum_j p[b,k,g,i,j] v[b,k,j,e]
//   lse = m + log l                                                   (C16)
// A sink joins m and l (C26); dropout takes from p of o (C29).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOLINALG_SCOREDEFINITION_H
#define ATTN_LIB_CONVERSION_ATTNTOLINALG_SCOREDEFINITION_H

#include "attn/Conversion/AttnToLinalg.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// What the definitions of attention, its gradients and its tangents have in
/// common.
class ScoreDefinition {
public:
  ScoreDefinition(mlir::OpBuilder &b, ScoredOp op, OraclePrecision precision);

protected:
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                              mlir::ValueRange)>;

  /// Loop dimensions by name.
  enum Dim : unsigned { B, K, G, I, J, D, E, NumDims };
  static constexpr Dim scoreDims[] = {B, K, G, I, J}, rowDims[] = {B, K, G, I};

  /// The softmax of scores y over their keys: p = exp(y - top) / sums.
  struct Softmax {
    mlir::Value top, sums, probabilities;
  };

  mlir::Value splitHeads(mlir::Value tensor, llvm::ArrayRef<Dim> rest);
  mlir::Value joinHeads(mlir::Value tensor, mlir::Type shape,
                        mlir::Type element);
  mlir::Value filled(llvm::ArrayRef<Dim> dims, mlir::Type element,
                     double value);
  mlir::Value generic(llvm::ArrayRef<Dim> loops,
                      llvm::ArrayRef<mlir::Value> inputs,
                      llvm::ArrayRef<llvm::SmallVector<Dim>> inputDims,
                      mlir::Value init, llvm::ArrayRef<Dim> resultDims,
                      Body body);
  /// The tensor with `body` applied to each element.
  mlir::Value map(llvm::ArrayRef<Dim> dims, mlir::Value tensor, Body body);
  /// The sum of products of two tensors, over the loops that are not in the
  /// result.
  mlir::Value contract(llvm::ArrayRef<Dim> loops, mlir::Value lhs,
                       llvm::ArrayRef<Dim> lhsDims, mlir::Value rhs,
                       llvm::ArrayRef<Dim> rhsDims,
                       llvm::ArrayRef<Dim> resultDims);

  mlir::Value buildProducts(mlir::Value query);
  mlir::Value scaleProduct(mlir::OpBuilder &b, mlir::Value product);
  mlir::Value buildPosition(mlir::OpBuilder &b, mlir::Value x);
  Softmax buildSoftmax(mlir::Value scores);
  mlir::Value buildDropout(mlir::Value tensor);
  /// Sums of values, with weights; lse.
  mlir::Value buildOutput(mlir::Value weights);
  mlir::Value buildLse(const Softmax &softmax);

  mlir::Value buildHead(mlir::OpBuilder &b, mlir::Value keyHead,
                        mlir::Value group);
  mlir::Value buildHead(mlir::OpBuilder &b);
  mlir::Value buildSinkWeight(mlir::OpBuilder &b, mlir::Value top);
  mlir::Value isNone(mlir::OpBuilder &b, mlir::Value score);
  llvm::SmallVector<mlir::Value> buildIndices(mlir::OpBuilder &b);
  mlir::Value storeScore(mlir::OpBuilder &b, mlir::Value x);

  mlir::Value constant(mlir::OpBuilder &b, double value) {
    return mlir::arith::ConstantOp::create(b, loc,
                                           b.getFloatAttr(compute, value));
  }
  /// An input element in the type of the computation.
  mlir::Value extend(mlir::OpBuilder &b, mlir::Value value) {
    return value.getType() == compute
               ? value
               : mlir::arith::ExtFOp::create(b, loc, compute, value)
                     .getResult();
  }
  /// What an eager framework stores between two steps.
  mlir::Value round(mlir::OpBuilder &b, mlir::Value value) {
    return wide || input == compute
               ? value
               : mlir::arith::TruncFOp::create(b, loc, input, value)
                     .getResult();
  }
  /// A number as it is stored between two steps, in the type of the
  /// computation.
  mlir::Value store(mlir::OpBuilder &b, mlir::Value value) {
    return extend(b, round(b, value));
  }
  /// The type of a tensor between two steps.
  mlir::Type stored() { return wide ? compute : input; }

  mlir::OpBuilder &b;
  ScoredOp op;
  mlir::Location loc;
  bool wide, narrowScore;
  mlir::FloatType compute, input;
  mlir::OpFoldResult sizes[NumDims];
  mlir::OpFoldResult queryHeads;

private:
  void findSizes();
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOLINALG_SCOREDEFINITION_H
