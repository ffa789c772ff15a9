//===- Canonicalize.cpp - canonical forms of attention -*- C++ -*-===//
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
static SmallVector<BlockArgument, 3> captureArguments(ScoredOp op,
                                                      unsigned number) {
  SmallVector<BlockArgument, 3> arguments;
  for (Region &region : op->getRegions())
    if (!region.empty())
      arguments.push_back(region.getArgument(region.getNumArguments() -
                                             op.getCaptures().size() + number));
  return arguments;
}

/// Whether the gradient of a capture is a result: then it has to stay.
static bool hasGradient(ScoredOp op, unsigned number) {
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  return backward && backward.getGradientNumber(number);
}

/// The numbers of captures when capture `erased` has gone.
static SmallVector<int64_t> renumber(ArrayRef<int64_t> numbers,
                                     unsigned erased) {
  SmallVector<int64_t> kept;
  for (int64_t number : numbers)
    if (number != erased)
      kept.push_back(number > erased ? number - 1 : number);
  return kept;
}

/// Keeps the promises about captures (C28) when capture `erased` has gone.
template <typename Op> static void renumberSorted(Op op, unsigned erased) {
  std::optional<ArrayRef<int64_t>> sorted = op.getSortedCaptures();
  if (!sorted)
    return;
  SmallVector<int64_t> kept = renumber(*sorted, erased);
  if (kept.empty())
    op.removeSortedCapturesAttr();
  else
    op.setSortedCaptures(kept);
}

/// Removes a capture whose block arguments have no uses, and the operation that
/// fed only it.
template <typename Op>
static void eraseCapture(RewriterBase &rewriter, Op op, unsigned number) {
  Operation *feeder = op.getCaptures()[number].getDefiningOp();
  rewriter.modifyOpInPlace(op, [&] {
    for (BlockArgument argument : captureArguments(op, number))
      argument.getOwner()->eraseArgument(argument.getArgNumber());
    op.getCapturesMutable().erase(number);
    renumberSorted(op, number);
    if constexpr (std::is_same_v<Op, AttentionBackwardOp>)
      if (std::optional<ArrayRef<int64_t>> listed = op.getGradCaptures())
        op.setGradCaptures(renumber(*listed, number));
  });
  if (feeder && isOpTriviallyDead(feeder))
    rewriter.eraseOp(feeder);
}

namespace {

/// captures(%a) where no region reads it -> nothing.
template <typename Op> struct DropDeadCapture : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (unsigned number = op.getCaptures().size(); number-- > 0;)
      if (!hasGradient(op, number) &&
          llvm::all_of(captureArguments(op, number),
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
template <typename Op> struct MergeEqualCaptures : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (unsigned later = op.getCaptures().size(); later-- > 1;) {
      ValueRange captures = op.getCaptures();
      unsigned first = llvm::find(captures, captures[later]) - captures.begin();
      if (first == later || hasGradient(op, later))
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
template <typename Op> struct SinkConstantCapture : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (unsigned number = op.getCaptures().size(); number-- > 0;) {
      Value capture = op.getCaptures()[number];
      TypedAttr constant;
      if (hasGradient(op, number) ||
          !AttentionOp::isScalar(capture.getType()) ||
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
template <typename Op> struct DropIdentityScore : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
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
template <typename Op> struct DropTrueMask : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
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

/// pullback(%dy, …) { yield %dy } -> no pullback.
struct DropIdentityPullback : OpRewritePattern<AttentionBackwardOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionBackwardOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPullback())
      return rewriter.notifyMatchFailure(op, "there is no pullback region");
    Block &block = op.getPullback().front();
    auto yield = cast<YieldOp>(block.getTerminator());
    if (yield.getValue() != block.getArgument(0) ||
        !block.getOps<CaptureAddOp>().empty())
      return rewriter.notifyMatchFailure(op, "pullback computes something");
    rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&block); });
    return success();
  }
};

/// pushforward(%tx, …) { yield %tx } -> no pushforward.
struct DropIdentityPushforward : OpRewritePattern<AttentionJvpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionJvpOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPushforward())
      return rewriter.notifyMatchFailure(op, "there is no pushforward region");
    Block &block = op.getPushforward().front();
    auto yield = cast<YieldOp>(block.getTerminator());
    if (yield.getValue() != block.getArgument(0))
      return rewriter.notifyMatchFailure(op, "pushforward computes something");
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

/// What holds for all of the operations.
template <typename Op>
static void addCommonPatterns(RewritePatternSet &patterns) {
  patterns
      .add<DropDeadCapture<Op>, MergeEqualCaptures<Op>, SinkConstantCapture<Op>,
           DropIdentityScore<Op>, DropTrueMask<Op>>(patterns.getContext());
}

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  addCommonPatterns<AttentionOp>(patterns);
  patterns.add<DropEmptyVariants>(context);
}

void AttentionBackwardOp::getCanonicalizationPatterns(
    RewritePatternSet &patterns, MLIRContext *context) {
  addCommonPatterns<AttentionBackwardOp>(patterns);
  patterns.add<DropIdentityPullback>(context);
}

void AttentionJvpOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                 MLIRContext *context) {
  addCommonPatterns<AttentionJvpOp>(patterns);
  patterns.add<DropIdentityPushforward>(context);
}
