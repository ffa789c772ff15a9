//===- NormalForm.cpp - attention as five structured operations -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Build.h"

#include "RegionBody.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::raise;

namespace {
/// Writes the normal form of one attention.
class NormalForm {
public:
  NormalForm(OpBuilder &b, Location loc, Extents &extents)
      : b(b), loc(loc), extents(extents) {}

  void build(const AttentionMatch &match, const AttentionOperands &operands);
  Value output, lse;
  Operation *product = nullptr;

private:
  // Loops of the operations; a map lists those of its dimensions.
  enum Loop { B, H, I, J, D };
  using Body = function_ref<Value(OpBuilder &, ValueRange)>;

  Value generic(ArrayRef<Value> inputs, ArrayRef<AffineMap> inputMaps,
                ArrayRef<unsigned> dims, OpFoldResult last, Type element,
                double start, Body body);
  AffineMap map(ArrayRef<unsigned> loops, unsigned numLoops) {
    SmallVector<AffineExpr> exprs;
    for (unsigned loop : loops)
      exprs.push_back(b.getAffineDimExpr(loop));
    return AffineMap::get(numLoops, 0, exprs, b.getContext());
  }
  AffineMap ofKey(unsigned last, unsigned key) {
    AffineExpr head = b.getAffineDimExpr(H);
    if (group > 1)
      head = head.floorDiv(group);
    return AffineMap::get(5, 0,
                          {b.getAffineDimExpr(B), head, b.getAffineDimExpr(key),
                           b.getAffineDimExpr(last)},
                          b.getContext());
  }
  Value extend(OpBuilder &b, Value value) {
    return value.getType().isF32()
               ? value
               : arith::ExtFOp::create(b, loc, b.getF32Type(), value)
                     .getResult();
  }
  Value scoreOf(OpBuilder &b, const AttentionMatch &match,
                const CapturedValues &captures, Value sum);

  OpBuilder &b;
  Location loc;
  Extents &extents;
  OpFoldResult sizes[3]; // of B, H, I
  int64_t group = 1;
};
} // namespace

/// A linalg.generic into a new tensor over `dims`, the last of size `last`;
/// loops that are not among `dims` are reduced.
Value NormalForm::generic(ArrayRef<Value> inputs, ArrayRef<AffineMap> inputMaps,
                          ArrayRef<unsigned> dims, OpFoldResult last,
                          Type element, double start, Body body) {
  SmallVector<OpFoldResult> shape;
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    shape.push_back(dim < 3 ? sizes[dim] : last);
  Value init = tensor::EmptyOp::create(b, loc, shape, element);
  unsigned numLoops = inputMaps.front().getNumDims();
  if (numLoops > dims.size()) {
    Value value =
        arith::ConstantOp::create(b, loc, b.getFloatAttr(element, start));
    init = linalg::FillOp::create(b, loc, value, init).getResult(0);
  }
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(map(dims, numLoops));
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop = 0; loop < numLoops; ++loop)
    iterators.push_back(llvm::is_contained(dims, loop)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  return linalg::GenericOp::create(
             b, loc, init.getType(), inputs, init, maps, iterators,
             [&](OpBuilder &b, Location loc, ValueRange v) {
               linalg::YieldOp::create(b, loc, body(b, v));
             })
      .getResult(0);
}

/// The masked score of one position.
Value NormalForm::scoreOf(OpBuilder &b, const AttentionMatch &match,
                          const CapturedValues &captures, Value sum) {
  Value scale = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(static_cast<float>(match.scale)));
  Value x = arith::MulFOp::create(b, loc, sum, scale);
  RegionBody body(b, loc, captures, captures.values());
  body.readInPlace();
  body.bind(match.x, x);
  for (auto [number, position] : llvm::enumerate(match.positions)) {
    Value index = linalg::IndexOp::create(b, loc, number);
    body.bind(position,
              arith::IndexCastOp::create(b, loc, b.getI32Type(), index));
  }
  Value y = body.emitFloat(match.score);
  if (!match.mask)
    return y;
  Value visible = body.emitInteger(match.mask, b.getI1Type());
  Value hidden =
      arith::ConstantOp::create(b, loc, b.getF32FloatAttr(-HUGE_VALF));
  return arith::SelectOp::create(b, loc, visible, y, hidden);
}

void NormalForm::build(const AttentionMatch &match,
                       const AttentionOperands &operands) {
  Type f32 = b.getF32Type();
  auto sizeOf = [&](Value tensor, int64_t dim) {
    return tensor::getMixedSize(b, loc, tensor, dim);
  };
  for (unsigned dim : {B, H, I})
    sizes[dim] = sizeOf(operands.query, dim);
  OpFoldResult keys = sizeOf(operands.key, 2);
  for (ExprRef dim : match.groups)
    group *= dim->extents[0];
  CapturedValues captures(b, loc, extents, match.x, {match.score, match.mask});
  auto add = [&](OpBuilder &b, Value x, Value y) -> Value {
    return arith::AddFOp::create(b, loc, x, y);
  };

  Value sums = generic(
      {operands.query, operands.key}, {map({B, H, I, D}, 5), ofKey(D, J)},
      {B, H, I, J}, keys, f32, 0, [&](OpBuilder &b, ValueRange v) {
        Value product =
            arith::MulFOp::create(b, loc, extend(b, v[0]), extend(b, v[1]));
        return add(b, v[2], product);
      });
  AffineMap all = map({B, H, I, J}, 4), rows = map({B, H, I}, 4);
  Value scores = generic({sums}, {all}, {B, H, I, J}, keys, f32, 0,
                         [&](OpBuilder &b, ValueRange v) {
                           return scoreOf(b, match, captures, v[0]);
                         });
  Value top = generic({scores}, {all}, {B, H, I}, keys, f32, -HUGE_VAL,
                      [&](OpBuilder &b, ValueRange v) -> Value {
                        return arith::MaximumFOp::create(b, loc, v[1], v[0]);
                      });
  Value weights = generic({scores, top}, {all, rows}, {B, H, I, J}, keys, f32,
                          0, [&](OpBuilder &b, ValueRange v) -> Value {
                            Value x = arith::SubFOp::create(b, loc, v[0], v[1]);
                            return math::ExpOp::create(b, loc, x);
                          });
  Value total =
      generic({weights}, {all}, {B, H, I}, keys, f32, 0,
              [&](OpBuilder &b, ValueRange v) { return add(b, v[1], v[0]); });
  Value rounded =
      generic({weights, total}, {all, rows}, {B, H, I, J}, keys, match.element,
              0, [&](OpBuilder &b, ValueRange v) -> Value {
                Value p = arith::DivFOp::create(b, loc, v[0], v[1]);
                return match.element.isF32()
                           ? p
                           : arith::TruncFOp::create(b, loc, match.element, p)
                                 .getResult();
              });
  // Here the fourth loop is the dimension of values, the fifth runs over keys.
  output =
      generic({rounded, operands.value}, {map({B, H, I, D}, 5), ofKey(J, D)},
              {B, H, I, J}, sizeOf(operands.value, 3), f32, 0,
              [&](OpBuilder &b, ValueRange v) {
                Value product = arith::MulFOp::create(b, loc, extend(b, v[0]),
                                                      extend(b, v[1]));
                return add(b, v[2], product);
              });
  product = output.getDefiningOp();
  if (match.lse)
    lse = generic({top, total}, {map({B, H, I}, 3), map({B, H, I}, 3)},
                  {B, H, I}, keys, f32, 0, [&](OpBuilder &b, ValueRange v) {
                    return add(b, v[0], math::LogOp::create(b, loc, v[1]));
                  });
}

Operation *attn::raise::buildNormalForm(RewriterBase &rewriter,
                                        const AttentionMatch &match,
                                        Extents &extents) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(match.root.getDefiningOp());
  Location loc = match.root.getLoc();
  NormalForm form(rewriter, loc, extents);
  form.build(match, buildOperands(rewriter, match, extents));
  Arrangement arrangement(rewriter, loc, extents);
  Value output = arrangement.castElements(form.output, match.element);
  replaceResults(rewriter, match, extents, output, form.lse);
  return form.product;
}
