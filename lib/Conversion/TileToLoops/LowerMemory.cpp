//===- LowerMemory.cpp - boxes and gathers as loops -*- C++ -*-===//
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

static Value cmp(OpBuilder &builder, Location loc, arith::CmpIPredicate pred,
                 Value lhs, Value rhs) {
  return arith::CmpIOp::create(builder, loc, pred, lhs, rhs);
}

/// 0 <= index < size.
static Value isInside(OpBuilder &builder, Location loc, Value index,
                      Value size) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value low = cmp(builder, loc, arith::CmpIPredicate::sge, index, zero);
  Value high = cmp(builder, loc, arith::CmpIPredicate::slt, index, size);
  return arith::AndIOp::create(builder, loc, low, high);
}

static Value clamp(OpBuilder &builder, Location loc, Value value, Value low,
                   Value high) {
  Value raised = arith::MaxSIOp::create(builder, loc, value, low);
  return arith::MinSIOp::create(builder, loc, raised, high);
}

namespace {
/// The part of a box that lies inside its memref: lower[d] <= i < upper[d] for
/// element i of dimension d; empty where a leading index is outside.
struct ClippedBox {
  SmallVector<Value> lower, upper;
};
} // namespace

static ClippedBox clipBox(OpBuilder &builder, Location loc, Value view,
                          ValueRange indices, ArrayRef<int64_t> box) {
  int64_t leading = indices.size() - box.size();
  auto dim = [&](int64_t d) -> Value {
    return memref::DimOp::create(builder, loc, view, d);
  };
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  ClippedBox result;
  for (auto [d, size] : llvm::enumerate(box)) {
    Value count = arith::ConstantIndexOp::create(builder, loc, size);
    Value base = indices[leading + d];
    Value before = arith::SubIOp::create(builder, loc, zero, base);
    Value after = arith::SubIOp::create(builder, loc, dim(leading + d), base);
    result.lower.push_back(clamp(builder, loc, before, zero, count));
    result.upper.push_back(clamp(builder, loc, after, zero, count));
  }
  for (int64_t d = 0; d < leading; ++d) {
    Value inside = isInside(builder, loc, indices[d], dim(d));
    result.upper[0] =
        arith::SelectOp::create(builder, loc, inside, result.upper[0], zero);
  }
  return result;
}

/// The memref's indices of element `element` of the box.
static SmallVector<Value> boxIndices(OpBuilder &builder, Location loc,
                                     ValueRange base, ValueRange element) {
  SmallVector<Value> result(base);
  int64_t leading = base.size() - element.size();
  for (auto [d, index] : llvm::enumerate(element))
    result[leading + d] =
        arith::AddIOp::create(builder, loc, base[leading + d], index);
  return result;
}

/// The box of a tile; of several slices one dimension more, the slices.
static SmallVector<int64_t> boxOf(VectorType tile, int64_t slices) {
  SmallVector<int64_t> box(tile.getShape());
  if (slices == 1)
    return box;
  box.front() /= slices;
  box.insert(box.begin(), slices);
  return box;
}

/// The element of the tile where that of the box lies.
static SmallVector<Value> tileIndices(OpBuilder &builder, Location loc,
                                      ArrayRef<int64_t> box, ValueRange at,
                                      int64_t slices) {
  SmallVector<Value> result(at);
  if (slices == 1)
    return result;
  Value rows = arith::ConstantIndexOp::create(builder, loc, box[1]);
  Value first = arith::MulIOp::create(builder, loc, at[0], rows);
  result[1] = arith::AddIOp::create(builder, loc, first, at[1]);
  result.erase(result.begin());
  return result;
}

static Value zeroOf(OpBuilder &builder, Location loc, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}

/// Where an element of a packed tile lies: row after row.
static SmallVector<Value> packedIndices(OpBuilder &builder, Location loc,
                                        ValueRange base, VectorType tile,
                                        ValueRange at) {
  SmallVector<Value> result(base);
  Value columns =
      arith::ConstantIndexOp::create(builder, loc, tile.getDimSize(1));
  Value row = arith::MulIOp::create(builder, loc, at[0], columns);
  result.back() = arith::AddIOp::create(builder, loc, row, at[1]);
  return result;
}

void attn::lowerLoad(OpBuilder &builder, TileBuffers &buffers,
                     tile::LoadOp op) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getType());
  Value buffer = buffers.acquire(type);
  buffers.bind(op.getResult(), buffer);
  if (op.getPacked()) {
    emitLoops(builder, loc, type.getShape(), [&](OpBuilder &b, ValueRange at) {
      auto from = packedIndices(b, loc, op.getIndices(), type, at);
      Value scalar = memref::LoadOp::create(b, loc, op.getView(), from);
      memref::StoreOp::create(b, loc, scalar, buffer, at);
    });
    return;
  }
  Value zero = zeroOf(builder, loc, type.getElementType());
  emitLoops(builder, loc, type.getShape(), [&](OpBuilder &b, ValueRange at) {
    memref::StoreOp::create(b, loc, zero, buffer, at);
  });
  int64_t slices = op.getSlices();
  SmallVector<int64_t> shape = boxOf(type, slices);
  ClippedBox box = clipBox(builder, loc, op.getView(), op.getIndices(), shape);
  // The last slice stands for those after it, which need not be there.
  if (op.getSliceEnd()) {
    Value index = arith::ConstantIndexOp::create(builder, loc, 0);
    Value all = arith::ConstantIndexOp::create(builder, loc, slices);
    Value isAny =
        cmp(builder, loc, arith::CmpIPredicate::sgt, box.upper[0], index);
    box.upper[0] =
        arith::SelectOp::create(builder, loc, isAny, all, box.upper[0]);
  }
  emitLoops(builder, loc, box.lower, box.upper,
            [&](OpBuilder &b, ValueRange at) {
              auto from = boxIndices(b, loc, op.getIndices(), at);
              if (Value end = op.getSliceEnd()) {
                Value &slice = from[from.size() - shape.size()];
                Value one = arith::ConstantIndexOp::create(b, loc, 1);
                Value last = arith::SubIOp::create(b, loc, end, one);
                slice = arith::MinSIOp::create(b, loc, slice, last);
              }
              Value scalar = memref::LoadOp::create(b, loc, op.getView(), from);
              memref::StoreOp::create(b, loc, scalar, buffer,
                                      tileIndices(b, loc, shape, at, slices));
            });
}

void attn::lowerStore(OpBuilder &builder, TileBuffers &buffers,
                      tile::StoreOp op) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getValue().getType());
  SmallVector<int64_t> shape = boxOf(type, op.getSlices());
  auto storeElement = [&](OpBuilder &b, ValueRange at) {
    Value scalar = buffers.element(
        b, loc, op.getValue(), tileIndices(b, loc, shape, at, op.getSlices()));
    auto to = op.getPacked() ? packedIndices(b, loc, op.getIndices(), type, at)
                             : boxIndices(b, loc, op.getIndices(), at);
    if (op.getAccumulate()) {
      // Blocks run one after the other.
      Value sum = memref::LoadOp::create(b, loc, op.getView(), to);
      scalar = arith::AddFOp::create(b, loc, sum, scalar);
    }
    memref::StoreOp::create(b, loc, scalar, op.getView(), to);
  };
  if (op.getPacked())
    return emitLoops(builder, loc, type.getShape(), storeElement);
  ClippedBox box = clipBox(builder, loc, op.getView(), op.getIndices(), shape);
  if (Value end = op.getSliceEnd()) {
    Value first = op.getIndices()[op.getIndices().size() - shape.size()];
    Value count = arith::SubIOp::create(builder, loc, end, first);
    box.upper[0] = arith::MinSIOp::create(builder, loc, box.upper[0], count);
  }
  emitLoops(builder, loc, box.lower, box.upper, storeElement);
}

/// The index operand of a gather at one element of the result.
Value attn::stretchedElement(OpBuilder &builder, Location loc,
                             TileBuffers &buffers, Value value, ValueRange at) {
  SmallVector<Value> own(at);
  if (auto type = dyn_cast<VectorType>(value.getType()))
    for (auto [size, index] : llvm::zip_equal(type.getShape(), own))
      if (size == 1)
        index = arith::ConstantIndexOp::create(builder, loc, 0);
  return buffers.element(builder, loc, value, own);
}

static Value gatherIndex(OpBuilder &builder, Location loc, TileBuffers &buffers,
                         Value operand, ValueRange at) {
  Value index = stretchedElement(builder, loc, buffers, operand, at);
  if (index.getType().isIndex())
    return index;
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                    index);
}

void attn::lowerGather(OpBuilder &builder, TileBuffers &buffers,
                       tile::GatherOp op) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getType());
  Value buffer = buffers.acquire(type);
  SmallVector<Value> sizes;
  for (int64_t d = 0, rank = op.getIndices().size(); d < rank; ++d)
    sizes.push_back(memref::DimOp::create(builder, loc, op.getView(), d));
  emitLoops(builder, loc, type.getShape(), [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> from;
    Value inside = arith::ConstantIntOp::create(b, loc, 1, 1);
    for (auto [operand, size] : llvm::zip_equal(op.getIndices(), sizes)) {
      from.push_back(gatherIndex(b, loc, buffers, operand, at));
      Value here = isInside(b, loc, from.back(), size);
      inside = arith::AndIOp::create(b, loc, inside, here);
    }
    auto read = scf::IfOp::create(b, loc, type.getElementType(), inside,
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
    OpBuilder then = read.getThenBodyBuilder(),
              other = read.getElseBodyBuilder();
    Value scalar = memref::LoadOp::create(then, loc, op.getView(), from);
    scf::YieldOp::create(then, loc, scalar);
    Value zero = zeroOf(other, loc, type.getElementType());
    scf::YieldOp::create(other, loc, zero);
    memref::StoreOp::create(b, loc, read.getResult(0), buffer, at);
  });
  buffers.bind(op.getResult(), buffer);
}
