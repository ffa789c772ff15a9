//===- Definition.cpp - the definition of attention, in linalg -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// With h = k G + g, the query heads are taken apart into [key head, group], so
// that every indexing map is a projected permutation of
//   b, k, g, i (query), j (key), and d (head dimension):
//   s[b,k,g,i,j] = sum_d q[b,k,g,i,d] key[b,k,j,d]
//   x = score(scale s), -inf where mask is false                 (C14, C15)
//   m[b,k,g,i] = max_j x, 0 where that is -inf                        (C17)
//   w = exp(x - m), l = sum_j w, lse = m + log l                      (C16)
//   p = w / l, 0 where l = 0                                          (C17)
// A sink joins m and l (C26); dropout takes from p (C29).
//   o[b,k,g,i,d] = sum_j p[b,k,g,i,j] v[b,k,j,d]
//
//===----------------------------------------------------------------------===//

#include "ScalarBody.h"

#include "attn/Conversion/AttnToLinalg.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Dropout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {

using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

/// Loop dimensions by name.
enum Dim : unsigned { B, K, G, I, J, D, NumDims };

class Definition {
public:
  Definition(OpBuilder &b, AttentionOp op, OraclePrecision precision)
      : b(b), op(op), loc(op.getLoc()),
        wide(precision != OraclePrecision::Input),
        narrowScore(precision == OraclePrecision::Score),
        compute(wide ? b.getF64Type() : b.getF32Type()),
        input(op.getElementType()) {}

  AttentionDefinition build();

private:
  void findSizes();
  Value splitHeads(Value tensor);
  Value joinHeads(Value tensor, RankedTensorType shape, Type element);
  Value filled(ArrayRef<Dim> dims, Type element, double value);
  Value generic(ArrayRef<Dim> loops, ArrayRef<Value> inputs,
                ArrayRef<SmallVector<Dim>> inputDims, Value init,
                ArrayRef<Dim> resultDims, Body body);
  Value buildScores(Value query);
  Value buildHead(OpBuilder &b);
  SmallVector<Value> buildIndices(OpBuilder &b);
  Value buildPosition(OpBuilder &b, Location loc, Value x);
  Value buildSinkWeight(OpBuilder &b, Value top);
  Value buildDropout(Value probabilities);

  Value constant(OpBuilder &b, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(compute, value));
  }
  /// An input element in the type of the computation.
  Value extend(OpBuilder &b, Value value) {
    return value.getType() == compute
               ? value
               : arith::ExtFOp::create(b, loc, compute, value).getResult();
  }
  /// What an eager framework stores between two steps.
  Value round(OpBuilder &b, Value value) {
    return wide || input == compute
               ? value
               : arith::TruncFOp::create(b, loc, input, value).getResult();
  }
  /// A score as it is stored. One that the input type cannot hold stays f32:
  /// t0 is then what a framework gives that keeps such scores in f32 (C20).
  Value storeScore(OpBuilder &b, Value x) {
    if (wide || input == compute)
      return x;
    double largest =
        APFloat::getLargest(input.getFloatSemantics()).convertToDouble();
    Value size = math::AbsFOp::create(b, loc, x);
    Value isLarge = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                          size, constant(b, largest));
    Value rounded = extend(b, round(b, x));
    return arith::SelectOp::create(b, loc, isLarge, x, rounded);
  }
  /// The type of a tensor between two steps.
  Type stored() { return wide ? compute : input; }

  OpBuilder &b;
  AttentionOp op;
  Location loc;
  bool wide, narrowScore;
  FloatType compute, input;
  OpFoldResult sizes[NumDims];
  OpFoldResult queryHeads, valueDim;
};

} // namespace

/// size(tensor, dim), from whichever tensor knows it.
static OpFoldResult findSize(OpBuilder &b, Location loc,
                             ArrayRef<Value> tensors, int64_t dim) {
  for (Value tensor : tensors)
    if (auto type = cast<RankedTensorType>(tensor.getType());
        !type.isDynamicDim(dim))
      return b.getIndexAttr(type.getDimSize(dim));
  return tensor::getMixedSize(b, loc, tensors.front(), dim);
}

void Definition::findSizes() {
  Value q = op.getQuery(), k = op.getKey(), v = op.getValue();
  sizes[B] = findSize(b, loc, {q, k, v}, AttentionOp::kBatch);
  queryHeads = findSize(b, loc, {q}, AttentionOp::kHead);
  sizes[K] = findSize(b, loc, {k, v}, AttentionOp::kHead);
  sizes[I] = findSize(b, loc, {q}, AttentionOp::kLength);
  sizes[J] = findSize(b, loc, {k, v}, AttentionOp::kLength);
  sizes[D] = b.getIndexAttr(op.getHeadDim());
  valueDim = b.getIndexAttr(op.getValueHeadDim());
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

/// [B, H, I, D] -> [B, K, G, I, D].
Value Definition::splitHeads(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  OpFoldResult shape[] = {sizes[B], sizes[K], sizes[G], sizes[I], sizes[D]};
  SmallVector<int64_t> split;
  for (OpFoldResult size : shape)
    split.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto splitType = RankedTensorType::get(split, type.getElementType());
  if (!ShapedType::isDynamic(split[K])) {
    SmallVector<ReassociationIndices> groups = {{0}, {1, 2}, {3}, {4}};
    int64_t source[] = {split[0], type.getDimSize(1), split[3], split[4]};
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

/// [B, K, G, I, …] -> [B, H, I, …], with the static shape of `shape`.
Value Definition::joinHeads(Value tensor, RankedTensorType shape,
                            Type element) {
  SmallVector<ReassociationIndices> groups = {{0}, {1, 2}, {3}};
  if (shape.getRank() == 4)
    groups.push_back({4});
  Value joined = tensor::CollapseShapeOp::create(b, loc, tensor, groups);
  auto type = RankedTensorType::get(shape.getShape(), element);
  if (joined.getType() == type)
    return joined;
  return tensor::CastOp::create(b, loc, type, joined);
}

Value Definition::filled(ArrayRef<Dim> dims, Type element, double value) {
  SmallVector<OpFoldResult> shape;
  for (Dim dim : dims)
    shape.push_back(dim == D ? valueDim : sizes[dim]);
  Value empty = tensor::EmptyOp::create(b, loc, shape, element);
  Value scalar =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(element, value));
  return linalg::FillOp::create(b, loc, scalar, empty).getResult(0);
}

/// A linalg.generic over `loops`; those absent from `resultDims` are reduced.
/// A body for reductions sees the accumulator as its last argument.
Value Definition::generic(ArrayRef<Dim> loops, ArrayRef<Value> inputs,
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

/// acc + a * b; the order of a sum is nobody's promise.
static Value multiplyAdd(OpBuilder &b, Location loc, Value lhs, Value rhs,
                         Value accumulator) {
  Value product = arith::MulFOp::create(b, loc, lhs, rhs);
  return arith::AddFOp::create(b, loc, accumulator, product,
                               arith::FastMathFlags::reassoc);
}

/// The number of the query head, in a body over K and G.
Value Definition::buildHead(OpBuilder &b) {
  Value group = getValueOrCreateConstantIndexOp(b, loc, sizes[G]);
  Value first =
      arith::MulIOp::create(b, loc, linalg::IndexOp::create(b, loc, K), group);
  return arith::AddIOp::create(b, loc, first,
                               linalg::IndexOp::create(b, loc, G));
}

/// b, h, i and j as the regions see them, in a body over all of them.
SmallVector<Value> Definition::buildIndices(OpBuilder &b) {
  Value indices[] = {linalg::IndexOp::create(b, loc, B), buildHead(b),
                     linalg::IndexOp::create(b, loc, I),
                     linalg::IndexOp::create(b, loc, J)};
  return llvm::map_to_vector(indices, [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  });
}

/// Score and mask of one position, from the scaled score.
Value Definition::buildPosition(OpBuilder &b, Location loc, Value x) {
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
    Value hidden = constant(b, -std::numeric_limits<double>::infinity());
    x = arith::SelectOp::create(b, loc, visible, x, hidden);
  }
  return x;
}

/// Scores after score and mask, in the type of the computation.
Value Definition::buildScores(Value query) {
  Value sums = generic(
      {B, K, G, I, J, D}, {query, op.getKey()}, {{B, K, G, I, D}, {B, K, J, D}},
      filled({B, K, G, I, J}, compute, 0), {B, K, G, I, J},
      [&](OpBuilder &b, Location loc, ValueRange v) {
        return multiplyAdd(b, loc, extend(b, v[0]), extend(b, v[1]), v[2]);
      });
  return generic({B, K, G, I, J}, {}, {}, sums, {B, K, G, I, J},
                 [&](OpBuilder &b, Location loc, ValueRange v) {
                   Value x = arith::MulFOp::create(
                       b, loc, v[0], constant(b, op.getScaleValue()));
                   return buildPosition(b, loc, storeScore(b, x));
                 });
}

/// exp(sink - top), or the sink itself without a `top`, in a body over K and G.
Value Definition::buildSinkWeight(OpBuilder &b, Value top) {
  Value sink =
      tensor::ExtractOp::create(b, loc, op.getSink(), ValueRange{buildHead(b)});
  sink = extend(b, sink);
  if (!top)
    return sink;
  return math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, sink, top));
}

/// Probabilities of the keys that dropout keeps, over 1 - dropout_p.
Value Definition::buildDropout(Value probabilities) {
  double p = op.getDropoutP()->convertToDouble();
  Region keepRegion;
  buildKeepRegion(b, loc, keepRegion, p);
  return generic({B, K, G, I, J}, {}, {}, probabilities, {B, K, G, I, J},
                 [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                   SmallVector<Value> arguments = buildIndices(b);
                   llvm::append_range(arguments, op.getDropoutKey());
                   Value keep = buildScalarBody(b, keepRegion, arguments, wide);
                   Value kept = arith::MulFOp::create(b, loc, extend(b, v[0]),
                                                      constant(b, 1 / (1 - p)));
                   return round(b, arith::SelectOp::create(b, loc, keep, kept,
                                                           constant(b, 0)));
                 });
}

AttentionDefinition Definition::build() {
  findSizes();
  double infinity = std::numeric_limits<double>::infinity();
  Value scores = buildScores(splitHeads(op.getQuery()));

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
  top = generic(
      {B, K, G, I}, {}, {}, top, {B, K, G, I},
      [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
        Value none = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                           v[0], constant(b, -infinity));
        return arith::SelectOp::create(b, loc, none, constant(b, 0), v[0]);
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
  SmallVector<Dim> scoreDims = {B, K, G, I, J};
  Value target = stored() == compute ? weights : filled(scoreDims, stored(), 0);
  SmallVector<Value> inputs = {sums};
  SmallVector<SmallVector<Dim>> inputDims = {{B, K, G, I}};
  if (target != weights) {
    inputs.push_back(weights);
    inputDims.push_back(scoreDims);
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
  if (op.hasDropout())
    probabilities = buildDropout(probabilities);
  Value output = generic(
      {B, K, G, I, J, D}, {probabilities, op.getValue()},
      {{B, K, G, I, J}, {B, K, J, D}}, filled({B, K, G, I, D}, compute, 0),
      {B, K, G, I, D}, [&](OpBuilder &b, Location loc, ValueRange v) {
        return multiplyAdd(b, loc, extend(b, v[0]), extend(b, v[1]), v[2]);
      });
  if (stored() != compute)
    output = generic(
        {B, K, G, I, D}, {output}, {{B, K, G, I, D}},
        filled({B, K, G, I, D}, stored(), 0), {B, K, G, I, D},
        [&](OpBuilder &b, Location, ValueRange v) { return round(b, v[0]); });
  Value lse = generic({B, K, G, I}, {top}, {{B, K, G, I}}, sums, {B, K, G, I},
                      [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
                        Value log = math::LogOp::create(b, loc, v[1]);
                        return arith::AddFOp::create(b, loc, v[0], log);
                      });
  return {joinHeads(output, op.getOutput().getType(), stored()),
          joinHeads(lse, op.getLse().getType(), compute)};
}

AttentionDefinition attn::buildDefinition(OpBuilder &b, AttentionOp op,
                                          OraclePrecision precision) {
  return Definition(b, op, precision).build();
}
