//===- FoldExp2.cpp - scores to powers of two -----------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"
#include "Precision.h"
#include "ValueAxes.h"

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Attn/IR/ScoreBound.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace attn::tile {
#define GEN_PASS_DEF_TILEFOLDEXP2
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static std::optional<APFloat> constantValue(Value value) {
  APFloat constant(0.0f);
  if (!matchPattern(value, m_ConstantFloat(&constant)))
    return std::nullopt;
  return constant;
}

/// What the score function gives where it hides nothing.
static OpOperand &getScore(ScoresOp op) {
  OpOperand &yielded = op.getScore().front().getTerminator()->getOpOperand(0);
  auto select = yielded.get().getDefiningOp<arith::SelectOp>();
  bool hides =
      select && select->hasOneUse() && isMinusInf(select.getFalseValue());
  return hides ? select->getOpOperand(1) : yielded;
}

/// Moves a positive constant factor of the scores into `scale`, which stays a
/// number that has an inverse.
static LogicalResult foldScale(RewriterBase &rewriter, ScoresOp op,
                               APFloat &scale) {
  OpOperand &score = getScore(op);
  auto product = score.get().getDefiningOp<arith::MulFOp>();
  if (!product || !ValueAxes(op, op.getScore()).isPerScore(product))
    return failure();
  Value unscaled = product.getLhs();
  std::optional<APFloat> factor = constantValue(product.getRhs());
  if (!factor) {
    unscaled = product.getRhs();
    factor = constantValue(product.getLhs());
  }
  if (!factor)
    return failure();
  APFloat folded = scale * *factor, inverse = APFloat(1.0f) / folded;
  if (!folded.isNormal() || !inverse.isNormal() || folded.isNegative())
    return failure();
  rewriter.modifyOpInPlace(score.getOwner(), [&] { score.set(unscaled); });
  scale = folded;
  if (product->use_empty())
    rewriter.eraseOp(product);
  return success();
}

/// x * a * b becomes x * (a * b), with one rounding instead of two: a softcap
/// divides the scaled scores once more.
static void mergeFactors(RewriterBase &rewriter, ValueAxes &axes,
                         arith::MulFOp outer) {
  auto inner = outer.getLhs().getDefiningOp<arith::MulFOp>();
  if (!inner || !inner->hasOneUse() || !axes.isPerScore(inner))
    return;
  std::optional<APFloat> a = constantValue(inner.getRhs());
  std::optional<APFloat> b = constantValue(outer.getRhs());
  if (!a || !b)
    return;
  APFloat factor = *a * *b;
  if (!factor.isNormal())
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(outer);
  Value constant = arith::ConstantOp::create(
      rewriter, outer.getLoc(), rewriter.getFloatAttr(outer.getType(), factor));
  auto merged = rewriter.replaceOpWithNewOp<arith::MulFOp>(
      outer, inner.getLhs(), constant);
  axes.add(merged, merged.getLhs());
  rewriter.eraseOp(inner);
}

/// A bias, number * rate of the row, becomes one fma of these two and the rest:
/// what tile-lazy-max takes into the reference.
static void fuseBias(RewriterBase &rewriter, ScoresOp op) {
  Operation *sum =
      op.getScore().front().getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::SubFOp>(sum) || !sum->hasOneUse())
    return;
  bool isDifference = isa<arith::SubFOp>(sum);
  ValueAxes axes(op, op.getScore());
  for (unsigned side : {1, 0}) {
    if (side == 0 && isDifference)
      return;
    auto bias = sum->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!bias || !bias->hasOneUse())
      continue;
    Value number = bias.getLhs(), rate = bias.getRhs();
    auto areAsNamed = [&] {
      return isWholeNumber(number) && axes.isPerScore(number) &&
             axes.isPerRow(rate);
    };
    if (!areAsNamed())
      std::swap(number, rate);
    if (!areAsNamed())
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    if (isDifference) {
      rewriter.setInsertionPointAfterValue(rate);
      rate = rewriter.createOrFold<arith::NegFOp>(rate.getLoc(), rate);
    }
    rewriter.setInsertionPoint(sum);
    rewriter.replaceOpWithNewOp<math::FmaOp>(sum, number, rate,
                                             sum->getOperand(1 - side));
    rewriter.eraseOp(bias);
    return;
  }
}

/// Products and their sum, with one rounding instead of two.
static void fuseSum(RewriterBase &rewriter, const ValueAxes &axes,
                    Operation *sum) {
  bool isDifference = isa<arith::SubFOp>(sum);
  for (unsigned side : {0, 1}) {
    auto product = sum->getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!product || !product->hasOneUse() || !axes.isPerScore(product))
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(sum);
    Value factor = product.getLhs(), other = sum->getOperand(1 - side);
    if (isDifference) {
      Value &negated = side == 0 ? other : factor;
      negated = arith::NegFOp::create(rewriter, sum->getLoc(), negated);
    }
    rewriter.replaceOpWithNewOp<math::FmaOp>(sum, factor, product.getRhs(),
                                             other);
    rewriter.eraseOp(product);
    return;
  }
}

/// Fewer operations, and roundings, in the score function; what leads to a
/// decision stays as it is written.
static void simplify(RewriterBase &rewriter, ScoresOp op,
                     const DecisionPaths &exact) {
  Block &block = op.getScore().front();
  ValueAxes axes(op, op.getScore());
  auto isWanted = [&](Operation *inner) {
    return axes.isPerScore(inner->getResult(0)) && !exact.contains(inner);
  };
  for (auto product : llvm::make_early_inc_range(block.getOps<arith::MulFOp>()))
    if (isWanted(product))
      mergeFactors(rewriter, axes, product);
  axes = ValueAxes(op, op.getScore());
  for (Operation &sum : llvm::make_early_inc_range(block.without_terminator()))
    if (isa<arith::AddFOp, arith::SubFOp>(sum) && isWanted(&sum))
      fuseSum(rewriter, axes, &sum);
  eraseDeadOps(rewriter, &block);
  if (block.getTerminator()->getOperand(0) == block.getArgument(0))
    rewriter.eraseBlock(&block);
}

/// Whether the scores are known to be small; says so in a remark.
static bool isBounded(ScoresOp op, const APFloat &scale) {
  std::optional<double> bound;
  if (op.hasScore())
    bound =
        boundMagnitude(op.getScore().front().getTerminator()->getOperand(0));
  if (bound)
    *bound *= scale.convertToDouble();
  auto options =
      remark::RemarkOpts::name("score-bound").category("tile-fold-exp2");
  if (bound && *bound <= maxFoldedScore) {
    remark::passed(op.getLoc(), options)
        << remark::metric("bound", *bound) << "one fma per score";
    return true;
  }
  remark::missed(op.getLoc(), options)
      << ("scores are not known to be at most " +
          Twine(int64_t(maxFoldedScore)) +
          ": where a row's maximum is larger, it is subtracted first")
             .str();
  return false;
}

//===----------------------------------------------------------------------===//
// Weights of gradients
//===----------------------------------------------------------------------===//

namespace {
/// exp2(fma(x, log2(e), offset)), as gradients compute weights once more. x are
/// the scores, or of a branch, which has them in its else arm; or all of it is
/// there. The other arm is that of heads with far rows.
struct KnownWeights {
  math::FmaOp exponent;
  scf::IfOp branch; // null where there is none
};
} // namespace

/// The type of what is multiplied; null where that is not known.
static Type getElement(ScoresOp op) {
  auto product = op.getScores().getDefiningOp<vector::ContractionOp>();
  return product ? product.getLhsType().getElementType() : Type();
}

/// The branch behind the scores whose second arm holds what takes them.
static scf::IfOp getBranch(ScoresOp op, Operation *taker) {
  auto branch = dyn_cast<scf::IfOp>(taker->getParentOp());
  bool isElse = branch && branch->getBlock() == op->getBlock() &&
                !branch.getElseRegion().empty() &&
                taker->getBlock() == branch.elseBlock();
  return isElse ? branch : scf::IfOp();
}

static bool isLog2e(Value value) {
  std::optional<APFloat> factor = constantValue(value);
  return factor && factor->isExactlyValue(llvm::numbers::log2ef);
}

static std::optional<KnownWeights> matchKnownWeights(ScoresOp op) {
  for (Operation *taker : op->getUsers()) {
    scf::IfOp branch = getBranch(op, taker);
    Value base = op.getResult();
    if (branch && isa<scf::YieldOp>(taker)) {
      base = branch.getResult(0);
      if (taker->getOperand(0) != op.getResult() || !base.hasOneUse())
        continue;
      taker = *base.user_begin();
    }
    auto exponent = dyn_cast<math::FmaOp>(taker);
    bool isKnown = exponent && exponent->hasOneUse() &&
                   exponent.getA() == base && isLog2e(exponent.getB()) &&
                   isa<math::Exp2Op>(*exponent->user_begin());
    if (isKnown)
      return KnownWeights{exponent, branch};
  }
  return std::nullopt;
}

/// Whether more takes the scores than their weights.
static bool isTakenElsewhere(ScoresOp op, const KnownWeights &known) {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return user != known.exponent &&
           !(known.branch && known.branch->isProperAncestor(user));
  });
}

static Value splat(OpBuilder &b, Location loc, Type type, double value) {
  APFloat number(static_cast<float>(value));
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(cast<VectorType>(type), number));
}

static Value multiply(OpBuilder &b, Location loc, Value value, APFloat factor) {
  if (factor.isExactlyValue(1.0))
    return value;
  return arith::MulFOp::create(
      b, loc, value, splat(b, loc, value.getType(), factor.convertToDouble()));
}

/// The arm of far rows takes scores that lack `scale`, and gives what lacks it
/// where the branch gives scores.
static void scaleFar(RewriterBase &rewriter, KnownWeights known, Value scores,
                     const APFloat &scale) {
  OpBuilder::InsertionGuard guard(rewriter);
  Block *far = known.branch.thenBlock();
  Location loc = known.branch.getLoc();
  rewriter.setInsertionPointToStart(far);
  Value scaled = multiply(rewriter, loc, scores, scale);
  rewriter.replaceUsesWithIf(scores, scaled, [&](OpOperand &use) {
    return use.getOwner()->getBlock() == far &&
           use.getOwner() != scaled.getDefiningOp();
  });
  if (known.exponent.getA() != known.branch.getResult(0))
    return;
  Operation *yield = far->getTerminator();
  rewriter.setInsertionPoint(yield);
  Value unscaled =
      multiply(rewriter, loc, yield->getOperand(0), APFloat(1.0f) / scale);
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(0, unscaled); });
}

/// The scores lack `scale`.
static void foldWeights(RewriterBase &rewriter, ScoresOp op, KnownWeights known,
                        const APFloat &scale) {
  if (scale.isExactlyValue(1.0))
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  math::FmaOp exponent = known.exponent;
  rewriter.setInsertionPoint(exponent);
  Value factor = splat(rewriter, exponent.getLoc(), exponent.getType(),
                       llvm::numbers::log2e * scale.convertToDouble());
  rewriter.modifyOpInPlace(exponent,
                           [&] { exponent.getBMutable().set(factor); });
  if (known.branch)
    scaleFar(rewriter, known, op.getResult(), scale);
}

/// Moves the constant factors at the end of the score function into `scale`;
/// returns how many.
static int64_t foldScales(RewriterBase &rewriter, ScoresOp op, APFloat &scale) {
  int64_t numFactors = 0;
  while (succeeded(foldScale(rewriter, op, scale)))
    ++numFactors;
  return numFactors;
}

APFloat attn::tile::foldScores(RewriterBase &rewriter, ScoresOp op) {
  APFloat scale(1.0f);
  if (!op.hasScore())
    return scale;
  DecisionPaths exact = DecisionPaths::find(op.getScore());
  foldScales(rewriter, op, scale);
  simplify(rewriter, op, exact);
  return scale;
}

/// A softcap of scores of 16-bit numbers, c tanh(x) with a c that is not large:
/// what matters is the error of the score, and not that of tanh where it is
/// small itself. `scale` is what the scores are multiplied by later.
static void approximateCap(ScoresOp op, const APFloat &scale) {
  constexpr double maxCap = 64; // 64 * 2^-21 is 3e-5: lse wants 1e-4
  Type element = getElement(op);
  if (!op.hasScore() || !element || element.getIntOrFloatBitWidth() > 16)
    return;
  Value score = getScore(op).get();
  double cap = std::fabs(scale.convertToDouble());
  while (auto product = score.getDefiningOp<arith::MulFOp>()) {
    std::optional<APFloat> factor = constantValue(product.getRhs());
    if (!factor)
      return;
    cap *= std::fabs(factor->convertToDouble());
    score = product.getLhs();
  }
  auto tanh = score.getDefiningOp<math::TanhOp>();
  if (tanh && tanh->hasOneUse() && cap <= maxCap)
    tanh.setFastmath(tanh.getFastmath() | arith::FastMathFlags::afn);
}

namespace {
struct TileFoldExp2 final
    : attn::SchedulePass<attn::tile::impl::TileFoldExp2Base<TileFoldExp2>,
                         ScoresOp, TileForm::Reversed> {
  using Base::Base;

  void transform(RewriterBase &rewriter, ScoresOp op) override {
    OnlineSoftmaxOp softmax = findSoftmax(op);
    std::optional<KnownWeights> known = matchKnownWeights(op);
    if (!softmax && !known)
      return missed("neither a softmax nor exp2(fma(scores, log2(e), offset)) "
                    "takes the scores");
    if (softmax && softmax.getExact())
      return missed("the softmax is exact");
    // A pullback computes what the score function does, too.
    bool isFree = softmax || !isTakenElsewhere(op, *known);
    int64_t numFactors = 0;
    APFloat scale = softmax ? softmax.getScale() : APFloat(1.0f);
    DecisionPaths exact = DecisionPaths::find(op.getScore());
    if (op.hasScore() && isFree) {
      if (softmax)
        fuseBias(rewriter, op);
      numFactors = foldScales(rewriter, op, scale);
    }
    if (softmax) {
      bool bounded = isBounded(op, scale);
      rewriter.modifyOpInPlace(softmax, [&] {
        softmax.setScale(scale);
        softmax.setExp2(true);
        softmax.setBounded(bounded);
      });
    } else {
      foldWeights(rewriter, op, *known, scale);
    }
    passed() << remark::metric("factors", numFactors);
    if (op.hasScore() && isFree)
      simplify(rewriter, op, exact);
    if (!isPrecise(op))
      approximateCap(op, scale);
  }
};
} // namespace
