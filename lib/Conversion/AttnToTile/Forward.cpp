//===- Forward.cpp - the sequential forward kernel ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For one block of M query rows, over blocks of N keys (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", algorithm 3; Dao,
// "FlashAttention-2", algorithm 1):
//
//   s       = Q K[n]^T                     f32
//   x       = mask(score(scale * s))       -inf where masked or past the end
//   p, m, l, correction = online_softmax(x, m, l)
//   o       = o * correction + round(p) V[n]
//
// and at the end o / l, m + log(l). A sink joins l after the loop; dropout
// takes weights away from the product with V[n], not from l.
//
//===----------------------------------------------------------------------===//

#include "KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace attn;

namespace {
struct ForwardKernel : KernelValues {
  ForwardKernel(OpBuilder &b, AttentionOp op, IRMapping &mapping)
      : KernelValues(b, op, mapping), forward(op),
        queryBlocks(ceilDiv(b, loc, queryLength, blockRows)),
        keyBlocks(ceilDiv(b, loc, keyLength, blockColumns)) {}

  AttentionOp forward;
  Value queryBlocks, keyBlocks;
};

/// What the steps of one block of the kernel share.
struct QueryBlock {
  Value batch, head, keyHead, row;
  Value tile;
  Value batch32, head32, rows; // coordinates
};
} // namespace

/// One step over the keys of block `n`: returns the new o, m, l.
static SmallVector<Value> buildStep(OpBuilder &outer, OpBuilder &b,
                                    const ForwardKernel &kernel,
                                    const QueryBlock &block, Value n,
                                    ValueRange state) {
  Location loc = kernel.loc;
  ScoredOp attention = kernel.attention;
  int64_t rows = kernel.numRows, columns = kernel.numColumns;
  auto scoresType = VectorType::get({rows, columns}, b.getF32Type());
  Value o = state[0], m = state[1], l = state[2];

  Value column = arith::MulIOp::create(b, loc, n, kernel.blockColumns);
  Value column32 = toCoordinate(b, loc, column);
  Value keys = tile::CoordsOp::create(
      b, loc, VectorType::get({1, columns}, b.getI32Type()), column32, 1);
  auto load = [&](Value view, int64_t dim) -> Value {
    return tile::LoadOp::create(
        b, loc, VectorType::get({columns, dim}, kernel.element), view,
        ValueRange{block.batch, block.keyHead, column, kernel.c0});
  };

  Value keyTile = load(kernel.key, kernel.paddedDim);
  Value zero = splat(outer, loc, scoresType, 0.0);
  Value scores =
      contract(b, loc, block.tile, keyTile, zero, /*transposed=*/true);
  ScoreCoordinates at{block.batch32, block.head32, block.rows, keys};
  tile::ScoresOp scored = buildScores(outer, b, kernel, scores, at);

  // Infinite keys give scores of -inf without a mask, too (C17).
  NumericsAttr numerics = attention.getNumericsOrDefault();
  bool exact =
      !numerics.getFastMath() || numerics.getF32Products() == F32Products::IEEE;
  auto softmax = tile::OnlineSoftmaxOp::create(
      b, loc, scored.getResult(), m, l, llvm::APFloat(1.0f), /*guard=*/true,
      /*exp2=*/false, exact);

  Value valueTile = load(kernel.value, kernel.paddedValueDim);
  Value p = roundTo(b, loc, softmax.getProbabilities(), kernel.element);
  if (attention.hasDropout())
    p = dropWeights(outer, b, kernel, at, p);
  Value correction =
      vector::BroadcastOp::create(b, loc, o.getType(), softmax.getCorrection());
  Value rescaled = arith::MulFOp::create(b, loc, o, correction);
  Value newO = contract(b, loc, p, valueTile, rescaled, /*transposed=*/false);
  return {newO, softmax.getNewMax(), softmax.getNewSum()};
}

static QueryBlock buildQueryBlock(OpBuilder &b, const ForwardKernel &kernel,
                                  Block::BlockArgListType numbers) {
  Location loc = kernel.loc;
  QueryBlock block;
  block.batch = numbers[0];
  block.head = numbers[1];
  block.keyHead =
      b.createOrFold<arith::DivSIOp>(loc, block.head, kernel.headsPerKeyHead);
  block.row = arith::MulIOp::create(b, loc, numbers[2], kernel.blockRows);
  block.batch32 = toCoordinate(b, loc, block.batch);
  block.head32 = toCoordinate(b, loc, block.head);
  block.rows = tile::CoordsOp::create(
      b, loc, VectorType::get({kernel.numRows, 1}, b.getI32Type()),
      toCoordinate(b, loc, block.row), 0);
  block.tile = tile::LoadOp::create(
      b, loc,
      VectorType::get({kernel.numRows, kernel.paddedDim}, kernel.element),
      kernel.query, ValueRange{block.batch, block.head, block.row, kernel.c0});
  return block;
}

/// The sink of a head joins (o, m, l): one more key, with no value.
///
///   m' = max(m, sink)              0 below where that is -inf
///   l' = l exp(m - m') + exp(sink - m')
///   o' = o exp(m - m')
static SmallVector<Value> joinSink(OpBuilder &b, const ForwardKernel &kernel,
                                   const QueryBlock &block, ValueRange state) {
  Location loc = kernel.loc;
  Value o = state[0], m = state[1], l = state[2];
  auto rowType = cast<VectorType>(m.getType());
  Value scalar =
      memref::LoadOp::create(b, loc, kernel.sink, ValueRange{block.head});
  if (!scalar.getType().isF32())
    scalar = arith::ExtFOp::create(b, loc, b.getF32Type(), scalar);
  Value sink = vector::BroadcastOp::create(b, loc, rowType, scalar);
  Value newMax = arith::MaximumFOp::create(b, loc, m, sink);
  Value hidden =
      splat(b, loc, rowType, -std::numeric_limits<double>::infinity());
  Value empty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, newMax, hidden);
  Value reference = arith::SelectOp::create(
      b, loc, empty, splat(b, loc, rowType, 0.0), newMax);
  auto weightOf = [&](Value logit) -> Value {
    Value difference = arith::SubFOp::create(b, loc, logit, reference);
    return math::ExpOp::create(b, loc, difference);
  };
  Value correction = weightOf(m);
  Value newSum = arith::AddFOp::create(
      b, loc, arith::MulFOp::create(b, loc, l, correction), weightOf(sink));
  Value stretched =
      vector::BroadcastOp::create(b, loc, o.getType(), correction);
  Value newO = arith::MulFOp::create(b, loc, o, stretched);
  return {newO, newMax, newSum};
}

/// o / l, 0 where l = 0 (C17); times `factor`.
static Value normalize(OpBuilder &b, Location loc, Value o, Value l,
                       double factor) {
  auto rowType = cast<VectorType>(l.getType());
  Value zero = splat(b, loc, rowType, 0.0);
  Value empty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, l, zero);
  Value inverse =
      arith::DivFOp::create(b, loc, splat(b, loc, rowType, factor), l);
  inverse = arith::SelectOp::create(b, loc, empty, zero, inverse);
  inverse = vector::BroadcastOp::create(b, loc, o.getType(), inverse);
  return arith::MulFOp::create(b, loc, o, inverse);
}

/// Writes the results that the function returns to the memrefs for them.
static void buildEpilogue(OpBuilder &b, const ForwardKernel &kernel,
                          const QueryBlock &block, ValueRange returned,
                          ValueRange outputs, ValueRange state) {
  Location loc = kernel.loc;
  AttentionOp attention = kernel.forward;
  SmallVector<Value> joined(state);
  if (kernel.sink)
    joined = joinSink(b, kernel, block, state);
  Value o = joined[0], m = joined[1], l = joined[2];
  for (auto [result, output] : llvm::zip(returned, outputs)) {
    if (result == attention.getOutput()) {
      Value normalized =
          normalize(b, loc, o, l, 1 / getKeptShare(kernel.attention));
      normalized = roundTo(b, loc, normalized, kernel.element);
      tile::StoreOp::create(
          b, loc, normalized, output,
          ValueRange{block.batch, block.head, block.row, kernel.c0});
      continue;
    }
    // -inf where l = 0: m is -inf there too (C17).
    Value log = math::LogOp::create(b, loc, l);
    Value lse = arith::AddFOp::create(b, loc, m, log);
    lse = vector::ShapeCastOp::create(
        b, loc, VectorType::get({kernel.numRows}, b.getF32Type()), lse);
    tile::StoreOp::create(b, loc, lse, output,
                          ValueRange{block.batch, block.head, block.row});
  }
}

func::FuncOp attn::buildForward(OpBuilder &b, KernelMatch match) {
  OpBuilder::InsertionGuard guard(b);
  IRMapping mapping;
  func::FuncOp func = buildSignature(b, match, mapping);
  ForwardKernel kernel(b, cast<AttentionOp>(match.attention.getOperation()),
                       mapping);
  Location loc = kernel.loc;

  auto program = tile::KernelOp::create(
      b, loc, func.getSymName(), match.attention.getPlanAttr(),
      ValueRange{kernel.batches, kernel.heads, kernel.queryBlocks});

  b.setInsertionPoint(program.getTerminator());
  QueryBlock block = buildQueryBlock(b, kernel, program.getNumbers());
  Type f32 = b.getF32Type();
  auto rowType = VectorType::get({kernel.numRows, 1}, f32);
  Value initial[] = {
      splat(b, loc,
            VectorType::get({kernel.numRows, kernel.paddedValueDim}, f32), 0.0),
      splat(b, loc, rowType, -std::numeric_limits<double>::infinity()),
      splat(b, loc, rowType, 0.0)};
  auto loop = scf::ForOp::create(b, loc, kernel.c0, kernel.keyBlocks, kernel.c1,
                                 initial);
  OpBuilder outer(loop);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  SmallVector<Value> state =
      buildStep(outer, inner, kernel, block, loop.getInductionVar(),
                loop.getRegionIterArgs());
  scf::YieldOp::create(inner, loc, state);

  buildEpilogue(b, kernel, block,
                match.func.getBody().front().getTerminator()->getOperands(),
                func.getArguments().drop_front(match.func.getNumArguments()),
                loop.getResults());
  return func;
}
