//===- KeyLoops.cpp - the loops over blocks of a kernel -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"

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

OnlineSoftmaxOp attn::tile::findSoftmax(ScoresOp op) {
  auto softmaxes = llvm::make_filter_range(op->getUsers(), [](Operation *user) {
    return isa<OnlineSoftmaxOp>(user);
  });
  return softmaxes.empty() ? OnlineSoftmaxOp()
                           : cast<OnlineSoftmaxOp>(*softmaxes.begin());
}

OnlineSoftmaxOp attn::tile::findSoftmax(scf::ForOp loop) {
  auto softmaxes = loop.getBody()->getOps<OnlineSoftmaxOp>();
  return llvm::hasSingleElement(softmaxes) ? *softmaxes.begin()
                                           : OnlineSoftmaxOp();
}

/// The only user of `value`, if it stands in the same block.
template <typename OpTy> static OpTy getOnlyUser(Value value) {
  auto user = value.hasOneUse() ? dyn_cast<OpTy>(*value.user_begin()) : OpTy();
  return user && user->getBlock() == value.getParentBlock() ? user : OpTy();
}

FailureOr<SoftmaxStep> attn::tile::matchSoftmaxStep(scf::ForOp loop,
                                                    std::string &reason) {
  SoftmaxStep step;
  step.softmax = findSoftmax(loop);
  if (!step.softmax) {
    reason = "a loop over blocks has not one softmax";
    return failure();
  }
  step.stretched =
      getOnlyUser<vector::BroadcastOp>(step.softmax.getCorrection());
  if (step.stretched)
    step.rescaled = getOnlyUser<arith::MulFOp>(step.stretched);
  if (!step.rescaled || step.rescaled.getRhs() != step.stretched) {
    reason = "the correction does not only rescale the output";
    return failure();
  }
  step.weights = step.softmax.getProbabilities();
  if (auto rounding = getOnlyUser<arith::TruncFOp>(step.weights)) {
    step.rounding = rounding;
    step.weights = rounding;
  }
  if (auto dropping = getOnlyUser<arith::SelectOp>(step.weights);
      dropping && dropping.getTrueValue() == step.weights &&
      loop.isDefinedOutsideOfLoop(dropping.getFalseValue())) {
    step.dropping = dropping;
    step.weights = dropping;
  }
  return step;
}
