//===- QueryBlock.cpp - a block of queries, over blocks of keys -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryBlock.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace attn;

QueryKernel::QueryKernel(OpBuilder &b, ScoredOp op, IRMapping &mapping)
    : KernelValues(b, op, mapping),
      packedHeads(op.getPlanAttr().getPackedHeads()) {
  queriesPerBlock =
      hasPackedHeads()
          ? arith::ConstantIndexOp::create(b, loc, numRows / packedHeads)
                .getResult()
          : blockRows;
  queryBlocks = ceilDiv(b, loc, queryLength, queriesPerBlock);
  keyBlocks = ceilDiv(b, loc, keyLength, blockColumns);
  partsPerKeyHead = headsPerKeyHead;
  headParts = heads;
  if (!hasPackedHeads())
    return;
  Value perPart = arith::ConstantIndexOp::create(b, loc, packedHeads);
  // A launch computes it, with quotients that are floored.
  Value divisor = b.createOrFold<arith::MaxSIOp>(loc, keyHeads, c1);
  headsPerKeyHead = b.createOrFold<arith::FloorDivSIOp>(loc, heads, divisor);
  partsPerKeyHead = ceilDiv(b, loc, headsPerKeyHead, perPart);
  headParts = b.createOrFold<arith::MulIOp>(loc, keyHeads, partsPerKeyHead);
}

/// The heads of a part, and the coordinates of its rows: those of the first
/// head, those of the next one.
static void buildPackedRows(OpBuilder &b, const QueryKernel &kernel,
                            ValueRange numbers, QueryBlock &block) {
  Location loc = kernel.loc;
  Value part = numbers[1];
  block.row = arith::MulIOp::create(b, loc, numbers[2], kernel.queriesPerBlock);
  block.batch32 = toCoordinate(b, loc, block.batch);
  block.keyHead =
      b.createOrFold<arith::DivSIOp>(loc, part, kernel.partsPerKeyHead);
  Value perPart = arith::ConstantIndexOp::create(b, loc, kernel.packedHeads);
  Value first =
      b.createOrFold<arith::MulIOp>(loc, block.keyHead, kernel.headsPerKeyHead);
  Value number =
      b.createOrFold<arith::RemSIOp>(loc, part, kernel.partsPerKeyHead);
  block.head = b.createOrFold<arith::AddIOp>(
      loc, first, b.createOrFold<arith::MulIOp>(loc, number, perPart));
  std::optional<int64_t> heads = getConstantIntValue(kernel.headsPerKeyHead);
  if (!heads || *heads % kernel.packedHeads != 0)
    block.headEnd =
        b.createOrFold<arith::AddIOp>(loc, first, kernel.headsPerKeyHead);

  auto type = VectorType::get({kernel.numRows, 1}, b.getI32Type());
  Value zero = arith::ConstantIntOp::create(b, loc, 0, 32);
  Value row = tile::CoordsOp::create(b, loc, type, zero, 0);
  Value perHead = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(
          type, b.getI32IntegerAttr(kernel.numRows / kernel.packedHeads)));
  auto addTo = [&](Value base, Value offset) -> Value {
    Value all =
        vector::BroadcastOp::create(b, loc, type, toCoordinate(b, loc, base));
    return arith::AddIOp::create(b, loc, all, offset);
  };
  block.head32 =
      addTo(block.head, arith::DivUIOp::create(b, loc, row, perHead));
  block.rows = addTo(block.row, arith::RemUIOp::create(b, loc, row, perHead));
}

QueryBlock attn::buildQueryBlock(OpBuilder &b, const QueryKernel &kernel,
                                 ValueRange numbers) {
  Location loc = kernel.loc;
  QueryBlock block;
  block.batch = numbers[0];
  block.column = kernel.c0;
  if (kernel.hasPackedHeads()) {
    buildPackedRows(b, kernel, numbers, block);
    return block;
  }
  block.head = numbers[1];
  block.keyHead =
      b.createOrFold<arith::DivSIOp>(loc, block.head, kernel.headsPerKeyHead);
  block.row = arith::MulIOp::create(b, loc, numbers[2], kernel.queriesPerBlock);
  block.batch32 = toCoordinate(b, loc, block.batch);
  block.head32 = toCoordinate(b, loc, block.head);
  block.rows = tile::CoordsOp::create(
      b, loc, VectorType::get({kernel.numRows, 1}, b.getI32Type()),
      toCoordinate(b, loc, block.row), 0);
  return block;
}

KeyBlock attn::buildKeyBlock(OpBuilder &b, const QueryKernel &kernel,
                             Value number) {
  Location loc = kernel.loc;
  Value column = arith::MulIOp::create(b, loc, number, kernel.blockColumns);
  Value keys = tile::CoordsOp::create(
      b, loc, VectorType::get({1, kernel.numColumns}, b.getI32Type()),
      toCoordinate(b, loc, column), 1);
  return {column, keys};
}

Value attn::loadQueries(OpBuilder &b, const QueryKernel &kernel,
                        const QueryBlock &block, Value view) {
  return tile::LoadOp::create(
      b, kernel.loc,
      VectorType::get({kernel.numRows, kernel.paddedDim}, kernel.element), view,
      ValueRange{block.batch, block.head, block.row, kernel.c0}, block.headEnd,
      /*packed=*/false, kernel.packedHeads);
}

Value attn::loadKeys(OpBuilder &b, const QueryKernel &kernel,
                     const QueryBlock &block, const KeyBlock &keys, Value view,
                     int64_t dim) {
  return tile::LoadOp::create(
      b, kernel.loc, VectorType::get({kernel.numColumns, dim}, kernel.element),
      view, ValueRange{block.batch, block.keyHead, keys.column, kernel.c0});
}

tile::OnlineSoftmaxOp attn::buildSoftmax(OpBuilder &b,
                                         const QueryKernel &kernel,
                                         Value scores, Value max, Value sum) {
  // Infinite keys give scores of -inf without a mask, too (C17).
  ScoredOp attention = kernel.attention;
  NumericsAttr numerics = attention.getNumericsOrDefault();
  bool exact =
      !numerics.getFastMath() || numerics.getF32Products() == F32Products::IEEE;
  return tile::OnlineSoftmaxOp::create(b, kernel.loc, scores, max, sum,
                                       llvm::APFloat(1.0f), /*guard=*/true,
                                       /*exp2=*/false, exact);
}

SoftmaxState attn::emptySoftmax(OpBuilder &b, const QueryKernel &kernel,
                                ArrayRef<int64_t> columns) {
  auto zero = [&](int64_t size) {
    auto type = VectorType::get({kernel.numRows, size}, b.getF32Type());
    return splat(b, kernel.loc, type, 0.0);
  };
  SoftmaxState state;
  for (int64_t size : columns)
    state.sums.push_back(zero(size));
  state.max =
      splat(b, kernel.loc, VectorType::get({kernel.numRows, 1}, b.getF32Type()),
            -std::numeric_limits<double>::infinity());
  state.sum = zero(1);
  return state;
}

/// m' = max(first, second), and exp(first - m') and exp(second - m'), with 0 in
/// place of an m' of -inf.
JoinedMaxima attn::joinMaxima(OpBuilder &b, Location loc, Value first,
                              Value second) {
  auto rowType = cast<VectorType>(first.getType());
  Value max = arith::MaximumFOp::create(b, loc, first, second);
  Value hidden =
      splat(b, loc, rowType, -std::numeric_limits<double>::infinity());
  Value empty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, max, hidden);
  Value reference =
      arith::SelectOp::create(b, loc, empty, splat(b, loc, rowType, 0.0), max);
  auto weightOf = [&](Value logit) -> Value {
    Value difference = arith::SubFOp::create(b, loc, logit, reference);
    return math::ExpOp::create(b, loc, difference);
  };
  Value firstWeight = weightOf(first);
  return {max, firstWeight, weightOf(second)};
}

/// The sink of the head of each row.
static Value readSink(OpBuilder &b, const QueryKernel &kernel,
                      const QueryBlock &block, VectorType rowType) {
  Location loc = kernel.loc;
  Type element = cast<MemRefType>(kernel.sink.getType()).getElementType();
  Value sink;
  if (kernel.hasPackedHeads())
    sink = tile::GatherOp::create(b, loc, rowType.clone(element), kernel.sink,
                                  ValueRange{block.head32});
  else
    sink = memref::LoadOp::create(b, loc, kernel.sink, ValueRange{block.head});
  if (!element.isF32())
    sink = arith::ExtFOp::create(
        b, loc, kernel.hasPackedHeads() ? Type(rowType) : b.getF32Type(), sink);
  return kernel.hasPackedHeads()
             ? sink
             : vector::BroadcastOp::create(b, loc, rowType, sink);
}

/// One more key, with no value.
///
///   m' = max(m, sink)
///   l' = l exp(m - m') + exp(sink - m')
///   o' = o exp(m - m')
SoftmaxState attn::joinSink(OpBuilder &b, const QueryKernel &kernel,
                            const QueryBlock &block, SoftmaxState state,
                            Value *correctionOfSums) {
  Location loc = kernel.loc;
  auto rowType = cast<VectorType>(state.max.getType());
  JoinedMaxima maxima =
      joinMaxima(b, loc, state.max, readSink(b, kernel, block, rowType));
  SoftmaxState joined;
  joined.max = maxima.max;
  Value correction = maxima.firstWeight;
  joined.sum = arith::AddFOp::create(
      b, loc, arith::MulFOp::create(b, loc, state.sum, correction),
      maxima.secondWeight);
  for (Value sum : state.sums) {
    Value stretched =
        vector::BroadcastOp::create(b, loc, sum.getType(), correction);
    joined.sums.push_back(arith::MulFOp::create(b, loc, sum, stretched));
  }
  if (correctionOfSums)
    *correctionOfSums = correction;
  return joined;
}

Value attn::normalize(OpBuilder &b, Location loc, Value lhs, Value sum,
                      double factor) {
  auto rowType = cast<VectorType>(sum.getType());
  Value zero = splat(b, loc, rowType, 0.0);
  Value empty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, sum, zero);
  Value inverse =
      arith::DivFOp::create(b, loc, splat(b, loc, rowType, factor), sum);
  inverse = arith::SelectOp::create(b, loc, empty, zero, inverse);
  if (lhs.getType() != rowType)
    inverse = vector::BroadcastOp::create(b, loc, lhs.getType(), inverse);
  return arith::MulFOp::create(b, loc, lhs, inverse);
}

void attn::storeTile(OpBuilder &b, const QueryKernel &kernel,
                     const QueryBlock &block, Value tile, Value view) {
  tile::StoreOp::create(
      b, kernel.loc, tile, view,
      ValueRange{block.batch, block.head, block.row, block.column},
      block.headEnd, /*accumulate=*/false, /*packed=*/false,
      kernel.packedHeads);
}

void attn::storeOutput(OpBuilder &b, const QueryKernel &kernel,
                       const QueryBlock &block, Value tile, Value view) {
  storeTile(b, kernel, block, roundTo(b, kernel.loc, tile, kernel.element),
            view);
}

void attn::storeRows(OpBuilder &b, const QueryKernel &kernel,
                     const QueryBlock &block, Value numbers, Value view) {
  Value line = vector::ShapeCastOp::create(
      b, kernel.loc, VectorType::get({kernel.numRows}, b.getF32Type()),
      numbers);
  OpBuilder::InsertionGuard guard(b);
  if (block.ownsRows)
    b.setInsertionPointToStart(
        scf::IfOp::create(b, kernel.loc, block.ownsRows).thenBlock());
  tile::StoreOp::create(b, kernel.loc, line, view,
                        ValueRange{block.batch, block.head, block.row},
                        block.headEnd, /*accumulate=*/false, /*packed=*/false,
                        kernel.packedHeads);
}

Value attn::buildLse(OpBuilder &b, Location loc, const SoftmaxState &state) {
  // Where the sum is 0, the maximum is -inf too.
  Value log = math::LogOp::create(b, loc, state.sum);
  return arith::AddFOp::create(b, loc, state.max, log);
}
