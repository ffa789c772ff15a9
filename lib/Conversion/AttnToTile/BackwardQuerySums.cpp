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

/// They reach as far as the rows of lse do.
void BackwardKernels::allocateQuerySums() {
  Value size = arith::ConstantIndexOp::create(b, loc, numColumns * paddedDim);
  querySums =
      allocate(f32, {batches, heads,
                     ceilDiv(b, loc, paddedQueries, blockColumns), size});
}

/// Those of the block of queries that begins with the rows of `block`, if one
/// does.
void BackwardKernels::clearQuerySums(const BlockNumbers &block) {
  OpBuilder::InsertionGuard guard(b);
  Value rest = arith::RemUIOp::create(b, loc, block.first, blockColumns);
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, c0);
  b.setInsertionPointToStart(scf::IfOp::create(b, loc, isFirst).thenBlock());
  Value number = arith::DivUIOp::create(b, loc, block.first, blockColumns);
  Value zero =
      splat(b, loc, VectorType::get({numColumns, paddedDim}, f32), 0.0);
  tile::StoreOp::create(b, loc, zero, querySums,
                        ValueRange{block.batch, block.head, number, c0},
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
      ValueRange{batches, heads, ceilDiv(b, loc, queryLength, blockColumns)},
      attention.getPlanAttr());
  BlockNumbers block = readNumbers(kernel, blockColumns, /*fromTheEnd=*/true);
  Value sum = tile::LoadOp::create(
      b, loc, VectorType::get({numColumns, paddedDim}, f32), querySums,
      ValueRange{block.batch, block.head, block.number, c0}, /*packed=*/true);
  Value scaled = multiply(sum, attention.getScaleValue());
  tile::StoreOp::create(b, loc, roundTo(b, loc, scaled, element), gradient,
                        ValueRange{block.batch, block.head, block.first, c0});
}
