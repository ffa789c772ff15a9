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
// takes weights away from the product with V[n], not from l.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Dropout.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace attn;

/// A memref that any tensor with contiguous innermost dimension can be passed
/// as.
static Type kernelType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return type;
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(tensor.getShape(), tensor.getElementType(), layout);
}

/// What printed IR calls an argument of the function, or a result: its name is
/// that of its location, where it has one.
static Location nameOf(AttentionOp attention, Value value) {
  Location loc = value.getLoc();
  auto named = [&](const Twine &name) -> Location {
    return NameLoc::get(StringAttr::get(loc.getContext(), name), loc);
  };
  std::pair<Value, StringRef> operands[] = {
      {attention.getQuery(), "query"},   {attention.getKey(), "key"},
      {attention.getValue(), "value"},   {attention.getSink(), "sink"},
      {attention.getOutput(), "output"}, {attention.getLse(), "lse"}};
  for (auto [operand, name] : operands)
    if (operand == value)
      return named(name);
  if (isa<NameLoc>(loc))
    return loc;
  for (auto [number, capture] : llvm::enumerate(attention.getCaptures()))
    if (capture == value)
      return named("c" + Twine(number));
  static constexpr StringLiteral keyNames[] = {"seed", "offset"};
  for (auto [key, name] : llvm::zip(attention.getDropoutKey(), keyNames))
    if (key == value)
      return named(name);
  return loc;
}

/// The kernel's function: the arguments, then the results, and a copy of the
/// scalar code.
static func::FuncOp buildSignature(OpBuilder &b, ForwardMatch match,
                                   IRMapping &mapping) {
  func::FuncOp source = match.func;
  SmallVector<Type> types =
      llvm::map_to_vector(source.getArgumentTypes(), kernelType);
  llvm::append_range(types,
                     llvm::map_range(source.getResultTypes(), kernelType));
  SmallVector<DictionaryAttr> argAttrs;
  source.getAllArgAttrs(argAttrs);
  SmallVector<DictionaryAttr> resultAttrs;
  source.getAllResultAttrs(resultAttrs);
  argAttrs.resize(source.getNumArguments(), b.getDictionaryAttr({}));
  resultAttrs.resize(source.getNumResults(), b.getDictionaryAttr({}));
  llvm::append_range(argAttrs, resultAttrs);

  b.setInsertionPoint(source);
  auto func = func::FuncOp::create(b, source.getLoc(), source.getSymName(),
                                   b.getFunctionType(types, {}));
  func.setVisibility(source.getVisibility());
  func->setDiscardableAttrs(source->getDiscardableAttrDictionary());
  if (NumericsAttr numerics = match.attention.getNumericsAttr())
    func->setDiscardableAttr(AttnDialect::kNumericsAttrName, numerics);
  func.setAllArgAttrs(argAttrs);
  Block *body = func.addEntryBlock();
  for (auto [from, to] :
       llvm::zip(source.getArguments(), body->getArguments())) {
    mapping.map(from, to);
    to.setLoc(nameOf(match.attention, from));
  }
  for (auto [from, to] :
       llvm::zip(source.getBody().front().getTerminator()->getOperands(),
                 body->getArguments().drop_front(source.getNumArguments())))
    to.setLoc(nameOf(match.attention, from));

  b.setInsertionPointToStart(body);
  for (Operation *op : match.scalarOps) {
    if (auto dim = dyn_cast<tensor::DimOp>(op))
      mapping.map(dim.getResult(),
                  memref::DimOp::create(b, dim.getLoc(),
                                        mapping.lookup(dim.getSource()),
                                        mapping.lookup(dim.getIndex())));
    else
      b.clone(*op, mapping);
  }
  return func;
}

namespace {
/// Sizes of a kernel and the values all its blocks share.
struct ForwardKernel {
  ForwardKernel(OpBuilder &b, AttentionOp attention, IRMapping &mapping);

  AttentionOp attention;
  Location loc;
  Type element;
  int64_t numRows, numColumns; // of a block
  int64_t paddedDim, paddedValueDim;
  Value query, key, value;
  Value sink; // null where there is none
  SmallVector<Value> captures, dropoutKey;
  // Before the kernel.
  Value c0, c1, blockRows, blockColumns;
  Value batches, heads, headsPerKeyHead, queryBlocks, keyBlocks, keyLength32;
};

/// What the steps of one block of the kernel share.
struct QueryBlock {
  Value batch, head, keyHead, row;
  Value tile;
  Value batch32, head32, rows; // coordinates
};
} // namespace

static Value ceilDiv(OpBuilder &b, Location loc, Value size, Value block) {
  return b.createOrFold<arith::CeilDivSIOp>(loc, size, block);
}

ForwardKernel::ForwardKernel(OpBuilder &b, AttentionOp op, IRMapping &mapping)
    : attention(op), loc(op.getLoc()) {
  element = cast<RankedTensorType>(op.getQuery().getType()).getElementType();
  PlanAttr plan = *op.getPlan();
  numRows = plan.getBlockQ();
  numColumns = plan.getBlockK();
  // The tensor cores' depth; elements past the head dimension are zero.
  paddedDim = llvm::alignTo(op.getHeadDim(), 16);
  paddedValueDim = llvm::alignTo(op.getValueHeadDim(), 16);
  query = mapping.lookup(op.getQuery());
  key = mapping.lookup(op.getKey());
  value = mapping.lookup(op.getValue());
  for (Value capture : op.getCaptures())
    captures.push_back(mapping.lookup(capture));
  for (Value word : op.getDropoutKey())
    dropoutKey.push_back(mapping.lookup(word));
  if (Value logits = op.getSink())
    sink = mapping.lookup(logits);

  c0 = arith::ConstantIndexOp::create(b, loc, 0);
  c1 = arith::ConstantIndexOp::create(b, loc, 1);
  blockRows = arith::ConstantIndexOp::create(b, loc, numRows);
  blockColumns = arith::ConstantIndexOp::create(b, loc, numColumns);
  auto sizeOf = [&](Value view, int64_t dim) {
    return b.createOrFold<memref::DimOp>(loc, view, dim);
  };
  batches = sizeOf(query, AttentionOp::kBatch);
  heads = sizeOf(query, AttentionOp::kHead);
  // Tensors without heads are legal; a division by zero is not.
  Value keyHeads =
      b.createOrFold<arith::MaxSIOp>(loc, sizeOf(key, AttentionOp::kHead), c1);
  headsPerKeyHead = b.createOrFold<arith::DivSIOp>(loc, heads, keyHeads);
  queryBlocks = ceilDiv(b, loc, sizeOf(query, AttentionOp::kLength), blockRows);
  Value keyLength = sizeOf(key, AttentionOp::kLength);
  keyBlocks = ceilDiv(b, loc, keyLength, blockColumns);
  keyLength32 =
      b.createOrFold<arith::IndexCastOp>(loc, b.getI32Type(), keyLength);
}

static Value splat(OpBuilder &b, Location loc, VectorType type, double value) {
  return arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(type,
                             b.getFloatAttr(type.getElementType(), value)));
}

/// lhs * rhs + accumulator, rhs transposed or not.
static Value contract(OpBuilder &b, Location loc, Value lhs, Value rhs,
                      Value accumulator, bool transposed) {
  AffineExpr m, n, k;
  bindDims(b.getContext(), m, n, k);
  auto map = [&](AffineExpr row, AffineExpr column) {
    return AffineMap::get(3, 0, {row, column}, b.getContext());
  };
  AffineMap maps[] = {map(m, k), transposed ? map(n, k) : map(k, n), map(m, n)};
  auto parallel = vector::IteratorType::parallel;
  auto iterator = [&](vector::IteratorType type) -> Attribute {
    return vector::IteratorTypeAttr::get(b.getContext(), type);
  };
  return vector::ContractionOp::create(
      b, loc, lhs, rhs, accumulator, b.getAffineMapArrayAttr(maps),
      b.getArrayAttr({iterator(parallel), iterator(parallel),
                      iterator(vector::IteratorType::reduction)}));
}

/// The weights that dropout keeps, 0 for the others. (Those that stay are too
/// small by 1 - dropout_p, which the end makes up for.)
static Value dropWeights(OpBuilder &outer, OpBuilder &inner,
                         const ForwardKernel &kernel, const QueryBlock &block,
                         Value columns, Value weights) {
  AttentionOp attention = kernel.attention;
  Region region;
  buildKeepRegion(inner, kernel.loc, region,
                  attention.getDropoutP()->convertToDouble());
  SmallVector<Value> arguments = {block.batch32, block.head32, block.rows,
                                  columns};
  llvm::append_range(arguments, kernel.dropoutKey);
  auto type = cast<VectorType>(weights.getType());
  Value keep = tile::expandScalarCode(inner, &*outer.getInsertionPoint(),
                                      region, arguments, type.getShape());
  Value none = splat(outer, kernel.loc, type, 0.0);
  return arith::SelectOp::create(inner, kernel.loc, keep, weights, none);
}

/// The scores are scaled before their function, if there is one, sees them.
static void scaleScores(OpBuilder &b, tile::ScoresOp op, double scale) {
  OpBuilder::InsertionGuard guard(b);
  Location loc = op.getLoc();
  if (!op.hasScore()) {
    SmallVector<Type> types(1, b.getF32Type());
    types.append(4, b.getI32Type());
    Block *block = b.createBlock(&op.getScore(), {}, types,
                                 SmallVector<Location>(types.size(), loc));
    tile::YieldOp::create(b, loc, block->getArgument(0));
  }
  Block &block = op.getScore().front();
  b.setInsertionPointToStart(&block);
  Value score = block.getArgument(0);
  Value factor =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(score.getType(), scale));
  auto scaled = arith::MulFOp::create(b, loc, score, factor);
  score.replaceAllUsesExcept(scaled, scaled);
}

/// One step over the keys of block `n`: returns the new o, m, l.
static SmallVector<Value> buildStep(OpBuilder &outer, OpBuilder &b,
                                    const ForwardKernel &kernel,
                                    const QueryBlock &block, Value n,
                                    ValueRange state) {
  Location loc = kernel.loc;
  AttentionOp attention = kernel.attention;
  int64_t rows = kernel.numRows, columns = kernel.numColumns;
  auto scoresType = VectorType::get({rows, columns}, b.getF32Type());
  Value o = state[0], m = state[1], l = state[2];

  Value column = arith::MulIOp::create(b, loc, n, kernel.blockColumns);
  Value column32 = arith::IndexCastOp::create(b, loc, b.getI32Type(), column);
  Value keys = tile::CoordsOp::create(
      b, loc, VectorType::get({1, columns}, b.getI32Type()), column32, 1);
  auto load = [&](Value view, int64_t dim) -> Value {
    return tile::LoadOp::create(
        b, loc, VectorType::get({columns, dim}, kernel.element), view,
        ValueRange{block.batch, block.keyHead, column, kernel.c0});
  };

  Value keyTile = load(kernel.key, kernel.paddedDim);
  Value zero = splat(outer, loc, scoresType, 0.0);
  Value scores =
      contract(b, loc, block.tile, keyTile, zero, /*transposed=*/true);
  auto scored =
      tile::ScoresOp::create(b, loc, scores, block.batch32, block.head32,
                             block.rows, keys, kernel.keyLength32);
  if (attention.hasScore())
    copyRegion(outer, b, attention.getScore(), scored.getScore(),
               kernel.captures);
  scaleScores(b, scored, attention.getScaleValue());
  if (attention.hasMask())
    copyRegion(outer, b, attention.getMask(), scored.getMask(),
               kernel.captures);

  // Infinite keys give scores of -inf without a mask, too (C17).
  NumericsAttr numerics = attention.getNumericsOrDefault();
  bool exact =
      !numerics.getFastMath() || numerics.getF32Products() == F32Products::IEEE;
  auto softmax = tile::OnlineSoftmaxOp::create(
      b, loc, scored.getResult(), m, l, llvm::APFloat(1.0f), /*guard=*/true,
      /*exp2=*/false, exact);

  Value valueTile = load(kernel.value, kernel.paddedValueDim);
  Value p = softmax.getProbabilities();
  if (!kernel.element.isF32())
    p = arith::TruncFOp::create(
        b, loc, VectorType::get({rows, columns}, kernel.element), p);
  if (attention.hasDropout())
    p = dropWeights(outer, b, kernel, block, keys, p);
  Value correction =
      vector::BroadcastOp::create(b, loc, o.getType(), softmax.getCorrection());
  Value rescaled = arith::MulFOp::create(b, loc, o, correction);
  Value newO = contract(b, loc, p, valueTile, rescaled, /*transposed=*/false);
  return {newO, softmax.getNewMax(), softmax.getNewSum()};
}

static QueryBlock buildQueryBlock(OpBuilder &b, const ForwardKernel &kernel,
                                  Block::BlockArgListType numbers) {
  Location loc = kernel.loc;
  QueryBlock block;
  block.batch = numbers[0];
  block.head = numbers[1];
  block.keyHead =
      b.createOrFold<arith::DivSIOp>(loc, block.head, kernel.headsPerKeyHead);
  block.row = arith::MulIOp::create(b, loc, numbers[2], kernel.blockRows);
  auto asCoordinate = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  };
  block.batch32 = asCoordinate(block.batch);
  block.head32 = asCoordinate(block.head);
  block.rows = tile::CoordsOp::create(
      b, loc, VectorType::get({kernel.numRows, 1}, b.getI32Type()),
      asCoordinate(block.row), 0);
  block.tile = tile::LoadOp::create(
      b, loc,
      VectorType::get({kernel.numRows, kernel.paddedDim}, kernel.element),
      kernel.query, ValueRange{block.batch, block.head, block.row, kernel.c0});
  return block;
}

/// The sink of a head joins (o, m, l): one more key, with no value.
///
///   m' = max(m, sink)              0 below where that is -inf
///   l' = l exp(m - m') + exp(sink - m')
///   o' = o exp(m - m')
static SmallVector<Value> joinSink(OpBuilder &b, const ForwardKernel &kernel,
                                   const QueryBlock &block, ValueRange state) {
  Location loc = kernel.loc;
  Value o = state[0], m = state[1], l = state[2];
  auto rowType = cast<VectorType>(m.getType());
  Value scalar =
      memref::LoadOp::create(b, loc, kernel.sink, ValueRange{block.head});
  if (!scalar.getType().isF32())
    scalar = arith::ExtFOp::create(b, loc, b.getF32Type(), scalar);
  Value sink = vector::BroadcastOp::create(b, loc, rowType, scalar);
  Value newMax = arith::MaximumFOp::create(b, loc, m, sink);
  Value hidden =
      splat(b, loc, rowType, -std::numeric_limits<double>::infinity());
  Value empty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, newMax, hidden);
  Value reference = arith::SelectOp::create(
      b, loc, empty, splat(b, loc, rowType, 0.0), newMax);
  auto weightOf = [&](Value logit) -> Value {
    Value difference = arith::SubFOp::create(b, loc, logit, reference);
    return math::ExpOp::create(b, loc, difference);
  };
  Value correction = weightOf(m);
  Value newSum = arith::AddFOp::create(
      b, loc, arith::MulFOp::create(b, loc, l, correction), weightOf(sink));
  Value stretched =
      vector::BroadcastOp::create(b, loc, o.getType(), correction);
  Value newO = arith::MulFOp::create(b, loc, o, stretched);
  return {newO, newMax, newSum};
}

/// o / l, 0 where l = 0 (C17); times `factor`.
static Value normalize(OpBuilder &b, Location loc, Value o, Value l,
                       double factor) {
  auto rowType = cast<VectorType>(l.getType());
  Value zero = splat(b, loc, rowType, 0.0);
  Value empty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, l, zero);
  Value inverse =
      arith::DivFOp::create(b, loc, splat(b, loc, rowType, factor), l);
  inverse = arith::SelectOp::create(b, loc, empty, zero, inverse);
  inverse = vector::BroadcastOp::create(b, loc, o.getType(), inverse);
  return arith::MulFOp::create(b, loc, o, inverse);
}

/// Writes the results that the function returns to the memrefs for them.
static void buildEpilogue(OpBuilder &b, const ForwardKernel &kernel,
                          const QueryBlock &block, ValueRange returned,
                          ValueRange outputs, ValueRange state) {
  Location loc = kernel.loc;
  AttentionOp attention = kernel.attention;
  SmallVector<Value> joined(state);
  if (kernel.sink)
    joined = joinSink(b, kernel, block, state);
  Value o = joined[0], m = joined[1], l = joined[2];
  double kept = 1.0;
  if (attention.hasDropout())
    kept -= attention.getDropoutP()->convertToDouble();
  for (auto [result, output] : llvm::zip(returned, outputs)) {
    if (result == attention.getOutput()) {
      Value normalized = normalize(b, loc, o, l, 1 / kept);
      if (!kernel.element.isF32())
        normalized = arith::TruncFOp::create(
            b, loc, cast<VectorType>(o.getType()).clone(kernel.element),
            normalized);
      tile::StoreOp::create(
          b, loc, normalized, output,
          ValueRange{block.batch, block.head, block.row, kernel.c0});
      continue;
    }
    // -inf where l = 0: m is -inf there too (C17).
    Value log = math::LogOp::create(b, loc, l);
    Value lse = arith::AddFOp::create(b, loc, m, log);
    lse = vector::ShapeCastOp::create(
        b, loc, VectorType::get({kernel.numRows}, b.getF32Type()), lse);
    tile::StoreOp::create(b, loc, lse, output,
                          ValueRange{block.batch, block.head, block.row});
  }
}

func::FuncOp attn::buildForward(OpBuilder &b, ForwardMatch match) {
  OpBuilder::InsertionGuard guard(b);
  IRMapping mapping;
  func::FuncOp func = buildSignature(b, match, mapping);
  ForwardKernel kernel(b, match.attention, mapping);
  Location loc = kernel.loc;

  auto program = tile::KernelOp::create(
      b, loc, func.getSymName(), *match.attention.getPlan(),
      ValueRange{kernel.batches, kernel.heads, kernel.queryBlocks});
  func::ReturnOp::create(b, loc);

  b.setInsertionPoint(program.getTerminator());
  QueryBlock block = buildQueryBlock(b, kernel, program.getNumbers());
  Type f32 = b.getF32Type();
  auto rowType = VectorType::get({kernel.numRows, 1}, f32);
  Value initial[] = {
      splat(b, loc,
            VectorType::get({kernel.numRows, kernel.paddedValueDim}, f32), 0.0),
      splat(b, loc, rowType, -std::numeric_limits<double>::infinity()),
      splat(b, loc, rowType, 0.0)};
  auto loop = scf::ForOp::create(b, loc, kernel.c0, kernel.keyBlocks, kernel.c1,
                                 initial);
  OpBuilder outer(loop);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  SmallVector<Value> state =
      buildStep(outer, inner, kernel, block, loop.getInductionVar(),
                loop.getRegionIterArgs());
  scf::YieldOp::create(inner, loc, state);

  buildEpilogue(b, kernel, block,
                match.func.getBody().front().getTerminator()->getOperands(),
                func.getArguments().drop_front(match.func.getNumArguments()),
                loop.getResults());
  return func;
}
