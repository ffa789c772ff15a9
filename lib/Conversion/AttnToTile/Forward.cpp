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
// takes weights away from the product with V[n], not from l. (SplitKeys.cpp:
// several blocks share the keys of one.) With `packed_heads` = P the M rows are
// M / P queries of P heads that share a key head: K[n] and V[n] are read once
// for all of these.
//
//===----------------------------------------------------------------------===//

#include "ForwardKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// One step over the keys of block `n`: returns the new o, m, l.
static SmallVector<Value> buildStep(OpBuilder &outer, OpBuilder &b,
                                    const QueryKernel &kernel,
                                    const QueryBlock &block, Value queryTile,
                                    Value n, ValueRange state) {
  Location loc = kernel.loc;
  ScoredOp attention = kernel.attention;
  auto scoresType =
      VectorType::get({kernel.numRows, kernel.numColumns}, b.getF32Type());
  Value o = state[0], m = state[1], l = state[2];

  KeyBlock keys = buildKeyBlock(b, kernel, n);
  Value keyTile =
      loadKeys(b, kernel, block, keys, kernel.key, kernel.paddedDim);
  Value zero = splat(outer, loc, scoresType, 0.0);
  Value scores =
      contract(b, loc, queryTile, keyTile, zero, /*transposed=*/true);
  ScoreCoordinates at{block.batch32, block.head32, block.rows, keys.keys};
  tile::ScoresOp scored = buildScores(outer, b, kernel, scores, at);
  auto softmax = buildSoftmax(b, kernel, scored.getResult(), m, l);

  Value valueTile =
      loadKeys(b, kernel, block, keys, kernel.value, kernel.paddedValueDim);
  Value p = roundTo(b, loc, softmax.getProbabilities(), kernel.element);
  if (attention.hasDropout())
    p = dropWeights(outer, b, kernel, at, p);
  Value correction =
      vector::BroadcastOp::create(b, loc, o.getType(), softmax.getCorrection());
  Value rescaled = arith::MulFOp::create(b, loc, o, correction);
  Value newO = contract(b, loc, p, valueTile, rescaled, /*transposed=*/false);
  return {newO, softmax.getNewMax(), softmax.getNewSum()};
}

SoftmaxState attn::buildSteps(OpBuilder &b, const QueryKernel &kernel,
                              const QueryBlock &block) {
  Location loc = kernel.loc;
  Value queryTile = loadQueries(b, kernel, block, kernel.query);
  SoftmaxState none = emptySoftmax(b, kernel, kernel.paddedValueDim);
  Value initial[] = {none.sums[0], none.max, none.sum};
  auto loop = scf::ForOp::create(b, loc, kernel.c0, kernel.keyBlocks, kernel.c1,
                                 initial);
  OpBuilder outer(loop);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  SmallVector<Value> state =
      buildStep(outer, inner, kernel, block, queryTile, loop.getInductionVar(),
                loop.getRegionIterArgs());
  scf::YieldOp::create(inner, loc, state);
  return {{loop.getResult(0)}, loop.getResult(1), loop.getResult(2)};
}

void attn::buildEpilogue(OpBuilder &b, const QueryKernel &kernel,
                         const QueryBlock &block, const ForwardResults &results,
                         SoftmaxState state) {
  Location loc = kernel.loc;
  ScoredOp op = kernel.attention;
  auto attention = cast<AttentionOp>(op.getOperation());
  if (kernel.sink)
    state = joinSink(b, kernel, block, state);
  for (auto [result, output] : llvm::zip(results.returned, results.outputs)) {
    if (result == attention.getOutput())
      storeOutput(b, kernel, block,
                  normalize(b, loc, state.sums[0], state.sum,
                            1 / getKeptShare(attention)),
                  output);
    else
      storeRows(b, kernel, block, buildLse(b, loc, state), output);
  }
}

func::FuncOp attn::buildForward(OpBuilder &b, KernelMatch match) {
  OpBuilder::InsertionGuard guard(b);
  IRMapping mapping;
  func::FuncOp func = buildSignature(b, match, mapping);
  QueryKernel kernel(b, match.attention, mapping);
  ForwardResults results = {
      llvm::to_vector_of<Value, 2>(
          match.func.getBody().front().getTerminator()->getOperands()),
      llvm::to_vector_of<Value, 2>(
          func.getArguments().drop_front(match.func.getNumArguments()))};
  PlanAttr plan = match.attention.getPlanAttr();
  if (plan.getSplitKeys() != 1) {
    buildSplitForward(b, kernel, func.getSymName(), results);
    return func;
  }
  auto program = tile::KernelOp::create(
      b, kernel.loc, func.getSymName(), plan,
      ValueRange{kernel.batches, kernel.headParts, kernel.queryBlocks});
  b.setInsertionPoint(program.getTerminator());
  QueryBlock block = buildQueryBlock(b, kernel, program.getNumbers());
  buildEpilogue(b, kernel, block, results, buildSteps(b, kernel, block));
  return func;
}
