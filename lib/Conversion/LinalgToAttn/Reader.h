//===- Reader.h - tensors to expressions -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_READER_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_READER_H

#include "Expression.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::raise {

/// True for a sum of products of two tensors, as a matrix product is.
bool isContraction(ExprRef expr);

/// Reads elements of tensors as expressions, back to what it does not know:
/// arguments, and results of operations that are neither structured nor
/// elementwise nor views.
class Reader {
public:
  Reader(Expressions &expressions, Extents &extents)
      : e(expressions), extents(extents) {}

  /// What the producer of `tensor` computes at `indices` from elements of its
  /// operands; null where it is not known.
  /// With `keepsRoundings`, an integer or a truth value is made of it.
  ExprRef readOnce(Value tensor, ArrayRef<ExprRef> indices,
                   bool keepsRoundings = false);
  /// The same through all producers, but for operands of contractions.
  ExprRef read(Value tensor, ArrayRef<ExprRef> indices);
  /// `expr` with its elements read, but for operands of contractions.
  ExprRef expand(ExprRef expr);
  /// One free variable per dimension.
  SmallVector<ExprRef> makeIndices(Value tensor);

  /// Where reading met `expr`, as elements; only for reductions.
  ArrayRef<ExprRef> originsOf(ExprRef expr);

private:
  /// With all roundings.
  ExprRef readProducer(Value tensor, ArrayRef<ExprRef> indices);
  ExprRef readScalar(Value value);
  ExprRef computeScalar(Value value);
  ExprRef readStructured(linalg::LinalgOp op, unsigned result,
                         ArrayRef<ExprRef> indices);
  ExprRef readSoftmax(linalg::SoftmaxOp op, ArrayRef<ExprRef> indices);
  ExprRef readElementwise(Operation *op, ArrayRef<ExprRef> indices);
  ExprRef readView(Operation *op, ArrayRef<ExprRef> indices);
  ExprRef readReshape(tensor::ReshapeOp op, ArrayRef<ExprRef> indices);
  ExprRef readConcatenation(tensor::ConcatOp op, ArrayRef<ExprRef> indices);
  ExprRef readPadding(tensor::PadOp op, ArrayRef<ExprRef> indices);
  ExprRef readInsertion(tensor::InsertSliceOp op, ArrayRef<ExprRef> indices);
  ExprRef readConstant(TypedAttr value);
  /// One operation on scalars, given its operands.
  ExprRef readOperation(Operation *op, ArrayRef<ExprRef> operands);
  /// The operands of the terminator of `block`; empty where it is not known.
  SmallVector<ExprRef> readBody(Block &block,
                                llvm::DenseMap<Value, ExprRef> values,
                                ArrayRef<ExprRef> loops);
  ExprRef readBranches(scf::IfOp op, ExprRef condition,
                       const llvm::DenseMap<Value, ExprRef> &values,
                       ArrayRef<ExprRef> loops);
  ExprRef readMap(AffineExpr map, ArrayRef<ExprRef> dims);
  ExprRef readIndex(OpFoldResult value);

  Expressions &e;
  Extents &extents;
  llvm::DenseMap<ExprRef, ExprRef> expanded;
  llvm::DenseMap<Value, ExprRef> scalars;
  unsigned numOpen = 0; // tensors and scalars that are being read
  llvm::DenseMap<ExprRef, SmallVector<ExprRef, 2>> origins;
};

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_READER_H
