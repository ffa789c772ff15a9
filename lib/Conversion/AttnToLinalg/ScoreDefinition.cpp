//===- ScoreDefinition.cpp - scores and weights, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScoreDefinition.h"

#include "ScalarBody.h"

#include "attn/Dialect/Attn/Transforms/Dropout.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace attn;

static constexpr double infinity = std::numeric_limits<double>::infinity();

ScoreDefinition::ScoreDefinition(OpBuilder &b, ScoredOp op,
                                 OraclePrecision precision)
    : b(b), op(op), loc(op.getLoc()), wide(precision != OraclePrecision::Input),
      narrowScore(precision == OraclePrecision::Score),
      compute(wide ? b.getF64Type() : b.getF32Type()),
      input(op.getElementType()) {
  findSizes();
}

/// size(tensor, dim), from whichever tensor knows it.
static OpFoldResult findSize(OpBuilder &b, Location loc,
                             ArrayRef<Value> tensors, int64_t dim) {
  for (Value tensor : tensors)
    if (auto type = cast<RankedTensorType>(tensor.getType());
        !type.isDynamicDim(dim))
      return b.getIndexAttr(type.getDimSize(dim));
  return tensor::getMixedSize(b, loc, tensors.front(), dim);
}

void ScoreDefinition::findSizes() {
  Value q = op.getQuery(), k = op.getKey(), v = op.getValue();
  sizes[B] = findSize(b, loc, {q, k, v}, ScoredOp::kBatch);
  queryHeads = findSize(b, loc, {q}, ScoredOp::kHead);
  sizes[K] = findSize(b, loc, {k, v}, ScoredOp::kHead);
  sizes[I] = findSize(b, loc, {q}, ScoredOp::kLength);
  sizes[J] = findSize(b, loc, {k, v}, ScoredOp::kLength);
  sizes[D] = b.getIndexAttr(op.getHeadDim());
  sizes[E] = b.getIndexAttr(op.getValueHeadDim());
  std::optional<int64_t> heads = getConstantIntValue(queryHeads);
  std::optional<int64_t> keyHeads = getConstantIntValue(sizes[K]);
  if (heads && keyHeads) {
    sizes[G] = b.getIndexAttr(*heads / *keyHeads);
    return;
  }
  Value group = arith::DivUIOp::create(
      b, loc, getValueOrCreateConstantIndexOp(b, loc, queryHeads),
      getValueOrCreateConstantIndexOp(b, loc, sizes[K]));
  sizes[G] = group;
}

/// [B, H, …] -> [B, K, G, …].
Value ScoreDefinition::splitHeads(Value tensor, ArrayRef<Dim> rest) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> shape = {sizes[B], sizes[K], sizes[G]};
  for (Dim dim : rest)
    shape.push_back(sizes[dim]);
  SmallVector<int64_t> split;
  for (OpFoldResult size : shape)
    split.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto splitType = RankedTensorType::get(split, type.getElementType());
  if (!ShapedType::isDynamic(split[K])) {
    SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
    SmallVector<int64_t> source = {split[0], type.getDimSize(1)};
    for (size_t dim = 3; dim < shape.size(); ++dim) {
      groups.push_back({static_cast<int64_t>(dim)});
      source.push_back(split[dim]);
    }
    auto sourceType = RankedTensorType::get(source, type.getElementType());
    if (sourceType != type)
      tensor = tensor::CastOp::create(b, loc, sourceType, tensor);
    return tensor::ExpandShapeOp::create(b, loc, splitType, tensor, groups,
                                         shape);
  }
  // Upstream lowers expand_shape with one unknown part per group at most.
  SmallVector<Value> extents;
  for (OpFoldResult size : shape)
    extents.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
  Value extentsTensor = tensor::FromElementsOp::create(b, loc, extents);
  return tensor::ReshapeOp::create(b, loc, splitType, tensor, extentsTensor);
}

/// [B, K, G, …] -> [B, H, …], with the static shape of `shape`; a tensor that
/// has as many dimensions as `shape` only gets that.
Value ScoreDefinition::joinHeads(Value tensor, Type shape, Type element) {
  auto wanted = cast<RankedTensorType>(shape);
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  if (rank != wanted.getRank()) {
    SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
    for (int64_t dim = 3; dim < rank; ++dim)
      groups.push_back({dim});
    tensor = tensor::CollapseShapeOp::create(b, loc, tensor, groups);
  }
  auto type = RankedTensorType::get(wanted.getShape(), element);
  if (tensor.getType() == type)
    return tensor;
  return tensor::CastOp::create(b, loc, type, tensor);
}

Value ScoreDefinition::filled(ArrayRef<Dim> dims, Type element, double value) {
  SmallVector<OpFoldResult> shape;
  for (Dim dim : dims)
    shape.push_back(sizes[dim]);
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  Value scalar =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(element, value));
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

/// A linalg.generic over `loops`; those absent from `resultDims` are reduced.
/// A body for reductions sees the accumulator as its last argument.
Value ScoreDefinition::generic(ArrayRef<Dim> loops, ArrayRef<Value> inputs,
                               ArrayRef<SmallVector<Dim>> inputDims, Value init,
                               ArrayRef<Dim> resultDims, Body body) {
  auto makeMap = [&](ArrayRef<Dim> dims) {
    SmallVector<AffineExpr> results;
    for (Dim dim : dims)
      results.push_back(
          b.getAffineDimExpr(llvm::find(loops, dim) - loops.begin()));
    return AffineMap::get(loops.size(), 0, results, b.getContext());
  };
  SmallVector<AffineMap> maps;
  for (ArrayRef<Dim> dims : inputDims)
    maps.push_back(makeMap(dims));
  maps.push_back(makeMap(resultDims));
  SmallVector<utils::IteratorType> iterators;
  for (Dim dim : loops)
    iterators.push_back(llvm::is_contained(resultDims, dim)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             b, loc, init.getType(), inputs, init, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange arguments) {
               linalg::YieldOp::create(b, loc, body(b, loc, arguments));
             })
      .getResult(0);
}

Value ScoreDefinition::map(ArrayRef<Dim> dims, Value tensor, Body body) {
  return generic(dims, {}, {}, tensor, dims, body);
}

/// acc + a * b; the order of a sum is nobody's promise.
static Value multiplyAdd(OpBuilder &b, Location loc, Value lhs, Value rhs,
                         Value accumulator) {
  Value product = arith::MulFOp::create(b, loc, lhs, rhs);
  return arith::AddFOp::create(b, loc, accumulator, product,
                               arith::FastMathFlags::reassoc);
}

Value ScoreDefinition::contract(ArrayRef<Dim> loops, Value lhs,
                                ArrayRef<Dim> lhsDims, Value rhs,
                                ArrayRef<Dim> rhsDims,
                                ArrayRef<Dim> resultDims) {
  return generic(
      loops, {lhs, rhs}, {SmallVector<Dim>(lhsDims), SmallVector<Dim>(rhsDims)},
      filled(resultDims, compute, 0), resultDims,
      [&](OpBuilder &b, Location loc, ValueRange v) {
        return multiplyAdd(b, loc, extend(b, v[0]), extend(b, v[1]), v[2]);
      });
}

/// The number of a query head.
Value ScoreDefinition::buildHead(OpBuilder &b, Value keyHead, Value group) {
  Value groups = getValueOrCreateConstantIndexOp(b, loc, sizes[G]);
  Value first = arith::MulIOp::create(b, loc, keyHead, groups);
  return arith::AddIOp::create(b, loc, first, group);
}

/// The same in a body over K and G.
Value ScoreDefinition::buildHead(OpBuilder &b) {
  Value keyHead = linalg::IndexOp::create(b, loc, K);
  return buildHead(b, keyHead, linalg::IndexOp::create(b, loc, G));
}

/// b, h, i and j as the regions see them, in a body over all of them.
SmallVector<Value> ScoreDefinition::buildIndices(OpBuilder &b) {
  Value indices[] = {linalg::IndexOp::create(b, loc, B), buildHead(b),
                     linalg::IndexOp::create(b, loc, I),
                     linalg::IndexOp::create(b, loc, J)};
  return llvm::map_to_vector(indices, [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  });
}

/// A score as it is stored. One that the input type cannot hold stays f32: t0
/// is then what a framework gives that keeps such scores in f32 (C20).
Value ScoreDefinition::storeScore(OpBuilder &b, Value x) {
  if (wide || input == compute)
    return x;
  double largest =
      APFloat::getLargest(input.getFloatSemantics()).convertToDouble();
  Value size = math::AbsFOp::create(b, loc, x);
  Value isLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, size,
                                        constant(b, largest));
  Value rounded = extend(b, round(b, x));
  return arith::SelectOp::create(b, loc, isLarge, x, rounded);
}

/// Sums of q . k.
Value ScoreDefinition::buildProducts(Value query) {
  return contract({B, K, G, I, J, D}, query, {B, K, G, I, D}, op.getKey(),
                  {B, K, J, D}, scoreDims);
}

/// The natural score of a product, as it is stored.
Value ScoreDefinition::scaleProduct(OpBuilder &b, Value product) {
  Value scale = constant(b, op.getScaleValue());
  return storeScore(b, arith::MulFOp::create(b, loc, product, scale));
}

/// Score and mask of one position, from the scaled score.
Value ScoreDefinition::buildPosition(OpBuilder &b, Value x) {
  SmallVector<Value> arguments = buildIndices(b);
  llvm::append_range(arguments, op.getCaptures());
  if (op.hasScore()) {
    if (narrowScore)
      x = arith::TruncFOp::create(b, loc, b.getF32Type(), x);
    SmallVector<Value> scoreArguments = {x};
    llvm::append_range(scoreArguments, arguments);
    x = buildScalarBody(b, op.getScore(), scoreArguments, wide && !narrowScore);
    x = storeScore(b, extend(b, x));
  }
  if (op.hasMask()) {
    Value visible = buildScalarBody(b, op.getMask(), arguments, wide);
    x = arith::SelectOp::create(b, loc, visible, x, constant(b, -infinity));
  }
  return x;
}

/// Whether a score is -inf.
Value ScoreDefinition::isNone(OpBuilder &b, Value score) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, score,
                               constant(b, -infinity));
}

/// exp(sink - top), or the sink itself without a `top`, in a body over K and G.
Value ScoreDefinition::buildSinkWeight(OpBuilder &b, Value top) {
  Value sink =
      tensor::ExtractOp::create(b, loc, op.getSink(), ValueRange{buildHead(b)});
  sink = extend(b, sink);
  if (!top)
    return sink;
  return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, sink, top));
}

/// What dropout keeps, over 1 - dropout_p.
Value ScoreDefinition::buildDropout(Value tensor) {
  double p = op.getDropoutP()->convertToDouble();
  Region keepRegion;
  buildKeepRegion(b, loc, keepRegion, p);
  return map(scoreDims, tensor,
             [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
               SmallVector<Value> arguments = buildIndices(b);
               llvm::append_range(arguments, op.getDropoutKey());
               Value keep = buildScalarBody(b, keepRegion, arguments, wide);
               Value kept = arith::MulFOp::create(b, loc, extend(b, v[0]),
                                                  constant(b, 1 / (1 - p)));
               Value result = round(b, arith::SelectOp::create(
                                           b, loc, keep, kept, constant(b, 0)));
               return v[0].getType() == compute ? extend(b, result) : result;
             });
}

ScoreDefinition::Softmax ScoreDefinition::buildSoftmax(Value scores) {
  Value top = generic({B, K, G, I, J}, {scores}, {{B, K, G, I, J}},
                      filled({B, K, G, I}, compute, -infinity), {B, K, G, I},
                      [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                        return arith::MaximumFOp::create(b, loc, v[0], v[1]);
                      });
  if (op.getSink())
    top = generic({B, K, G, I}, {}, {}, top, {B, K, G, I},
                  [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                    return arith::MaximumFOp::create(
                        b, loc, v[0], buildSinkWeight(b, nullptr));
                  });
  // C17: exp(-inf - 0) = 0, where exp(-inf - -inf) would be NaN.
  top = generic({B, K, G, I}, {}, {}, top, {B, K, G, I},
                [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                  return arith::SelectOp::create(b, loc, isNone(b, v[0]),
                                                 constant(b, 0), v[0]);
                });
  Value weights =
      generic({B, K, G, I, J}, {top}, {{B, K, G, I}}, scores, {B, K, G, I, J},
              [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                Value x = arith::SubFOp::create(b, loc, v[1], v[0]);
                return math::ExpOp::create(b, loc, x);
              });
  Value firstSum = filled({B, K, G, I}, compute, 0);
  if (op.getSink())
    firstSum = generic({B, K, G, I}, {top}, {{B, K, G, I}}, firstSum,
                       {B, K, G, I}, [&](OpBuilder &b, Location, ValueRange v) {
                         return buildSinkWeight(b, v[0]);
                       });
  Value sums = generic({B, K, G, I, J}, {weights}, {{B, K, G, I, J}}, firstSum,
                       {B, K, G, I},
                       [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                         return arith::AddFOp::create(
                             b, loc, v[1], v[0], arith::FastMathFlags::reassoc);
                       });
  // The softmax: in the type that an eager framework stores, a new tensor where
  // that is another one.
  Value target = stored() == compute ? weights : filled(scoreDims, stored(), 0);
  SmallVector<Value> inputs = {sums};
  SmallVector<SmallVector<Dim>> inputDims = {{B, K, G, I}};
  if (target != weights) {
    inputs.push_back(weights);
    inputDims.push_back({B, K, G, I, J});
  }
  Value probabilities = generic(
      scoreDims, inputs, inputDims, target, scoreDims,
      [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
        Value empty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                            v[0], constant(b, 0));
        Value p = arith::DivFOp::create(b, loc, v[1], v[0]);
        return round(b,
                     arith::SelectOp::create(b, loc, empty, constant(b, 0), p));
      });
  return {top, sums, probabilities};
}

Value ScoreDefinition::buildOutput(Value weights) {
  Value output = contract({B, K, G, I, J, E}, weights, scoreDims, op.getValue(),
                          {B, K, J, E}, {B, K, G, I, E});
  if (stored() == compute)
    return output;
  return generic(
      {B, K, G, I, E}, {output}, {{B, K, G, I, E}},
      filled({B, K, G, I, E}, stored(), 0), {B, K, G, I, E},
      [&](OpBuilder &b, Location, ValueRange v) { return round(b, v[0]); });
}

Value ScoreDefinition::buildLse(const Softmax &softmax) {
  return generic(rowDims, {softmax.top}, {{B, K, G, I}}, softmax.sums, rowDims,
                 [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   Value log = math::LogOp::create(b, loc, v[1]);
                   return arith::AddFOp::create(b, loc, v[0], log);
                 });
}
