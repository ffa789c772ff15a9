//===- PlaceSlots.cpp - loaded tiles go to shared memory ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

static void placeSlot(RewriterBase &rewriter, warp::KernelOp kernel,
                      tile::LoadOp load, bool aInRegisters) {
  auto type = cast<VectorType>(load.getResult().getType());
  Location loc = load.getLoc();
  rewriter.setInsertionPointToStart(kernel.getBodyBlock());
  Value slot = warp::AllocOp::create(rewriter, loc,
                                     warp::SlotType::get(kernel.getContext(),
                                                         type.getShape(),
                                                         type.getElementType()),
                                     /*offset=*/nullptr);
  rewriter.setInsertionPoint(load);
  warp::CopyOp::create(rewriter, loc, load.getView(), load.getIndices(), slot);

  Value inRegisters;
  for (OpOperand &use :
       llvm::make_early_inc_range(load.getResult().getUses())) {
    bool isLhs = use.getOperandNumber() == 0;
    Value tile = slot;
    if (isLhs && aInRegisters) {
      if (!inRegisters)
        inRegisters = warp::LoadFragOp::create(
            rewriter, loc,
            warp::FragType::get(kernel.getContext(), type.getShape(),
                                type.getElementType(), warp::FragKind::A,
                                kernel.getWarps()),
            slot);
      tile = inRegisters;
    }
    auto cast = UnrealizedConversionCastOp::create(rewriter, loc, type, tile);
    rewriter.modifyOpInPlace(use.getOwner(),
                             [&] { use.set(cast.getResult(0)); });
  }
  rewriter.eraseOp(load);
}

void attn::placeSlots(RewriterBase &rewriter, warp::KernelOp kernel,
                      bool aInRegisters) {
  SmallVector<tile::LoadOp> loads;
  kernel.walk([&](tile::LoadOp load) { loads.push_back(load); });
  // Each slot goes to the start of the kernel; keep them in program order.
  for (tile::LoadOp load : llvm::reverse(loads))
    placeSlot(rewriter, kernel, load, aInRegisters);
}
