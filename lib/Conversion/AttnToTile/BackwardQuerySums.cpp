//===- BackwardQuerySums.cpp - gradients of queries, added up -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One program for all gradients has five products where two programs have
// seven (Dao et al., "FlashAttention", algorithm 4): a block of keys adds its
// part of dQ, for a block of queries, to a workspace of f32. Blocks of keys run
// side by side, so the order of these sums, and with it their last bits, differ
// from launch to launch.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

void BackwardKernels::clearQuerySums() {
  OpBuilder::InsertionGuard guard(b);
  Value size = arith::ConstantIndexOp::create(b, loc, numColumns * paddedDim);
  Value blocks = ceilDiv(b, loc, queryLength, blockColumns);
  querySums = allocate(f32, {batches, heads, blocks, size});
  tile::KernelOp kernel =
      beginKernel("_clear_query", ValueRange{batches, heads, blocks});
  auto numbers = kernel.getNumbers();
  Value zero =
      splat(b, loc, VectorType::get({numColumns, paddedDim}, f32), 0.0);
  tile::StoreOp::create(b, loc, zero, querySums,
                        ValueRange{numbers[0], numbers[1], numbers[2], c0},
                        /*accumulate=*/false, /*packed=*/true);
}

/// `dScores` has a row per key.
Value BackwardKernels::multiplyKeys(OpBuilder &outer, Value dScores,
                                    Value keyTile) {
  Value zero =
      splat(outer, loc, VectorType::get({numColumns, paddedDim}, f32), 0.0);
  return contract(b, loc, dScores, keyTile, zero, /*transposed=*/false,
                  /*transposedLhs=*/true);
}

/// `number` is that of the block of queries.
void BackwardKernels::addQueryGradient(const BlockNumbers &block, Value number,
                                       Value part) {
  tile::StoreOp::create(b, loc, part, querySums,
                        ValueRange{block.batch, block.head, number, c0},
                        /*accumulate=*/true, /*packed=*/true);
}

void BackwardKernels::buildRoundedQueryGradient(Value gradient) {
  OpBuilder::InsertionGuard guard(b);
  tile::KernelOp kernel = beginKernel(
      "_round_query",
      ValueRange{batches, heads, ceilDiv(b, loc, queryLength, blockColumns)});
  auto numbers = kernel.getNumbers();
  Value row = arith::MulIOp::create(b, loc, numbers[2], blockColumns);
  Value sum = tile::LoadOp::create(
      b, loc, VectorType::get({numColumns, paddedDim}, f32), querySums,
      ValueRange{numbers[0], numbers[1], numbers[2], c0}, /*packed=*/true);
  Value scaled = multiply(sum, attention.getScaleValue());
  tile::StoreOp::create(b, loc, roundTo(b, loc, scaled, element), gradient,
                        ValueRange{numbers[0], numbers[1], row, c0});
}
