//===- AttnToLinalg.h - the definition of attention, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOLINALG_H
#define ATTN_CONVERSION_ATTNTOLINALG_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"

namespace mlir {
class OpBuilder;
} // namespace mlir

namespace attn {

class AttentionBackwardOp;
class AttentionJvpOp;
class AttentionOp;

/// What the definition is evaluated in.
enum class OraclePrecision {
  /// Everything in f64, nothing rounded: r of rule C20.
  F64,
  /// The scaled score rounded to f32 and the score region evaluated in f32, all
  /// else in f64: s of C20.
  Score,
  /// Everything in f64, but gradients take delta from output as it was saved,
  /// in
  /// its type: r' of C16 of attn.attention_backward.
  Saved,
  /// Every unfused step rounded to the input type, softmax in f32: t0 of C20.
  Input
};

/// Builds the definition of `op`, which has no variants, at the insertion point
/// of `b`: one tensor for each result of `op`, in its shape, with elements of
/// f64 or as wide as or wider than those of the result.
llvm::SmallVector<mlir::Value>
buildDefinition(mlir::OpBuilder &b, AttentionOp op, OraclePrecision precision);
llvm::SmallVector<mlir::Value> buildDefinition(mlir::OpBuilder &b,
                                               AttentionBackwardOp op,
                                               OraclePrecision precision);
llvm::SmallVector<mlir::Value> buildDefinition(mlir::OpBuilder &b,
                                               AttentionJvpOp op,
                                               OraclePrecision precision);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOLINALG_H
