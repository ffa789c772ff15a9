//===- Definition.cpp - the definition of attention, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// With the softmax p of ScoreDefinition.h, its reference m and sum l,
//   o[b,k,g,i,e] = sum_j p[b,k,g,i,j] v[b,k,j,e]
//   lse = m + log l                                                   (C16)
//
//===----------------------------------------------------------------------===//

#include "ScoreDefinition.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;

namespace {
class Definition : ScoreDefinition {
public:
  using ScoreDefinition::ScoreDefinition;
  SmallVector<Value> build(AttentionOp attention);
};
} // namespace

SmallVector<Value> Definition::build(AttentionOp attention) {
  Value scores =
      map(scoreDims, buildProducts(splitHeads(op.getQuery(), {I, D})),
          [&](OpBuilder &b, Location, ValueRange v) {
            return buildPosition(b, scaleProduct(b, v[0]));
          });
  auto [top, sums, probabilities] = buildSoftmax(scores);
  if (op.hasDropout())
    probabilities = buildDropout(probabilities);
  Value output = contract({B, K, G, I, J, E}, probabilities, scoreDims,
                          op.getValue(), {B, K, J, E}, {B, K, G, I, E});
  if (stored() != compute)
    output = generic(
        {B, K, G, I, E}, {output}, {{B, K, G, I, E}},
        filled({B, K, G, I, E}, stored(), 0), {B, K, G, I, E},
        [&](OpBuilder &b, Location, ValueRange v) { return round(b, v[0]); });
  Value lse = generic(rowDims, {top}, {{B, K, G, I}}, sums, rowDims,
                      [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                        Value log = math::LogOp::create(b, loc, v[1]);
                        return arith::AddFOp::create(b, loc, v[0], log);
                      });
  return {joinHeads(output, attention.getOutput().getType(), stored()),
          joinHeads(lse, attention.getLse().getType(), compute)};
}

SmallVector<Value> attn::buildDefinition(OpBuilder &b, AttentionOp op,
                                         OraclePrecision precision) {
  return Definition(b, op, precision).build(op);
}
