//===- KernelBuilder.h - what the kernels share -*- C++ -*- ===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELBUILDER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELBUILDER_H

#include "attn/Conversion/AttnToTile.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/IR/IRMapping.h"

namespace attn {

/// The function of the kernels: the arguments, then the results, and a copy of
/// the scalar code. `b` stands before its return.
func::FuncOp buildSignature(OpBuilder &b, KernelMatch match,
                            IRMapping &mapping);

/// Sizes of the kernels of a function, and the values that they all share.
struct KernelValues {
  KernelValues(OpBuilder &b, ScoredOp op, IRMapping &mapping);

  ScoredOp attention;
  Location loc;
  Type element;
  int64_t numRows, numColumns; // of a block
  int64_t paddedDim, paddedValueDim;
  Value query, key, value;
  Value sink; // null where there is none
  SmallVector<Value> captures, dropoutKey;
  // Before the kernels.
  Value c0, c1, blockRows, blockColumns;
  Value batches, heads, keyHeads, headsPerKeyHead;
  Value queryLength, keyLength, keyLength32;
};

/// Which scores a block holds: batch and head as i32, queries and keys as
/// vectors of i32 along the rows and the columns, or the other way round.
struct ScoreCoordinates {
  Value batch, head, queries, keys;
};

/// tile.scores of products, with the scale and the regions of the attention. A
/// constant part of them is built at `outer`, before the loop.
tile::ScoresOp buildScores(OpBuilder &outer, OpBuilder &b,
                           const KernelValues &kernel, Value products,
                           const ScoreCoordinates &at);

/// The weights that dropout keeps, 0 for the others. (Those that stay are too
/// small by 1 - dropout_p.)
Value dropWeights(OpBuilder &outer, OpBuilder &inner,
                  const KernelValues &kernel, const ScoreCoordinates &at,
                  Value weights);

/// 1 - dropout_p.
double getKeptShare(ScoredOp op);

Value splat(OpBuilder &b, Location loc, VectorType type, double value);
Value ceilDiv(OpBuilder &b, Location loc, Value size, Value block);

/// lhs * rhs + accumulator, rhs transposed or not.
Value contract(OpBuilder &b, Location loc, Value lhs, Value rhs,
               Value accumulator, bool transposed, bool transposedLhs = false);

/// A value of f32 as one of `element`.
Value roundTo(OpBuilder &b, Location loc, Value value, Type element);

/// A workspace of the function: memory for so many elements along each
/// dimension.
Value allocate(OpBuilder &b, Location loc, Type type, ArrayRef<Value> sizes);

/// An index as an i32.
Value toCoordinate(OpBuilder &b, Location loc, Value index);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_KERNELBUILDER_H
