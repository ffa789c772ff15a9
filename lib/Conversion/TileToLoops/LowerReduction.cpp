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
  auto type = dyn_cast<VectorType>(op.getDestType());
  if (!type)
    return op.emitError("only a reduction to a vector can be lowered to "
                        "loops, this one gives ")
           << op.getDestType();
  Location loc = op.getLoc();
  Value result = buffers.acquire(type);
  buffers.fill(builder, loc, op.getAcc(), result);
  auto source = cast<VectorType>(op.getSource().getType());
  emitLoops(builder, loc, source.getShape(), [&](OpBuilder &b, ValueRange at) {
    SmallVector<Value> where;
    for (auto [d, index] : llvm::enumerate(at))
      if (!op.isReducedDim(d))
        where.push_back(index);
    Value scalar = buffers.element(b, loc, op.getSource(), at);
    Value sum = memref::LoadOp::create(b, loc, result, where);
    sum = vector::makeArithReduction(b, loc, op.getKind(), sum, scalar);
    memref::StoreOp::create(b, loc, sum, result, where);
  });
  buffers.bind(op.getResult(), result);
  return success();
}
