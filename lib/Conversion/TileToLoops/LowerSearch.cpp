//===- LowerSearch.cpp - tile.search as loops -*- C++ -*-===//
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

static Value compare(OpBuilder &builder, Location loc,
                     arith::CmpIPredicate predicate, Value lhs, Value rhs) {
  return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
}

/// One search, by halves: elements before `low` are <= value, those from `high`
/// on are not.
static Value emitSearch(OpBuilder &builder, Location loc, Value view,
                        ValueRange indices, Value value) {
  Type index = builder.getIndexType();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> from;
  Value end = memref::DimOp::create(builder, loc, view, indices.size());
  for (auto [dim, number] : llvm::enumerate(indices)) {
    Value position = arith::IndexCastOp::create(builder, loc, index, number);
    Value size = memref::DimOp::create(builder, loc, view, dim);
    for (Value inside :
         {compare(builder, loc, arith::CmpIPredicate::sge, position, zero),
          compare(builder, loc, arith::CmpIPredicate::slt, position, size)})
      end = arith::SelectOp::create(builder, loc, inside, end, zero);
    from.push_back(position);
  }
  auto loop = scf::WhileOp::create(
      builder, loc, TypeRange{index, index}, ValueRange{zero, end},
      [&](OpBuilder &b, Location loc, ValueRange range) {
        Value open =
            compare(b, loc, arith::CmpIPredicate::slt, range[0], range[1]);
        scf::ConditionOp::create(b, loc, open, range);
      },
      [&](OpBuilder &b, Location loc, ValueRange range) {
        Value sum = arith::AddIOp::create(b, loc, range[0], range[1]);
        Value middle = arith::ShRUIOp::create(b, loc, sum, one);
        from.push_back(middle);
        Value element = memref::LoadOp::create(b, loc, view, from);
        Value counts =
            compare(b, loc, arith::CmpIPredicate::sle, element, value);
        Value next = arith::AddIOp::create(b, loc, middle, one);
        scf::YieldOp::create(
            b, loc,
            {arith::SelectOp::create(b, loc, counts, next, range[0]),
             arith::SelectOp::create(b, loc, counts, range[1], middle)});
      });
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(),
                                    loop.getResult(0));
}

void attn::lowerSearch(OpBuilder &builder, TileBuffers &buffers,
                       tile::SearchOp op) {
  Location loc = op.getLoc();
  auto type = dyn_cast<VectorType>(op.getResult().getType());
  if (!type) {
    op.getResult().replaceAllUsesWith(
        emitSearch(builder, loc, op.getView(), op.getIndices(), op.getValue()));
    return;
  }
  Value buffer = buffers.acquire(type);
  emitLoops(builder, loc, type.getShape(), [&](OpBuilder &b, ValueRange at) {
    auto operand = [&](Value value) {
      return stretchedElement(b, loc, buffers, value, at);
    };
    SmallVector<Value> indices = llvm::map_to_vector(op.getIndices(), operand);
    Value found =
        emitSearch(b, loc, op.getView(), indices, operand(op.getValue()));
    memref::StoreOp::create(b, loc, found, buffer, at);
  });
  buffers.bind(op.getResult(), buffer);
}
