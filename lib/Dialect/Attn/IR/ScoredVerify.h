//===- ScoredVerify.h - constraints on operations over scores -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_SCOREDVERIFY_H
#define ATTN_LIB_DIALECT_ATTN_IR_SCOREDVERIFY_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

/// The sizes that tensors have in common, as the tables of the operations'
/// descriptions name them.
enum class Size { Batch, Heads, KeyHeads, Queries, Keys, HeadDim, ValueDim };

/// A tensor of an operation and what the messages call it.
struct NamedTensor {
  llvm::StringRef name;
  mlir::RankedTensorType type;
  llvm::ArrayRef<Size> sizes; // of its dimensions
  bool isF32 = false;         // else of the element type of query

  static NamedTensor ofQuery(llvm::StringRef name, mlir::Value tensor);
  static NamedTensor ofKey(llvm::StringRef name, mlir::Value tensor);
  static NamedTensor ofValue(llvm::StringRef name, mlir::Value tensor);
  static NamedTensor ofOutput(llvm::StringRef name, mlir::Value tensor);
  static NamedTensor ofLse(llvm::StringRef name, mlir::Value tensor);
};

/// Shapes and elements: (C1) to (C6) of attn.attention. The query comes first.
mlir::LogicalResult verifyTensors(ScoredOp op,
                                  llvm::ArrayRef<NamedTensor> tensors);

/// The other operands and the attributes: (C7), (C8) and (C26) to (C28) of
/// attn.attention. (C13) is a trait of all operations.
mlir::LogicalResult verifyOptions(ScoredOp op);

/// One region over `fixed` and the captures, which yields `result`: (C9) to
/// (C11) of attn.attention.
mlir::LogicalResult verifyRegion(ScoredOp op, llvm::StringRef name,
                                 mlir::Region &region,
                                 llvm::ArrayRef<mlir::Type> fixed,
                                 mlir::Type result);

/// The score and the mask region.
mlir::LogicalResult verifyScoreAndMask(ScoredOp op);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_SCOREDVERIFY_H
