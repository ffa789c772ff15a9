//===- LowerReduction.cpp - reductions as loops -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

LogicalResult attn::lowerReduction(OpBuilder &builder, TileBuffers &buffers,
                                   vector::MultiDimReductionOp op) {
  Location loc = op.getLoc();
  // A scalar goes through a buffer of one element.
  auto type = dyn_cast<VectorType>(op.getDestType());
  bool isScalar = !type;
  if (isScalar)
    type = VectorType::get({1}, op.getDestType());
  Value result = buffers.acquire(type);
  Value first = arith::ConstantIndexOp::create(builder, loc, 0);
  if (isScalar)
    memref::StoreOp::create(builder, loc, op.getAcc(), result, first);
  else
    buffers.fill(builder, loc, op.getAcc(), result);
  auto source = cast<VectorType>(op.getSource().getType());
  emitLoops(builder, loc, source.getShape(), [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> where;
    for (auto [d, index] : llvm::enumerate(at))
      if (!op.isReducedDim(d))
        where.push_back(index);
    if (isScalar)
      where.push_back(first);
    Value scalar = buffers.element(b, loc, op.getSource(), at);
    Value sum = memref::LoadOp::create(b, loc, result, where);
    sum = vector::makeArithReduction(b, loc, op.getKind(), sum, scalar);
    memref::StoreOp::create(b, loc, sum, result, where);
  });
  if (isScalar) {
    Value scalar = memref::LoadOp::create(builder, loc, result, first);
    op.getResult().replaceAllUsesWith(scalar);
    buffers.release(result);
    return success();
  }
  buffers.bind(op.getResult(), result);
  return success();
}
