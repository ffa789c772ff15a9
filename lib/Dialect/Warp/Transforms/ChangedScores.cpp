//===- ChangedScores.cpp - loops that compute upon scores -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChangedScores.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::warp;

bool attn::warp::changesScores(scf::ForOp loop) {
  // Weights that a product reads have the shape of the scores.
  ArrayRef<int64_t> scores;
  loop.getBody()->walk([&](ProductOp product) {
    if (auto left = dyn_cast<FragType>(product.getA().getType()))
      scores = left.getShape();
  });
  return llvm::any_of(*loop.getBody(), [&](Operation &op) {
    auto type = op.getNumResults() == 1
                    ? dyn_cast<FragType>(op.getResult(0).getType())
                    : FragType();
    return type && type.getShape() == scores &&
           !isa<ProductOp, WaitOp, SplatOp, BroadcastOp, ConvertOp, CastOp,
                math::FmaOp, math::Exp2Op, arith::MulFOp, scf::IfOp>(op);
  });
}
