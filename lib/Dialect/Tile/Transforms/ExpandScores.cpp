//===- ExpandScores.cpp - scores of a block as code on vectors ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"

#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/ScalarCode.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

namespace attn::tile {
#define GEN_PASS_DEF_TILEEXPANDSCORES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Whether scores or masks read from memory.
static bool readsMemory(ScoresOp op) {
  WalkResult walk = op->walk([](Operation *inner) {
    return isa<GatherOp, SearchOp>(inner) ? WalkResult::interrupt()
                                          : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

/// The load of the keys that the scores of a block without a loop are of.
static Operation *findKeyLoad(ScoresOp op) {
  auto product = op.getScores().getDefiningOp<vector::ContractionOp>();
  Operation *load =
      product ? product.getRhs().getDefiningOp<LoadOp>() : nullptr;
  return load && load->getBlock() == op->getBlock() ? load : nullptr;
}

/// Before what stands the code that all steps share: the first loop of the
/// chain around `op`, or `op` itself where there is no loop. What reads from
/// memory does so while the keys are awaited, not after.
static Operation *findHead(ScoresOp op) {
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  if (!loop) {
    Operation *load = readsMemory(op) ? findKeyLoad(op) : nullptr;
    return load ? load : op;
  }
  std::string reason;
  FailureOr<BlockLoops> loops = matchKeyLoops(loop->getBlock(), reason);
  bool isInChain = succeeded(loops) && llvm::is_contained(loops->loops, loop);
  return isInChain ? loops->front() : loop;
}

/// The keys that `op` shows, as a vector of i1; null if it hides nothing.
static Value expandMask(OpBuilder &b, ScoresOp op, Operation *head) {
  auto scores = cast<VectorType>(op.getScores().getType());
  VectorType type = scores.clone(b.getI1Type());
  Location loc = op.getLoc();
  Value mask;
  if (Value below = op.getBelow()) {
    OpBuilder outer(head);
    Value keys = op.getKeys();
    below = vector::BroadcastOp::create(outer, loc, keys.getType(), below);
    mask =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, keys, below);
    mask = vector::BroadcastOp::create(b, loc, type, mask);
  }
  if (!op.hasMask())
    return mask;
  Value visible = expandScalarCode(
      b, head, op.getMask(),
      {op.getBatch(), op.getHead(), op.getQueries(), op.getKeys()},
      type.getShape());
  return mask ? arith::AndIOp::create(b, loc, visible, mask) : visible;
}

/// What goes back where a score is not -inf goes back where the mask shows it:
/// the score itself, a softcap's, is none. Without a comparison of scores their
/// quotients lead to no decision.
static void choosePullbackByMask(RewriterBase &rewriter, ScoresOp op,
                                 Value scores, Value mask) {
  bool hidesItself = scores.getDefiningOp<arith::SelectOp>() != nullptr;
  if (hidesItself || !boundMagnitude(scores))
    return;
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    auto isHidden = dyn_cast<arith::CmpFOp>(user);
    if (!isHidden || isHidden.getPredicate() != arith::CmpFPredicate::OEQ ||
        isHidden.getLhs() != op.getResult() || !isMinusInf(isHidden.getRhs()) ||
        !isHidden->hasOneUse())
      continue;
    auto choice = dyn_cast<arith::SelectOp>(*isHidden->user_begin());
    if (!choice || choice.getCondition() != isHidden.getResult())
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(choice);
    if (mask)
      rewriter.replaceOpWithNewOp<arith::SelectOp>(
          choice, mask, choice.getFalseValue(), choice.getTrueValue());
    else
      rewriter.replaceOp(choice, choice.getFalseValue());
    rewriter.eraseOp(isHidden);
  }
}

void attn::tile::expandScores(RewriterBase &rewriter, ScoresOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Operation *head = findHead(op);
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getResult().getType());
  Value scores = op.getScores();
  if (op.hasScore())
    scores = expandScalarCode(
        rewriter, head, op.getScore(),
        {scores, op.getBatch(), op.getHead(), op.getQueries(), op.getKeys()},
        type.getShape());
  Value mask = expandMask(rewriter, op, head);
  choosePullbackByMask(rewriter, op, scores, mask);
  if (mask) {
    OpBuilder outer(head);
    Value hidden = arith::ConstantOp::create(
        outer, loc,
        DenseElementsAttr::get(type, -std::numeric_limits<float>::infinity()));
    scores = arith::SelectOp::create(rewriter, loc, mask, scores, hidden);
  }
  rewriter.replaceOp(op, scores);
}

/// A pullback takes the approximate tanh of the score, as it would an exact
/// one.
static void shareApproximations(RewriterBase &rewriter, Operation *root) {
  auto isApproximate = [](math::TanhOp op) {
    return arith::bitEnumContainsAll(op.getFastmath(),
                                     arith::FastMathFlags::afn);
  };
  SmallVector<math::TanhOp> approximate;
  root->walk([&](math::TanhOp op) {
    if (isApproximate(op))
      approximate.push_back(op);
  });
  for (math::TanhOp op : approximate)
    for (Operation *user :
         llvm::make_early_inc_range(op.getOperand().getUsers())) {
      auto other = dyn_cast<math::TanhOp>(user);
      if (other && !isApproximate(other) &&
          other->getBlock() == op->getBlock() && op->isBeforeInBlock(other))
        rewriter.replaceOp(other, op);
    }
}

namespace {
struct TileExpandScores final
    : attn::tile::impl::TileExpandScoresBase<TileExpandScores> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(
            requireForm(getOperation(), TileForm::Overlapped, getArgument())))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    auto findFirst = [&] {
      ScoresOp first;
      getOperation()->walk([&](ScoresOp op) {
        first = op;
        return WalkResult::interrupt();
      });
      return first;
    };
    // With one go others that nobody uses any more.
    while (ScoresOp op = findFirst()) {
      SmallVector<Block *> blocks{op->getBlock()};
      while (auto loop = dyn_cast<scf::ForOp>(blocks.back()->getParentOp()))
        blocks.push_back(loop->getBlock());
      expandScores(rewriter, op);
      for (Block *block : blocks)
        eraseDeadOps(rewriter, block);
    }
    shareScalarCode(rewriter, getOperation());
    shareApproximations(rewriter, getOperation());
  }
};
} // namespace
