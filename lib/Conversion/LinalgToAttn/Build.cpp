//===- Build.cpp - attention in place of what was found -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Build.h"

#include "Positions.h"
#include "RegionBody.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;
using namespace attn::raise;

/// Erases `ops`, users first, and what nothing uses after that.
static void eraseUnused(RewriterBase &rewriter, ArrayRef<Operation *> ops) {
  SmallVector<Operation *> worklist(llvm::reverse(ops));
  llvm::SmallPtrSet<Operation *, 32> erased;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (erased.contains(op) || !isOpTriviallyDead(op))
      continue;
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && !op->isAncestor(producer))
          worklist.insert(worklist.begin(), producer);
    });
    // No operation is created before the end: an address stays that of one.
    erased.insert(op);
    rewriter.eraseOp(op);
  }
}

static Dimensions dimensionsOf(ArrayRef<ExprRef> indices) {
  Dimensions dims;
  for (ExprRef index : indices)
    dims.push_back(*atoms(index));
  return dims;
}

/// Sizes of what goes away are read elsewhere.
static void moveSizes(RewriterBase &rewriter, const AttentionMatch &match,
                      Extents &extents) {
  OpBuilder::InsertionGuard guard(rewriter);
  for (Operation *op : match.replaced)
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      auto dim = dyn_cast<tensor::DimOp>(user);
      if (!dim || !dim.getConstantIndex() ||
          dim.getSource().getDefiningOp() != op)
        continue;
      rewriter.setInsertionPoint(dim);
      Extent extent = extents.of(OpFoldResult(dim.getResult()));
      Value size;
      if (isKnown(extent))
        size = arith::ConstantIndexOp::create(rewriter, dim.getLoc(), extent);
      else
        size =
            readSize(rewriter, dim.getLoc(), extents, extent, match.replaced);
      if (!size || size == dim.getResult())
        continue;
      rewriter.replaceAllUsesWith(dim, size);
      // One that goes away itself is erased with the others.
      if (!llvm::is_contained(match.replaced, dim.getOperation()))
        rewriter.eraseOp(dim);
    }
}

static SmallVector<ExprRef> headsOf(const AttentionMatch &match) {
  SmallVector<ExprRef> heads(match.keyHeads);
  llvm::append_range(heads, match.groups);
  return heads;
}

AttentionOperands attn::raise::buildOperands(OpBuilder &b,
                                             const AttentionMatch &match,
                                             Extents &extents) {
  Arrangement arrangement(b, match.root.getLoc(), extents);
  auto operand = [&](const OperandLevel &level, const Dimensions &wanted) {
    Value value = arrangement.rearrange(level.tensor,
                                        dimensionsOf(level.indices), wanted);
    return arrangement.castElements(value, match.element);
  };
  return {
      operand(match.query,
              {match.batch, headsOf(match), match.rows, {match.headDim}}),
      operand(match.key,
              {match.batch, match.keyHeads, {match.column}, {match.headDim}}),
      operand(match.value,
              {match.batch, match.keyHeads, {match.column}, {match.valueDim}})};
}

void attn::raise::replaceResults(RewriterBase &rewriter,
                                 const AttentionMatch &match, Extents &extents,
                                 Value output, Value lse) {
  Arrangement arrangement(rewriter, match.root.getLoc(), extents);
  Dimensions rows = {match.batch, headsOf(match), match.rows};
  auto replace = [&](Value old, Value result, const Dimensions &from,
                     ArrayRef<ExprRef> indices) {
    auto type = cast<RankedTensorType>(old.getType());
    result = arrangement.castElements(result, type.getElementType());
    result = arrangement.rearrange(result, from, dimensionsOf(indices));
    rewriter.replaceAllUsesWith(old, arrangement.castShape(result, type));
  };
  if (match.lse)
    replace(match.lse, lse, rows, match.lseIndices);
  rows.push_back({match.valueDim});
  replace(match.root, output, rows, match.rootIndices);
  moveSizes(rewriter, match, extents);
  eraseUnused(rewriter, match.replaced);
}

/// The sink as a tensor of rank 1, of as many elements as `query` has heads.
static Value buildSink(OpBuilder &b, Location loc, ExprRef element,
                       Value query) {
  if (element->isConstant()) {
    OpFoldResult heads = tensor::getMixedSize(b, loc, query, 1);
    Value empty = tensor::EmptyOp::create(b, loc, heads, b.getF32Type());
    Value number = arith::ConstantOp::create(
        b, loc, b.getF32FloatAttr(static_cast<float>(element->real)));
    return linalg::FillOp::create(b, loc, number, empty).getResult(0);
  }
  Value sink = element->value;
  auto type = cast<RankedTensorType>(sink.getType());
  if (type.getRank() == 1)
    return sink;
  ReassociationIndices all =
      llvm::to_vector(llvm::seq<int64_t>(type.getRank()));
  return tensor::CollapseShapeOp::create(b, loc, sink,
                                         ArrayRef<ReassociationIndices>(all));
}

/// `tensor` with a last dimension of the next multiple of 8 (C3): zeros change
/// no product of queries and keys, and give results that nobody reads.
static Value padLast(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t size = type.getShape().back();
  if (size % 8 == 0)
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  SmallVector<OpFoldResult> padded = sizes;
  padded.back() = b.getIndexAttr(llvm::alignTo(size, 8));
  Value empty = tensor::EmptyOp::create(b, loc, padded, type.getElementType());
  Value zero = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(type.getElementType(), 0));
  Value zeros = linalg::FillOp::create(b, loc, zero, empty).getResult(0);
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  return tensor::InsertSliceOp::create(b, loc, tensor, zeros, offsets, sizes,
                                       strides);
}

/// The first `size` of the last dimension.
static Value takeFirst(OpBuilder &b, Location loc, Value tensor, int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getShape().back() == size)
    return tensor;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  sizes.back() = b.getIndexAttr(size);
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes,
                                        strides);
}

AttentionOp attn::raise::buildAttention(RewriterBase &rewriter,
                                        const AttentionMatch &match,
                                        Extents &extents) {
  Location loc = match.root.getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(match.root.getDefiningOp());
  AttentionOperands operands = buildOperands(rewriter, match, extents);
  ExprRef score = match.score == match.x ? nullptr : match.score;
  CapturedValues captures(rewriter, loc, extents, match.x, {score, match.mask});
  auto body = [&](ExprRef expr, bool isScore) {
    return [&captures, &match, expr, isScore](OpBuilder &b, Location loc,
                                              ValueRange v) -> Value {
      unsigned first = isScore ? 1 : 0;
      RegionBody body(b, loc, captures, v.drop_front(first + 4));
      if (isScore)
        body.bind(match.x, v[0]);
      for (unsigned number = 0; number < 4; ++number)
        body.bind(match.positions[number], v[first + number]);
      return isScore ? body.emitFloat(expr)
                     : body.emitInteger(expr, b.getI1Type());
    };
  };
  auto scoreBody = body(score, true), maskBody = body(match.mask, false);
  Value sink = match.sink ? buildSink(rewriter, loc, match.sink, operands.query)
                          : Value();
  auto attention = AttentionOp::create(
      rewriter, loc, padLast(rewriter, loc, operands.query),
      padLast(rewriter, loc, operands.key),
      padLast(rewriter, loc, operands.value), captures.values(),
      score ? BodyBuilder(scoreBody) : BodyBuilder(),
      match.mask ? BodyBuilder(maskBody) : BodyBuilder());
  if (sink)
    attention.getSinkMutable().assign(sink);
  attention.setScaleAttr(rewriter.getF64FloatAttr(match.scale));
  Value output = takeFirst(rewriter, loc, attention.getOutput(),
                           match.valueDim->extents[0]);
  replaceResults(rewriter, match, extents, output, attention.getLse());
  return attention;
}
