//===- JvpDefinition.cpp - the tangents, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// With x and the softmax p of ScoreDefinition.h,
//   tx[b,k,g,i,j] = scale (sum_d t_q[b,k,g,i,d] key[b,k,j,d]
//                          + sum_d q[b,k,g,i,d] t_key[b,k,j,d])
//   ty = pushforward(tx, x)
//   t_lse[b,k,g,i] = sum_j p ty, of positions with p != 0              (C8)
//   tp = p (ty - t_lse), 0 where p = 0                                 (C8)
//   t_o[b,k,g,i,e] = sum_j tp v[b,k,j,e] + sum_j p t_v[b,k,j,e]
// where dropout takes from p and tp of t_o.
//
//===----------------------------------------------------------------------===//

#include "ScalarBody.h"
#include "ScoreDefinition.h"

using namespace mlir;
using namespace attn;

namespace {
class JvpDefinition : ScoreDefinition {
public:
  JvpDefinition(OpBuilder &b, AttentionJvpOp op, OraclePrecision precision)
      : ScoreDefinition(b, op, precision), jvp(op) {}
  SmallVector<Value> build();

private:
  Value buildProductTangent(Value query);
  Value pushForward(Value x, Value tx);
  Value buildLseTangent(Value weights, Value ty);
  Value buildWeightTangent(Value weights, Value ty, Value tLse);
  Value buildOutputTangent(Value weights, Value tWeights);

  /// The sum of two tensors of equal dimensions, as it is stored.
  Value addStored(ArrayRef<Dim> dims, Value lhs, Value rhs) {
    SmallVector<Dim> own(dims);
    return generic(dims, {lhs}, {own}, rhs, dims,
                   [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                     Value first = storeScore(b, v[0]);
                     Value second = storeScore(b, v[1]);
                     return storeScore(
                         b, arith::AddFOp::create(b, loc, first, second));
                   });
  }
  /// `value` where the weight is not 0, else 0.
  Value whereWeighted(OpBuilder &b, Value weight, Value value) {
    Value zero = constant(b, 0);
    Value isZero =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, weight, zero);
    return arith::SelectOp::create(b, loc, isZero, zero, value);
  }

  AttentionJvpOp jvp;
};
} // namespace

Value JvpDefinition::buildProductTangent(Value query) {
  Value tQuery = splitHeads(jvp.getTQuery(), {I, D});
  Value first = buildProducts(tQuery);
  Value second = contract({B, K, G, I, J, D}, query, {B, K, G, I, D},
                          jvp.getTKey(), {B, K, J, D}, scoreDims);
  return map(scoreDims, addStored(scoreDims, first, second),
             [&](OpBuilder &b, Location, ValueRange v) {
               return scaleProduct(b, v[0]);
             });
}

Value JvpDefinition::pushForward(Value x, Value tx) {
  if (!jvp.hasPushforward())
    return tx;
  return generic(scoreDims, {x}, {{B, K, G, I, J}}, tx, scoreDims,
                 [&](OpBuilder &b, Location loc, ValueRange v) {
                   SmallVector<Value> arguments;
                   for (Value number : {v[1], v[0]})
                     arguments.push_back(
                         narrowScore ? arith::TruncFOp::create(
                                           b, loc, b.getF32Type(), number)
                                           .getResult()
                                     : number);
                   llvm::append_range(arguments, buildIndices(b));
                   llvm::append_range(arguments, op.getCaptures());
                   Value ty = buildScalarBody(b, jvp.getPushforward(),
                                              arguments, wide && !narrowScore);
                   return storeScore(b, extend(b, ty));
                 });
}

Value JvpDefinition::buildLseTangent(Value weights, Value ty) {
  return generic(scoreDims, {weights, ty}, {{B, K, G, I, J}, {B, K, G, I, J}},
                 filled(rowDims, compute, 0), rowDims,
                 [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   Value weight = extend(b, v[0]);
                   Value part = arith::MulFOp::create(b, loc, weight, v[1]);
                   part = whereWeighted(b, weight, store(b, part));
                   return arith::AddFOp::create(b, loc, v[2], part,
                                                arith::FastMathFlags::reassoc);
                 });
}

Value JvpDefinition::buildWeightTangent(Value weights, Value ty, Value tLse) {
  return generic(scoreDims, {weights, tLse}, {{B, K, G, I, J}, {B, K, G, I}},
                 ty, scoreDims,
                 [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   Value weight = extend(b, v[0]);
                   Value rest = arith::SubFOp::create(b, loc, v[2], v[1]);
                   Value tangent = arith::MulFOp::create(b, loc, weight, rest);
                   return whereWeighted(b, weight, store(b, tangent));
                 });
}

Value JvpDefinition::buildOutputTangent(Value weights, Value tWeights) {
  SmallVector<Dim> dims = {B, K, G, I, E};
  auto sum = [&](Value factors, Value values) {
    return contract({B, K, G, I, J, E}, factors, scoreDims, values,
                    {B, K, J, E}, dims);
  };
  return addStored(dims, sum(tWeights, op.getValue()),
                   sum(weights, jvp.getTValue()));
}

SmallVector<Value> JvpDefinition::build() {
  Value query = splitHeads(op.getQuery(), {I, D});
  Value x = map(scoreDims, buildProducts(query),
                [&](OpBuilder &b, Location, ValueRange v) {
                  return scaleProduct(b, v[0]);
                });
  Value scores = map(scoreDims, x, [&](OpBuilder &b, Location, ValueRange v) {
    return buildPosition(b, v[0]);
  });
  Softmax softmax = buildSoftmax(scores);
  Value weights = softmax.probabilities;
  Value ty = pushForward(x, buildProductTangent(query));
  Value tLse = buildLseTangent(weights, ty);
  Value tWeights = buildWeightTangent(weights, ty, tLse);
  if (op.hasDropout()) {
    weights = buildDropout(weights);
    tWeights = buildDropout(tWeights);
  }
  Type output = jvp.getOutput().getType(), lse = jvp.getLse().getType();
  return {joinHeads(buildOutput(weights), output, stored()),
          joinHeads(buildLse(softmax), lse, compute),
          joinHeads(buildOutputTangent(weights, tWeights), output, compute),
          joinHeads(tLse, lse, compute)};
}

SmallVector<Value> attn::buildDefinition(OpBuilder &b, AttentionJvpOp op,
                                         OraclePrecision precision) {
  return JvpDefinition(b, op, precision).build();
}
