//===- LowerBins.cpp - sums by element as loops ---------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

/// A branch that is taken where each index lies in its dimension.
static scf::IfOp ifInside(OpBuilder &b, Location loc, ArrayRef<Value> indices,
                          ArrayRef<Value> sizes) {
  Value isInside;
  for (auto [index, size] : llvm::zip_equal(indices, sizes)) {
    // Negative ones are large ones.
    Value isBelow =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, size);
    isInside =
        isInside ? arith::AndIOp::create(b, loc, isInside, isBelow) : isBelow;
  }
  return scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false);
}

static Value makeZero(OpBuilder &b, Location loc) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
}

void attn::lowerBins(OpBuilder &builder, TileBuffers &buffers,
                     tile::BinsOp op) {
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(op.getBins().getType());
  Value buffer =
      buffers.acquire(VectorType::get(type.getShape(), type.getElementType()));
  buffers.bind(op.getBins(), buffer);
  Value zero = makeZero(builder, loc);
  emitLoops(builder, loc, type.getShape(), [&](OpBuilder &b, ValueRange at) {
    memref::StoreOp::create(b, loc, zero, buffer, at);
  });
}

void attn::lowerScatterAdd(OpBuilder &builder, TileBuffers &buffers,
                           tile::ScatterAddOp op) {
  Location loc = op.getLoc();
  Value buffer = buffers.lookup(op.getBins());
  ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
  Value count = arith::ConstantIndexOp::create(builder, loc, shape.back());
  auto type = cast<VectorType>(op.getValue().getType());
  emitLoops(builder, loc, type.getShape(), [&](OpBuilder &b, ValueRange at) {
    Value index = arith::IndexCastOp::create(
        b, loc, b.getIndexType(),
        stretchedElement(b, loc, buffers, op.getIndex(), at));
    Value added = buffers.element(b, loc, op.getValue(), at);
    OpBuilder then = ifInside(b, loc, index, count).getThenBodyBuilder();
    SmallVector<Value> bin;
    if (shape.size() == 2)
      bin.push_back(at[0]);
    bin.push_back(index);
    Value sum = memref::LoadOp::create(then, loc, buffer, bin);
    sum = arith::AddFOp::create(then, loc, sum, added);
    memref::StoreOp::create(then, loc, sum, buffer, bin);
  });
}

/// Of bins that rows share the first row has the sums, the others zeros.
void attn::lowerStoreBins(OpBuilder &builder, TileBuffers &buffers,
                          tile::StoreBinsOp op) {
  Location loc = op.getLoc();
  Value buffer = buffers.lookup(op.getBins());
  auto type = cast<MemRefType>(buffer.getType());
  bool hasRows = type.getRank() == 2;
  int64_t warps = op->getParentOfType<tile::KernelOp>().getPlan().getWarps();
  size_t leading = op.getIndices().size() - 2;
  SmallVector<Value> sizes;
  for (size_t dim = 0; dim < leading + 2; ++dim)
    sizes.push_back(memref::DimOp::create(builder, loc, op.getView(), dim));
  Value first = arith::ConstantIndexOp::create(builder, loc, 0);
  Value zero = makeZero(builder, loc);
  int64_t box[] = {hasRows ? type.getDimSize(0) : warps,
                   type.getShape().back()};
  emitLoops(builder, loc, box, [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> to(op.getIndices());
    for (int64_t dim : {0, 1})
      to[leading + dim] =
          arith::AddIOp::create(b, loc, to[leading + dim], at[dim]);
    OpBuilder then = ifInside(b, loc, to, sizes).getThenBodyBuilder();
    Value number = memref::LoadOp::create(then, loc, buffer,
                                          hasRows ? at : at.drop_front());
    if (!hasRows) {
      Value isFirst = arith::CmpIOp::create(then, loc, arith::CmpIPredicate::eq,
                                            at[0], first);
      number = arith::SelectOp::create(then, loc, isFirst, number, zero);
    }
    memref::StoreOp::create(then, loc, number, op.getView(), to);
  });
}
