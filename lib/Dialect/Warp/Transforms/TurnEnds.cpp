//===- TurnEnds.cpp - the ends of a tile take turns, too ------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// warp-insert-turns orders the products of a loop. The first scores of a tile
// and its last P V stand before and behind the loops: without a turn they come
// between the products of a group that has its turn, which waits longer then.
// Each group has one of each in every tile, so that all take as many turns,
// though not the same ones: a group that passes over the last blocks issues its
// last P V before it takes the turns of these blocks, others after them.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Dialect/Warp/IR/Turns.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPTURNENDS
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

/// Whether groups that pass over blocks would be several turns apart.
static bool partsGroups(Block *tile) {
  if (llvm::none_of(tile->getOps<scf::ForOp>(), getPassedEnd))
    return false;
  int64_t numTogether = 0; // since the last loop whose blocks take turns
  for (Operation &op : *tile) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && !loop.getBody()->getOps<TurnOp>().empty())
      numTogether = 0;
    else if (isa<MmaAsyncOp>(op) && ++numTogether > 1)
      return true;
  }
  return false;
}

int64_t attn::warp::turnEnds(RewriterBase &rewriter, KernelOp kernel,
                             std::string &reason) {
  // Of a tile: where the loops stand whose products take turns.
  llvm::SetVector<Block *> tiles;
  kernel.walk([&](TurnOp turn) {
    if (auto loop = dyn_cast<scf::ForOp>(turn->getParentOp()))
      tiles.insert(loop->getBlock());
  });
  int64_t numTurns = 0;
  for (Block *tile : tiles) {
    if (partsGroups(tile)) {
      reason = "groups that pass over blocks would be several turns apart";
      continue;
    }
    for (auto issue : llvm::make_early_inc_range(tile->getOps<MmaAsyncOp>())) {
      moveToTurn(rewriter, issue.getOperation());
      ++numTurns;
    }
  }
  if (tiles.empty())
    reason = "no products of a loop take turns";
  else if (numTurns == 0 && reason.empty())
    reason = "all products are in the loops";
  return numTurns;
}

namespace {
struct WarpTurnEnds final
    : attn::SchedulePass<attn::warp::impl::WarpTurnEndsBase<WarpTurnEnds>,
                         KernelOp, WarpForm::Deepened> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("turns", turnEnds(rewriter, kernel, reason), reason);
  }
};
} // namespace
