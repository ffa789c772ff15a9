//===- CopyToLoops.cpp - copies between memrefs as loops -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTCOPYTOLOOPS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;

static void lowerCopy(memref::CopyOp op, int64_t rank) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  SmallVector<Value> sizes, indices;
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(memref::DimOp::create(builder, loc, op.getSource(), d));
  for (Value size : sizes) {
    auto loop = scf::ForOp::create(builder, loc, zero, size, one);
    indices.push_back(loop.getInductionVar());
    builder.setInsertionPointToStart(loop.getBody());
  }
  Value element = memref::LoadOp::create(builder, loc, op.getSource(), indices);
  memref::StoreOp::create(builder, loc, element, op.getTarget(), indices);
  op.erase();
}

namespace {
struct ConvertCopyToLoops
    : public attn::impl::ConvertCopyToLoopsBase<ConvertCopyToLoops> {
  void runOnOperation() override {
    getOperation()->walk([](memref::CopyOp op) {
      if (auto type = dyn_cast<MemRefType>(op.getSource().getType()))
        if (isa<MemRefType>(op.getTarget().getType()))
          lowerCopy(op, type.getRank());
    });
  }
};
} // namespace
