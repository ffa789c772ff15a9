//===- Jvp.cpp - the sequential kernel of attention and its tangents ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As Forward.cpp, with tangents beside: for one block of M query rows, over
// blocks of N keys,
//
//   s, x, p, m, l, correction, o       as there
//   ty      = pushforward(scale * (T_Q K[n]^T + Q T_K[n]^T))
//   w       = p (ty - c)
//   shift   = rowsum(w) / l
//   c       = c + shift
//   t       = (t - shift o) * correction + round(w - p shift) V[n]
//             + round(p) T_V[n]
//
// and at the end t / l and c, the mean of ty under the weights, which is the
// tangent of lse. That a common part of ty cancels is so used before anything
// is rounded: t is a sum over ty - c, with the mean c of the keys that were
// seen. A sink joins l after the loop and moves the mean once more.
//
//===----------------------------------------------------------------------===//

#include "QueryBlock.h"

#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class JvpKernel : public QueryKernel {
public:
  JvpKernel(OpBuilder &b, AttentionJvpOp op, IRMapping &mapping)
      : QueryKernel(b, op, mapping), op(op), f32(b.getF32Type()),
        tQuery(mapping.lookup(op.getTQuery())),
        tKey(mapping.lookup(op.getTKey())),
        tValue(mapping.lookup(op.getTValue())) {}

  void build(OpBuilder &b, StringRef name, ValueRange returned,
             ValueRange outputs);

private:
  /// What the loop carries.
  struct State {
    Value o, t, c, m, l;
    explicit State(ValueRange values)
        : o(values[0]), t(values[1]), c(values[2]), m(values[3]), l(values[4]) {
    }
  };
  Value stretch(OpBuilder &b, Value rows, Value like) {
    return vector::BroadcastOp::create(b, loc, like.getType(), rows);
  }
  Value pushForward(OpBuilder &outer, OpBuilder &b, const ScoreCoordinates &at,
                    Value products, Value tProducts);
  Value sumColumns(OpBuilder &b, Value matrix);
  /// Where the weight is not 0 (C8).
  Value whereWeighted(OpBuilder &outer, OpBuilder &b, Value p, Value value);
  SmallVector<Value> buildStep(OpBuilder &outer, OpBuilder &b,
                               const QueryBlock &block, Value n, State state);
  void joinSinkMean(OpBuilder &b, const QueryBlock &block, State state,
                    SoftmaxState &joined, Value &mean);

  AttentionJvpOp op;
  Type f32;
  Value tQuery, tKey, tValue;
  Value queryTile, tQueryTile;
};
} // namespace

/// ty of a block, from the products of scores and of their tangents.
Value JvpKernel::pushForward(OpBuilder &outer, OpBuilder &b,
                             const ScoreCoordinates &at, Value products,
                             Value tProducts) {
  auto type = cast<VectorType>(products.getType());
  Value scale = splat(outer, loc, type, attention.getScaleValue());
  Value tx = arith::MulFOp::create(b, loc, tProducts, scale);
  if (!op.hasPushforward())
    return tx;
  Value x = arith::MulFOp::create(b, loc, products, scale);
  Value arguments[] = {tx, x, at.batch, at.head, at.queries, at.keys};
  Region region;
  copyRegion(outer, b, op.getPushforward(), region, arguments, captures);
  return tile::expandScalarCode(b, &*outer.getInsertionPoint(), region,
                                arguments, type.getShape());
}

/// The sum over the columns, M x 1.
Value JvpKernel::sumColumns(OpBuilder &b, Value matrix) {
  Value zero = splat(b, loc, VectorType::get({numRows}, f32), 0.0);
  Value sums = vector::MultiDimReductionOp::create(b, loc, matrix, zero,
                                                   ArrayRef<bool>{false, true},
                                                   vector::CombiningKind::ADD);
  return vector::ShapeCastOp::create(b, loc, VectorType::get({numRows, 1}, f32),
                                     sums);
}

Value JvpKernel::whereWeighted(OpBuilder &outer, OpBuilder &b, Value p,
                               Value value) {
  if (!op.hasPushforward())
    return value;
  Value zero = splat(outer, loc, cast<VectorType>(p.getType()), 0.0);
  Value isNone =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, p, zero);
  return arith::SelectOp::create(b, loc, isNone, zero, value);
}

/// One step over the keys of block `n`: the new state.
SmallVector<Value> JvpKernel::buildStep(OpBuilder &outer, OpBuilder &b,
                                        const QueryBlock &block, Value n,
                                        State state) {
  KeyBlock keys = buildKeyBlock(b, *this, n);
  Value keyTile = loadKeys(b, *this, block, keys, key, paddedDim);
  Value zero =
      splat(outer, loc, VectorType::get({numRows, numColumns}, f32), 0.0);
  Value products =
      contract(b, loc, queryTile, keyTile, zero, /*transposed=*/true);
  Value tProducts =
      contract(b, loc, tQueryTile, keyTile, zero, /*transposed=*/true);
  Value tKeyTile = loadKeys(b, *this, block, keys, tKey, paddedDim);
  tProducts =
      contract(b, loc, queryTile, tKeyTile, tProducts, /*transposed=*/true);
  ScoreCoordinates at{block.batch32, block.head32, block.rows, keys.keys};
  tile::ScoresOp scored = buildScores(outer, b, *this, products, at);
  auto softmax =
      attn::buildSoftmax(b, *this, scored.getResult(), state.m, state.l);
  Value p = softmax.getProbabilities(), l = softmax.getNewSum();

  Value ty = pushForward(outer, b, at, products, tProducts);
  Value excess = arith::SubFOp::create(b, loc, ty, stretch(b, state.c, ty));
  Value w =
      whereWeighted(outer, b, p, arith::MulFOp::create(b, loc, p, excess));
  Value shift = normalize(b, loc, sumColumns(b, w), l, 1.0);
  Value c = arith::AddFOp::create(b, loc, state.c, shift);
  Value back = arith::NegFOp::create(b, loc, shift);
  Value tp = math::FmaOp::create(b, loc, p, stretch(b, back, p), w);

  Value correction = stretch(b, softmax.getCorrection(), state.o);
  Value o = arith::MulFOp::create(b, loc, state.o, correction);
  Value t = arith::MulFOp::create(b, loc, state.t, correction);
  t = math::FmaOp::create(b, loc, o, stretch(b, back, o), t);
  auto asFactor = [&](Value weights) {
    Value rounded = roundTo(b, loc, weights, element);
    return attention.hasDropout() ? dropWeights(outer, b, *this, at, rounded)
                                  : rounded;
  };
  Value factor = asFactor(p), tFactor = asFactor(tp);
  Value valueTile = loadKeys(b, *this, block, keys, value, paddedValueDim);
  o = contract(b, loc, factor, valueTile, o, /*transposed=*/false);
  t = contract(b, loc, tFactor, valueTile, t, /*transposed=*/false);
  Value tValueTile = loadKeys(b, *this, block, keys, tValue, paddedValueDim);
  t = contract(b, loc, factor, tValueTile, t, /*transposed=*/false);
  return {o, t, c, softmax.getNewMax(), l};
}

/// A sink joins the softmax: its score does not move, which makes the mean
/// smaller.
///
///   c' = c (l exp(m - m') / l')
///   t' = (t + (c - c') o) exp(m - m')
void JvpKernel::joinSinkMean(OpBuilder &b, const QueryBlock &block, State state,
                             SoftmaxState &joined, Value &mean) {
  Value correction;
  joined = joinSink(b, *this, block, joined, &correction);
  Value share = arith::MulFOp::create(b, loc, state.l, correction);
  share = normalize(b, loc, share, joined.sum, 1.0);
  mean = arith::MulFOp::create(b, loc, state.c, share);
  Value less = arith::SubFOp::create(b, loc, state.c, mean);
  Value o = joined.sums[0];
  joined.sums[1] =
      math::FmaOp::create(b, loc, o, stretch(b, less, o), joined.sums[1]);
}

void JvpKernel::build(OpBuilder &b, StringRef name, ValueRange returned,
                      ValueRange outputs) {
  auto program =
      tile::KernelOp::create(b, loc, name, attention.getPlanAttr(),
                             ValueRange{batches, heads, queryBlocks});
  b.setInsertionPoint(program.getTerminator());
  QueryBlock block = buildQueryBlock(b, *this, program.getNumbers());
  queryTile = loadQueries(b, *this, block, query);
  tQueryTile = loadQueries(b, *this, block, tQuery);
  Value none =
      splat(b, loc, VectorType::get({numRows, paddedValueDim}, f32), 0.0);
  auto rowType = VectorType::get({numRows, 1}, f32);
  Value zero = splat(b, loc, rowType, 0.0);
  Value initial[] = {
      none, none, zero,
      splat(b, loc, rowType, -std::numeric_limits<double>::infinity()), zero};
  auto loop = scf::ForOp::create(b, loc, c0, keyBlocks, c1, initial);
  OpBuilder outer(loop);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  scf::YieldOp::create(inner, loc,
                       buildStep(outer, inner, block, loop.getInductionVar(),
                                 State(loop.getRegionIterArgs())));

  State state(loop.getResults());
  SoftmaxState joined{{state.o, state.t}, state.m, state.l};
  Value mean = state.c;
  if (sink)
    joinSinkMean(b, block, state, joined, mean);
  for (auto [result, output] : llvm::zip(returned, outputs)) {
    if (result == op.getLse())
      storeRows(b, *this, block, buildLse(b, loc, joined), output);
    else if (result == op.getTLse())
      storeRows(b, *this, block, mean, output);
    else
      storeOutput(b, *this, block,
                  normalize(b, loc, joined.sums[result == op.getTOutput()],
                            joined.sum, 1 / getKeptShare(attention)),
                  output);
  }
}

func::FuncOp attn::buildJvp(OpBuilder &b, KernelMatch match) {
  OpBuilder::InsertionGuard guard(b);
  IRMapping mapping;
  func::FuncOp func = buildSignature(b, match, mapping);
  auto op = cast<AttentionJvpOp>(match.attention.getOperation());
  JvpKernel(b, op, mapping)
      .build(b, func.getSymName(),
             match.func.getBody().front().getTerminator()->getOperands(),
             func.getArguments().drop_front(match.func.getNumArguments()));
  return func;
}
