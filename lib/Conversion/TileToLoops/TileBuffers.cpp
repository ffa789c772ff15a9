//===- TileBuffers.cpp - vector values as memory, read element by element -===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuffers.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

static Value indexConstant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

void attn::emitLoops(OpBuilder &builder, Location loc, ValueRange lower,
                     ValueRange upper,
                     function_ref<void(OpBuilder &, ValueRange)> body) {
  OpBuilder::InsertionGuard guard(builder);
  Value one = indexConstant(builder, loc, 1);
  SmallVector<Value> indices;
  for (auto [from, to] : llvm::zip_equal(lower, upper)) {
    auto loop = scf::ForOp::create(builder, loc, from, to, one);
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  body(builder, indices);
}

void attn::emitLoops(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
                     function_ref<void(OpBuilder &, ValueRange)> body) {
  SmallVector<Value> lower, upper;
  for (int64_t size : shape) {
    lower.push_back(indexConstant(builder, loc, 0));
    upper.push_back(indexConstant(builder, loc, size));
  }
  emitLoops(builder, loc, lower, upper, body);
}

Value TileBuffers::acquire(VectorType type) {
  auto memory = MemRefType::get(type.getShape(), type.getElementType());
  SmallVector<Value> &pool = idle[memory];
  if (!pool.empty())
    return pool.pop_back_val();
  OpBuilder builder(&kernel.getBody().front(),
                    kernel.getBody().front().begin());
  all.push_back(memref::AllocOp::create(builder, kernel.getLoc(), memory,
                                        builder.getI64IntegerAttr(64)));
  return all.back();
}

void TileBuffers::release(Value buffer) {
  idle[buffer.getType()].push_back(buffer);
}

void TileBuffers::finish() {
  OpBuilder builder(kernel.getBody().front().getTerminator());
  for (Value buffer : all)
    memref::DeallocOp::create(builder, kernel.getLoc(), buffer);
}

void TileBuffers::fill(OpBuilder &builder, Location loc, Value value,
                       Value buffer) {
  auto type = cast<VectorType>(value.getType());
  emitLoops(builder, loc, type.getShape(),
            [&](OpBuilder &b, ValueRange indices) {
              Value scalar = element(b, loc, value, indices);
              memref::StoreOp::create(b, loc, scalar, buffer, indices);
            });
}

/// The indices of the source that a broadcast reads: trailing dimensions match,
/// a unit dimension is stretched.
static SmallVector<Value> stretch(OpBuilder &builder, Location loc,
                                  VectorType source, ValueRange indices) {
  SmallVector<Value> result;
  ValueRange trailing = indices.take_back(source.getRank());
  for (auto [size, index] : llvm::zip_equal(source.getShape(), trailing))
    result.push_back(size == 1 ? indexConstant(builder, loc, 0) : index);
  return result;
}

/// The indices into `from` of the element that stands at `indices` in `to`,
/// both in row-major order.
static SmallVector<Value> reshape(OpBuilder &builder, Location loc,
                                  VectorType to, VectorType from,
                                  ValueRange indices) {
  auto wide = [](int64_t size) { return size != 1; };
  SmallVector<Value> result, used;
  for (auto [size, index] : llvm::zip_equal(to.getShape(), indices))
    if (wide(size))
      used.push_back(index);
  // Only unit dimensions come or go: the other indices stay.
  if (llvm::equal(llvm::make_filter_range(to.getShape(), wide),
                  llvm::make_filter_range(from.getShape(), wide))) {
    const Value *next = used.begin();
    for (int64_t size : from.getShape())
      result.push_back(wide(size) ? *next++ : indexConstant(builder, loc, 0));
    return result;
  }
  Value linear = indexConstant(builder, loc, 0);
  for (auto [size, index] : llvm::zip_equal(to.getShape(), indices)) {
    Value scale = indexConstant(builder, loc, size);
    linear = arith::MulIOp::create(builder, loc, linear, scale);
    linear = arith::AddIOp::create(builder, loc, linear, index);
  }
  for (int64_t size : llvm::reverse(from.getShape())) {
    Value scale = indexConstant(builder, loc, size);
    result.push_back(arith::RemUIOp::create(builder, loc, linear, scale));
    linear = arith::DivUIOp::create(builder, loc, linear, scale);
  }
  return SmallVector<Value>(llvm::reverse(result));
}

Value TileBuffers::element(OpBuilder &builder, Location loc, Value value,
                           ValueRange indices) {
  if (!isa<VectorType>(value.getType()))
    return value;
  if (Value buffer = lookup(value))
    return memref::LoadOp::create(builder, loc, buffer, indices);
  Operation *def = value.getDefiningOp();
  auto type = cast<VectorType>(value.getType());
  auto of = [&](Value source, ArrayRef<Value> at) {
    return element(builder, loc, source, at);
  };
  return llvm::TypeSwitch<Operation *, Value>(def)
      .Case([&](arith::ConstantOp op) -> Value {
        auto splat = cast<DenseElementsAttr>(op.getValue());
        return arith::ConstantOp::create(
            builder, loc, cast<TypedAttr>(splat.getSplatValue<Attribute>()));
      })
      .Case([&](tile::CoordsOp op) -> Value {
        Value offset = arith::IndexCastOp::create(
            builder, loc, builder.getI32Type(), indices[op.getAxis()]);
        return arith::AddIOp::create(builder, loc, op.getBase(), offset);
      })
      .Case([&](vector::BroadcastOp op) -> Value {
        auto source = dyn_cast<VectorType>(op.getSourceType());
        if (!source)
          return op.getSource();
        return of(op.getSource(), stretch(builder, loc, source, indices));
      })
      .Case([&](vector::ShapeCastOp op) -> Value {
        return of(op.getSource(), reshape(builder, loc, type,
                                          op.getSourceVectorType(), indices));
      })
      .Case([&](vector::TransposeOp op) -> Value {
        SmallVector<Value> source(indices.size());
        for (auto [from, to] : llvm::enumerate(op.getPermutation()))
          source[to] = indices[from];
        return of(op.getVector(), source);
      })
      .Default([&](Operation *op) -> Value {
        IRMapping mapping;
        for (Value operand : op->getOperands())
          mapping.map(operand, of(operand, SmallVector<Value>(indices)));
        Operation *scalar = builder.clone(*op, mapping);
        scalar->getResult(0).setType(type.getElementType());
        return scalar->getResult(0);
      });
}
