//===- KeyLoops.cpp - the loops over blocks of a kernel -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

bool attn::tile::isLoopOverBlocks(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), [&](Operation &op) {
    return isa<LoadOp, CoordsOp>(op) &&
           !llvm::all_of(op.getOperands(), [&](Value operand) {
             return loop.isDefinedOutsideOfLoop(operand);
           });
  });
}

FailureOr<BlockLoops> attn::tile::matchKeyLoops(Block *block,
                                                std::string &reason) {
  SmallVector<scf::ForOp, 3> loops(
      llvm::make_filter_range(block->getOps<scf::ForOp>(), isLoopOverBlocks));
  FailureOr<BlockLoops> chain = matchBlockLoops(loops, reason);
  if (succeeded(chain) && !chain->handOnAll()) {
    reason = "what a loop over blocks gives does not go on in the next one "
             "alone";
    return failure();
  }
  return chain;
}

SmallVector<scf::ForOp> attn::tile::findLoopsOverBlocks(Operation *root) {
  SmallVector<scf::ForOp> loops;
  root->walk([&](scf::ForOp loop) {
    if (isLoopOverBlocks(loop))
      loops.push_back(loop);
  });
  return loops;
}

int64_t attn::tile::getNumTileRows(const BlockLoops &loops) {
  for (auto product : loops.front().getBody()->getOps<vector::ContractionOp>())
    if (auto type = dyn_cast<VectorType>(product.getResultType()))
      return type.getDimSize(0);
  return 0;
}
