//===- Canonicalize.cpp - canonical form of attn.attention -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace attn;

/// The block arguments of capture `number`, one per region that exists.
static SmallVector<BlockArgument, 2> captureArguments(AttentionOp op,
                                                      unsigned number) {
  SmallVector<BlockArgument, 2> arguments;
  if (op.hasScore())
    arguments.push_back(
        op.getScore().getArgument(AttentionOp::kScoreArguments + number));
  if (op.hasMask())
    arguments.push_back(
        op.getMask().getArgument(AttentionOp::kMaskArguments + number));
  return arguments;
}

/// Keeps the promises about captures (C28) when capture `erased` has gone.
static void renumberSorted(AttentionOp op, unsigned erased) {
  std::optional<ArrayRef<int64_t>> sorted = op.getSortedCaptures();
  if (!sorted)
    return;
  SmallVector<int64_t> kept;
  for (int64_t number : *sorted)
    if (number != erased)
      kept.push_back(number > erased ? number - 1 : number);
  if (kept.empty())
    op.removeSortedCapturesAttr();
  else
    op.setSortedCaptures(kept);
}

/// Removes a capture whose block arguments have no uses, and the operation that
/// fed only it.
static void eraseCapture(RewriterBase &rewriter, AttentionOp op,
                         unsigned number) {
  Operation *feeder = op.getCaptures()[number].getDefiningOp();
  rewriter.modifyOpInPlace(op, [&] {
    for (BlockArgument argument : captureArguments(op, number))
      argument.getOwner()->eraseArgument(argument.getArgNumber());
    op.getCapturesMutable().erase(number);
    renumberSorted(op, number);
  });
  if (feeder && isOpTriviallyDead(feeder))
    rewriter.eraseOp(feeder);
}

namespace {

/// captures(%a) where no region reads it -> nothing.
struct DropDeadCapture : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (unsigned number = op.getCaptures().size(); number-- > 0;)
      if (llvm::all_of(captureArguments(op, number),
                       [](BlockArgument a) { return a.use_empty(); })) {
        eraseCapture(rewriter, op, number);
        changed = true;
      }
    if (changed)
      return success();
    return rewriter.notifyMatchFailure(op, "every capture is read");
  }
};

/// captures(%a, %a) -> captures(%a).
struct MergeEqualCaptures : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (unsigned later = op.getCaptures().size(); later-- > 1;) {
      ValueRange captures = op.getCaptures();
      unsigned first = llvm::find(captures, captures[later]) - captures.begin();
      if (first == later)
        continue;
      for (auto [from, to] :
           llvm::zip(captureArguments(op, later), captureArguments(op, first)))
        rewriter.replaceAllUsesWith(from, to);
      // What was promised of either is true of the one.
      if (op.isSortedCapture(later) && !op.isSortedCapture(first)) {
        SmallVector<int64_t> sorted(*op.getSortedCaptures());
        sorted.push_back(first);
        rewriter.modifyOpInPlace(op, [&] { op.setSortedCaptures(sorted); });
      }
      eraseCapture(rewriter, op, later);
      changed = true;
    }
    if (changed)
      return success();
    return rewriter.notifyMatchFailure(op, "captures differ");
  }
};

/// A captured scalar constant -> a constant in the regions.
struct SinkConstantCapture : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (unsigned number = op.getCaptures().size(); number-- > 0;) {
      Value capture = op.getCaptures()[number];
      TypedAttr constant;
      if (!AttentionOp::isScalar(capture.getType()) ||
          !matchPattern(capture, m_Constant(&constant)))
        continue;
      for (BlockArgument argument : captureArguments(op, number)) {
        rewriter.setInsertionPointToStart(argument.getOwner());
        rewriter.replaceAllUsesWith(
            argument,
            arith::ConstantOp::create(rewriter, capture.getLoc(), constant));
      }
      eraseCapture(rewriter, op, number);
      changed = true;
    }
    if (changed)
      return success();
    return rewriter.notifyMatchFailure(op, "no capture is a scalar constant");
  }
};

/// score(%x, …) { yield %x } -> no score.
struct DropIdentityScore : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasScore())
      return rewriter.notifyMatchFailure(op, "there is no score region");
    Block &block = op.getScore().front();
    auto yield = cast<YieldOp>(block.getTerminator());
    if (yield.getValue() != block.getArgument(0))
      return rewriter.notifyMatchFailure(op, "score computes something");
    rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&block); });
    return success();
  }
};

/// mask(…) { yield true } -> no mask.
struct DropTrueMask : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasMask())
      return rewriter.notifyMatchFailure(op, "there is no mask region");
    Block &block = op.getMask().front();
    auto yield = cast<YieldOp>(block.getTerminator());
    if (!matchPattern(yield.getValue(), m_One()))
      return rewriter.notifyMatchFailure(op, "mask is not the constant true");
    rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&block); });
    return success();
  }
};

/// variants = [] -> no variants.
struct DropEmptyVariants : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getVariantsAttr() || !op.getVariantsAttr().empty())
      return rewriter.notifyMatchFailure(op, "there is no empty variants list");
    rewriter.modifyOpInPlace(op, [&] { op.removeVariantsAttr(); });
    return success();
  }
};

} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<DropDeadCapture, MergeEqualCaptures, SinkConstantCapture,
               DropIdentityScore, DropTrueMask, DropEmptyVariants>(context);
}
