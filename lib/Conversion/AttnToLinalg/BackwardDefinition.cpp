//===- BackwardDefinition.cpp - the gradients, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// With x, y, the softmax p and its reference m and sum l of ScoreDefinition.h,
// and w = p after dropout,
//   dw[b,k,g,i,j] = sum_e d_output[b,k,g,i,e] v[b,k,j,e], after dropout dp
//   delta[b,k,g,i] = sum_j p dp
//     (where output is read as it was saved, as in the input type:
//     sum_e d_output output)
//   dy = p (dp - delta + d_lse), 0 where y = -inf                     (C11)
//   dx = pullback(dy, x), 0 where y = -inf
//   d_query[b,k,g,i,d] = sum_j scale dx k[b,k,j,d]
//   d_key[b,k,j,d] = sum_{g,i} scale dx q[b,k,g,i,d]                  (C13)
//   d_value[b,k,j,e] = sum_{g,i} w d_output[b,k,g,i,e]
//   d_sink[k,g] = sum_{b,i} exp(sink - m) / l (d_lse - delta)
// lse is computed again, not read, and so is output in f64 (C8). What its
// rounding costs a gradient that reads it is seen in the input type (C16).
//
//===----------------------------------------------------------------------===//

#include "ScalarBody.h"
#include "ScoreDefinition.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

namespace {
class BackwardDefinition : ScoreDefinition {
public:
  BackwardDefinition(OpBuilder &b, AttentionBackwardOp op,
                     OraclePrecision precision)
      : ScoreDefinition(b, op, precision), backward(op),
        readsOutput(precision == OraclePrecision::Saved ||
                    precision == OraclePrecision::Input) {}
  SmallVector<Value> build();

private:
  Value buildScoreGradient(Value scores, const Softmax &softmax, Value dp,
                           Value delta);
  Value buildSinkGradient(const Softmax &softmax, Value delta);
  SmallVector<Value> makeCaptureGradients();
  SmallVector<Value> buildPullback(Value x, Value scores,
                                   SmallVector<Value> gradients);
  SmallVector<Value> goBack(ValueRange at, Value x, Value dy,
                            SmallVector<Value> gradients);

  /// delta - d_lse, or delta.
  Value addLse(OpBuilder &b, ValueRange deltaAndLse) {
    if (deltaAndLse.size() == 1)
      return deltaAndLse[0];
    return arith::SubFOp::create(b, loc, deltaAndLse[0],
                                 extend(b, deltaAndLse[1]));
  }
  /// delta, and d_lse where there is one.
  SmallVector<Value> rowGradients(Value delta) {
    SmallVector<Value> rows = {delta};
    if (Value dLse = backward.getDLse())
      rows.push_back(splitHeads(dLse, {I}));
    return rows;
  }

  AttentionBackwardOp backward;
  /// delta comes from output, as it was saved.
  bool readsOutput;
};
} // namespace

Value BackwardDefinition::buildScoreGradient(Value scores,
                                             const Softmax &softmax, Value dp,
                                             Value delta) {
  SmallVector<Value> inputs = {scores, softmax.probabilities};
  SmallVector<SmallVector<Dim>> inputDims(2, {B, K, G, I, J});
  SmallVector<Value> rows = rowGradients(delta);
  llvm::append_range(inputs, rows);
  inputDims.resize(inputs.size(), {B, K, G, I});
  return generic(scoreDims, inputs, inputDims, dp, scoreDims,
                 [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   Value rest = addLse(b, v.slice(2, rows.size()));
                   Value excess = arith::SubFOp::create(b, loc, v.back(), rest);
                   Value dy =
                       arith::MulFOp::create(b, loc, extend(b, v[1]), excess);
                   return arith::SelectOp::create(b, loc, isNone(b, v[0]),
                                                  constant(b, 0), store(b, dy));
                 });
}

Value BackwardDefinition::buildSinkGradient(const Softmax &softmax,
                                            Value delta) {
  SmallVector<Value> inputs = {softmax.top, softmax.sums};
  llvm::append_range(inputs, rowGradients(delta));
  SmallVector<SmallVector<Dim>> inputDims(inputs.size(), {B, K, G, I});
  Value sums = generic(
      rowDims, inputs, inputDims, filled({K, G}, compute, 0), {K, G},
      [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
        Value rest = addLse(b, v.slice(2, inputs.size() - 2));
        Value weight =
            arith::DivFOp::create(b, loc, buildSinkWeight(b, v[0]), v[1]);
        Value part = arith::MulFOp::create(b, loc, weight, rest);
        Value empty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                            v[1], constant(b, 0));
        part = arith::SelectOp::create(b, loc, empty, constant(b, 0), part);
        return arith::SubFOp::create(b, loc, v.back(), part,
                                     arith::FastMathFlags::reassoc);
      });
  SmallVector<ReassociationIndices> heads = {{0, 1}};
  return tensor::CollapseShapeOp::create(b, loc, sums, heads);
}

/// Tensors of 0 in the shapes of the captures that have a gradient.
SmallVector<Value> BackwardDefinition::makeCaptureGradients() {
  SmallVector<Value> gradients;
  Value zero = constant(b, 0);
  for (int64_t number :
       backward.getGradCaptures().value_or(ArrayRef<int64_t>())) {
    Value capture = op.getCaptures()[number];
    SmallVector<OpFoldResult> shape;
    if (isa<RankedTensorType>(capture.getType()))
      shape = tensor::getMixedSizes(b, loc, capture);
    Value empty = tensor::EmptyOp::create(b, loc, shape, compute);
    gradients.push_back(
        linalg::FillOp::create(b, loc, zero, empty).getResult(0));
  }
  return gradients;
}

/// One position whose score is not -inf: dx at the end of the gradients of
/// captures.
SmallVector<Value> BackwardDefinition::goBack(ValueRange at, Value x, Value dy,
                                              SmallVector<Value> gradients) {
  Value indices[] = {at[B], buildHead(b, at[K], at[G]), at[I], at[J]};
  Value numbers[] = {dy, x};
  SmallVector<Value> arguments;
  for (Value number : numbers)
    arguments.push_back(
        narrowScore ? arith::TruncFOp::create(b, loc, b.getF32Type(), number)
                          .getResult()
                    : number);
  for (Value index : indices)
    arguments.push_back(
        arith::IndexCastOp::create(b, loc, b.getI32Type(), index));
  llvm::append_range(arguments, op.getCaptures());
  auto add = [&](CaptureAddOp addition, Value value, ValueRange place) {
    unsigned capture =
        cast<BlockArgument>(addition.getCapture()).getArgNumber() -
        AttentionBackwardOp::kPullbackArguments;
    Value &gradient = gradients[*backward.getGradientNumber(capture)];
    gradient = buildAdd(b, loc, gradient, place, extend(b, value));
  };
  Value dx = buildScalarBody(b, backward.getPullback(), arguments,
                             wide && !narrowScore, add);
  gradients.push_back(store(b, extend(b, dx)));
  return gradients;
}

/// One position after the other, as the pullback may add to any element of a
/// capture. `carried` are the gradients of captures and, at the end, dy, which
/// becomes dx.
SmallVector<Value>
BackwardDefinition::buildPullback(Value x, Value scores,
                                  SmallVector<Value> carried) {
  OpBuilder::InsertionGuard guard(b);
  Value zero = arith::ConstantOp::create(b, loc, b.getIndexAttr(0));
  Value one = arith::ConstantOp::create(b, loc, b.getIndexAttr(1));
  SmallVector<scf::ForOp> loops;
  SmallVector<Value> at;
  for (Dim dim : scoreDims) {
    Value size = getValueOrCreateConstantIndexOp(b, loc, sizes[dim]);
    loops.push_back(scf::ForOp::create(b, loc, zero, size, one, carried));
    b.setInsertionPointToStart(loops.back().getBody());
    carried = SmallVector<Value>(loops.back().getRegionIterArgs());
    at.push_back(loops.back().getInductionVar());
  }
  Value score = tensor::ExtractOp::create(b, loc, scores, at);
  auto branch = scf::IfOp::create(b, loc, TypeRange(ValueRange(carried)),
                                  isNone(b, score), /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, carried);
  b.setInsertionPointToStart(branch.elseBlock());
  Value gradient = carried.pop_back_val();
  Value natural = tensor::ExtractOp::create(b, loc, x, at);
  Value dy = tensor::ExtractOp::create(b, loc, gradient, at);
  carried = goBack(at, natural, dy, carried);
  carried.back() =
      tensor::InsertOp::create(b, loc, carried.back(), gradient, at);
  scf::YieldOp::create(b, loc, carried);

  carried = SmallVector<Value>(branch.getResults());
  for (scf::ForOp loop : llvm::reverse(loops)) {
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(b, loc, carried);
    carried = SmallVector<Value>(loop.getResults());
  }
  return carried;
}

SmallVector<Value> BackwardDefinition::build() {
  Value query = splitHeads(op.getQuery(), {I, D});
  Value dOutput = splitHeads(backward.getDOutput(), {I, E});
  Value x = map(scoreDims, buildProducts(query),
                [&](OpBuilder &b, Location, ValueRange v) {
                  return scaleProduct(b, v[0]);
                });
  Value scores = map(scoreDims, x, [&](OpBuilder &b, Location, ValueRange v) {
    return buildPosition(b, v[0]);
  });
  Softmax softmax = buildSoftmax(scores);
  Value dp = contract({B, K, G, I, J, E}, dOutput, {B, K, G, I, E},
                      op.getValue(), {B, K, J, E}, scoreDims);
  dp = map(scoreDims, dp, [&](OpBuilder &b, Location, ValueRange v) {
    return store(b, v[0]);
  });
  Value weights = softmax.probabilities;
  if (op.hasDropout()) {
    weights = buildDropout(weights);
    dp = buildDropout(dp);
  }
  SmallVector<Dim> outputDims = {B, K, G, I, E};
  Value delta = readsOutput ? contract(outputDims, dOutput, outputDims,
                                       splitHeads(backward.getOutput(), {I, E}),
                                       outputDims, rowDims)
                            : contract(scoreDims, softmax.probabilities,
                                       scoreDims, dp, scoreDims, rowDims);
  Value dx = buildScoreGradient(scores, softmax, dp, delta);
  SmallVector<Value> gradients = makeCaptureGradients();
  if (backward.hasPullback()) {
    gradients.push_back(dx);
    gradients = buildPullback(x, scores, gradients);
    dx = gradients.pop_back_val();
  }
  Value products =
      map(scoreDims, dx, [&](OpBuilder &b, Location loc, ValueRange v) {
        Value scale = constant(b, op.getScaleValue());
        return store(b, arith::MulFOp::create(b, loc, v[0], scale));
      });
  SmallVector<Value> results = {
      contract({B, K, G, I, J, D}, products, scoreDims, op.getKey(),
               {B, K, J, D}, {B, K, G, I, D}),
      contract({B, K, G, I, J, D}, products, scoreDims, query, {B, K, G, I, D},
               {B, K, J, D}),
      contract({B, K, G, I, J, E}, weights, scoreDims, dOutput, {B, K, G, I, E},
               {B, K, J, E})};
  if (op.getSink())
    results.push_back(buildSinkGradient(softmax, delta));
  llvm::append_range(results, gradients);
  for (auto [value, result] : llvm::zip_equal(results, backward->getResults()))
    value = joinHeads(value, result.getType(), compute);
  return results;
}

SmallVector<Value> attn::buildDefinition(OpBuilder &b, AttentionBackwardOp op,
                                         OraclePrecision precision) {
  return BackwardDefinition(b, op, precision).build();
}
