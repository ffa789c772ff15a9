//===- QueryBlock.h - a block of queries, over blocks of keys --*- C++ -*- ===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the kernels with an online softmax share: those of attention and of its
// tangents.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_QUERYBLOCK_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_QUERYBLOCK_H

#include "KernelBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// A kernel with one block for each block of queries, of one head or of several
/// that share a key head.
struct QueryKernel : KernelValues {
  QueryKernel(OpBuilder &b, ScoredOp op, IRMapping &mapping);

  bool hasPackedHeads() const { return packedHeads != 1; }

  int64_t packedHeads;   // whose rows lie in a tile, one head after the other
  Value queriesPerBlock; // of one head
  Value queryBlocks, keyBlocks;
  /// The heads in parts that a tile holds: of a key head, and of all.
  Value partsPerKeyHead, headParts;
};

/// What the steps of one block of the kernel share.
struct QueryBlock {
  Value batch, head, keyHead, row; // head: the first one
  /// The head after the last one; null where the tile is full.
  Value headEnd;
  /// Coordinates; of several heads, and of their rows, vectors.
  Value batch32, head32, rows;
  Value column; // the first one of the output that is written
  /// Whether it writes numbers of rows; null where each block has its own rows.
  Value ownsRows;
};

/// The keys of one step: the first one, and the coordinates of all.
struct KeyBlock {
  Value column, keys;
};

/// An online softmax with sums of weighted values.
struct SoftmaxState {
  SmallVector<Value, 2> sums;
  Value max, sum;
};

/// The maximum of two softmaxes, and what the sums of each are worth with it.
struct JoinedMaxima {
  Value max, firstWeight, secondWeight;
};

/// `numbers` are those of the batch entry, the head (of packed heads the part)
/// and the block.
QueryBlock buildQueryBlock(OpBuilder &b, const QueryKernel &kernel,
                           ValueRange numbers);
KeyBlock buildKeyBlock(OpBuilder &b, const QueryKernel &kernel, Value number);

/// A tile of queries, and one of keys or values.
Value loadQueries(OpBuilder &b, const QueryKernel &kernel,
                  const QueryBlock &block, Value view);
Value loadKeys(OpBuilder &b, const QueryKernel &kernel, const QueryBlock &block,
               const KeyBlock &keys, Value view, int64_t dim);

/// One step of the softmax.
tile::OnlineSoftmaxOp buildSoftmax(OpBuilder &b, const QueryKernel &kernel,
                                   Value scores, Value max, Value sum);

/// Of no key at all, with sums over so many columns.
SoftmaxState emptySoftmax(OpBuilder &b, const QueryKernel &kernel,
                          ArrayRef<int64_t> columns);
JoinedMaxima joinMaxima(OpBuilder &b, Location loc, Value first, Value second);

/// The sink of a head joins the softmax. `correction`, if it is asked for, is
/// what the sums were multiplied by.
SoftmaxState joinSink(OpBuilder &b, const QueryKernel &kernel,
                      const QueryBlock &block, SoftmaxState state,
                      Value *correction = nullptr);

/// lhs / sum, 0 where the sum is 0 (C17); times `factor`.
Value normalize(OpBuilder &b, Location loc, Value lhs, Value sum,
                double factor);

/// Writes a tile; one of the output, rounded; a number of each row.
void storeTile(OpBuilder &b, const QueryKernel &kernel, const QueryBlock &block,
               Value tile, Value view);
void storeOutput(OpBuilder &b, const QueryKernel &kernel,
                 const QueryBlock &block, Value tile, Value view);
void storeRows(OpBuilder &b, const QueryKernel &kernel, const QueryBlock &block,
               Value numbers, Value view);
/// lse: -inf where no key was seen (C17).
Value buildLse(OpBuilder &b, Location loc, const SoftmaxState &state);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_QUERYBLOCK_H
