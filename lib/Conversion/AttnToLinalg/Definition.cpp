//===- Definition.cpp - the definition of attention, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreDefinition.h"

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
  Softmax softmax = buildSoftmax(scores);
  Value weights = softmax.probabilities;
  if (op.hasDropout())
    weights = buildDropout(weights);
  return {joinHeads(buildOutput(weights), attention.getOutput().getType(),
                    stored()),
          joinHeads(buildLse(softmax), attention.getLse().getType(), compute)};
}

SmallVector<Value> attn::buildDefinition(OpBuilder &b, AttentionOp op,
                                         OraclePrecision precision) {
  return Definition(b, op, precision).build(op);
}
