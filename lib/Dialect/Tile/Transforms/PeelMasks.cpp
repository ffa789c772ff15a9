//===- PeelMasks.cpp - full, partial and empty key blocks -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/MaskBounds.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEPEELMASKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// True unless `scores` may hold -inf although everything is visible: a sum or
/// product of finite numbers counts as finite, an element read from memory or
/// an argument may be anything.
static bool mayBeMinusInf(Value scores) {
  Operation *op = scores.getDefiningOp();
  if (!op)
    return !isa<IntegerType>(getElementTypeOrSelf(scores));
  DenseElementsAttr elements;
  if (matchPattern(scores, m_Constant(&elements)))
    return !elements.isSplat() || !elements.getSplatValue<APFloat>().isFinite();
  FloatAttr number;
  if (matchPattern(scores, m_Constant(&number)))
    return !number.getValue().isFinite();
  if (isa<vector::ContractionOp, arith::SIToFPOp, arith::UIToFPOp,
          math::TanhOp>(op))
    return false;
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
          math::FmaOp, math::Exp2Op, math::ExpOp, math::AbsFOp,
          vector::BroadcastOp>(op))
    return llvm::any_of(op->getOperands(), mayBeMinusInf);
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return mayBeMinusInf(select.getTrueValue()) ||
           mayBeMinusInf(select.getFalseValue());
  return true;
}

/// Removes the mask of the step in `loop`, and what only it needed.
static void dropMask(RewriterBase &rewriter, scf::ForOp loop) {
  FailureOr<MaskedStep> step = matchMaskedStep(loop);
  auto select = cast<arith::SelectOp>(step->select);
  // In a block where everything shows every row sees a key.
  if (step->softmax.getGuard() && !mayBeMinusInf(select.getTrueValue()))
    rewriter.modifyOpInPlace(step->softmax,
                             [&] { step->softmax.setGuard(false); });
  rewriter.replaceOp(select, select.getTrueValue());
  SmallVector<Operation *> body = llvm::to_vector(
      llvm::make_pointer_range(loop.getBody()->without_terminator()));
  for (Operation *op : llvm::reverse(body))
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
}

/// True if no iteration runs, whatever the run time values.
static bool isNeverEntered(Value lowerBound, Value upperBound) {
  if (lowerBound == upperBound)
    return true;
  APInt lower, upper;
  return matchPattern(lowerBound, m_ConstantInt(&lower)) &&
         matchPattern(upperBound, m_ConstantInt(&upper)) && lower.sge(upper);
}

FailureOr<PeeledLoop> attn::tile::peelMasks(RewriterBase &rewriter,
                                            scf::ForOp loop,
                                            StringRef &reason) {
  FailureOr<MaskedStep> step = matchMaskedStep(loop);
  if (failed(step)) {
    reason = "not one online softmax of masked scores";
    return failure();
  }
  const MaskConditions &conditions = step->conditions;
  if (conditions.halfPlanes.empty()) {
    reason = "no part of the mask is affine in the coordinates";
    return failure();
  }

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  KeyBlockRange range = emitRange(rewriter, conditions, loop);
  PeeledLoop peeled;
  SmallVector<Value> state(loop.getInitArgs());
  auto addSegment = [&](Value lowerBound, Value upperBound) -> scf::ForOp {
    if (isNeverEntered(lowerBound, upperBound))
      return nullptr;
    auto segment = cast<scf::ForOp>(rewriter.clone(*loop));
    segment.setLowerBound(lowerBound);
    segment.setUpperBound(upperBound);
    segment.getInitArgsMutable().assign(state);
    state = llvm::to_vector_of<Value>(segment.getResults());
    peeled.segments.push_back(segment);
    return segment;
  };
  if (conditions.hasOpaque) {
    addSegment(range.lo, range.hi);
  } else {
    if (range.hasLower)
      addSegment(range.lo, range.fullLo);
    peeled.unmasked = addSegment(range.fullLo, range.fullHi);
    if (peeled.unmasked)
      dropMask(rewriter, peeled.unmasked);
    if (range.hasUpper)
      addSegment(range.fullHi, range.hi);
  }
  rewriter.replaceOp(loop, state);
  return peeled;
}

namespace {
struct TilePeelMasks final
    : attn::tile::impl::TilePeelMasksBase<TilePeelMasks> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](OnlineSoftmaxOp op) {
      auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
      if (loop && !llvm::is_contained(loops, loop))
        loops.push_back(loop);
    });
    IRRewriter rewriter(&getContext());
    bool changed = false;
    for (scf::ForOp loop : loops) {
      Location loc = loop.getLoc();
      StringRef reason;
      FailureOr<PeeledLoop> peeled = peelMasks(rewriter, loop, reason);
      if (failed(peeled)) {
        remark::missed(
            loc, remark::RemarkOpts::name("peel-masks").category(getArgument()))
            << reason;
        continue;
      }
      changed = true;
      remark::passed(
          loc, remark::RemarkOpts::name("peel-masks").category(getArgument()))
          << remark::metric("segments", peeled->segments.size())
          << remark::metric("unmasked", peeled->unmasked ? 1 : 0);
    }
    if (changed) {
      DominanceInfo dominance(getOperation());
      eliminateCommonSubExpressions(rewriter, dominance, getOperation());
    }
  }
};
} // namespace
