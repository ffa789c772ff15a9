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

/// Whether the scores are known to be at most `limit`; says so in a remark.
static bool isBounded(ScoresOp op, const APFloat &scale, float limit) {
  std::optional<double> bound;
  if (op.hasScore())
    bound =
        boundMagnitude(op.getScore().front().getTerminator()->getOperand(0));
  if (bound)
    *bound *= scale.convertToDouble();
  auto options =
      remark::RemarkOpts::name("score-bound").category("tile-fold-exp2");
  if (bound && *bound <= limit) {
    remark::passed(op.getLoc(), options)
        << remark::metric("bound", *bound) << "one fma per score";
    return true;
  }
  remark::missed(op.getLoc(), options)
      << ("scores are not known to be at most " + Twine(int64_t(limit)) +
          ": where a row's maximum is larger, it is subtracted first")
             .str();
  return false;
}

//===----------------------------------------------------------------------===//
// Weights of gradients
//===----------------------------------------------------------------------===//

namespace {
/// exp(scores - lse), as gradients compute weights once more, or
/// exp(min(scores - lse - rest, 0)), where only an lse of more than the limit
/// has a rest.
struct KnownWeights {
  math::ExpOp weights;
  Value lse; // a number for each row or column of the scores
  Value rest = {};
  float limit = maxFoldedScore;
};
} // namespace

/// A number for each row or column of a tile that is subtracted from `value`.
static Value getSubtrahend(arith::SubFOp op, Value value) {
  auto stretched = op ? op.getRhs().getDefiningOp<vector::BroadcastOp>()
                      : vector::BroadcastOp();
  bool isLine = stretched && isa<VectorType>(stretched.getSourceType());
  return isLine && op.getLhs() == value ? stretched.getSource() : Value();
}

/// The type of what is multiplied; null where that is not known.
static Type getElement(ScoresOp op) {
  auto product = op.getScores().getDefiningOp<vector::ContractionOp>();
  return product ? product.getLhsType().getElementType() : Type();
}

/// Of lse, by what is multiplied.
static float getLimit(ScoresOp op) {
  Type element = getElement(op);
  return element ? getMaxFoldedLse(element) : maxFoldedScore;
}

static std::optional<KnownWeights> matchKnownWeights(ScoresOp op) {
  for (Operation *user : op->getUsers()) {
    auto excess = dyn_cast<arith::SubFOp>(user);
    Value lse = getSubtrahend(excess, op.getResult());
    if (!lse || !excess->hasOneUse())
      continue;
    Operation *next = *excess->user_begin();
    if (auto weights = dyn_cast<math::ExpOp>(next))
      return KnownWeights{weights, lse, Value(), getLimit(op)};
    Value rest = getSubtrahend(dyn_cast<arith::SubFOp>(next), excess);
    if (!rest || !next->hasOneUse())
      continue;
    auto limited = dyn_cast<arith::MinimumFOp>(*next->user_begin());
    if (limited && limited->hasOneUse() &&
        matchPattern(limited.getRhs(), m_AnyZeroFloat()))
      if (auto weights = dyn_cast<math::ExpOp>(*limited->user_begin()))
        return KnownWeights{weights, lse, rest, getLimit(op)};
  }
  return std::nullopt;
}

static Value splat(OpBuilder &b, Location loc, Type type, double value) {
  APFloat number(static_cast<float>(value));
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(cast<VectorType>(type), number));
}

namespace {
/// exp(scale * scores - lse) = exp2(fma(scores, scale * log2(e), offset)). The
/// rounding of a large lse * log2(e) is a large number itself: there the scores
/// are (scale * scores - lse) / scale, the offset is 0, or each arm takes its
/// own powers. The rest of lse, which others lack, is read there.
class LseFold {
public:
  LseFold(ScoresOp op, KnownWeights match, double scale)
      : loc(match.weights.getLoc()), scores(op.getResult()), match(match),
        scale(scale) {}

  /// The weights. `bounded`: no row is far.
  Value run(RewriterBase &rewriter, bool bounded, bool ownPowers);

private:
  Value multiply(OpBuilder &b, Value value, double factor);
  Value broadcast(OpBuilder &b, Value line);
  /// At most `most`, where lse is two numbers.
  Value limit(OpBuilder &b, Value value, double most);
  Value getOffset(OpBuilder &b) {
    return multiply(b, match.lse, -llvm::numbers::log2e);
  }
  /// exp2(fma(scores, scale * log2(e), offset))
  Value raise(OpBuilder &b, Value scores, Value offset);
  /// scale * scores - lse, of a far row
  Value subtract(OpBuilder &b);

  Location loc;
  Value scores;
  KnownWeights match;
  double scale;
};
} // namespace

Value LseFold::multiply(OpBuilder &b, Value value, double factor) {
  if (factor == 1.0)
    return value;
  return arith::MulFOp::create(b, loc, value,
                               splat(b, loc, value.getType(), factor));
}

Value LseFold::broadcast(OpBuilder &b, Value line) {
  return vector::BroadcastOp::create(b, loc, scores.getType(), line);
}

Value LseFold::limit(OpBuilder &b, Value value, double most) {
  if (!match.rest)
    return value;
  return arith::MinimumFOp::create(b, loc, value,
                                   splat(b, loc, value.getType(), most));
}

Value LseFold::raise(OpBuilder &b, Value scores, Value offset) {
  Value row = broadcast(b, offset);
  Value factor = splat(b, loc, scores.getType(), scale * llvm::numbers::log2e);
  Value exponent = math::FmaOp::create(b, loc, scores, factor, row);
  return math::Exp2Op::create(b, loc, exponent);
}

Value LseFold::subtract(OpBuilder &b) {
  Value excess = arith::SubFOp::create(b, loc, multiply(b, scores, scale),
                                       broadcast(b, match.lse));
  Value rest = match.rest;
  if (!rest)
    return excess;
  if (auto read = rest.getDefiningOp<GatherOp>())
    rest = b.clone(*read)->getResult(0);
  return arith::SubFOp::create(b, loc, excess, broadcast(b, rest));
}

Value LseFold::run(RewriterBase &rewriter, bool bounded, bool ownPowers) {
  // What is the same in each turn of a loop is computed before it.
  OpBuilder outer(rewriter);
  Value lse = match.lse;
  if (lse.getParentBlock() != scores.getParentBlock())
    outer.setInsertionPointAfterValue(lse);
  if (bounded)
    return raise(rewriter, scores, getOffset(outer));
  auto far = [&](OpBuilder &b, Location loc) {
    Value excess = subtract(b);
    if (ownPowers) {
      Value exponent = multiply(b, excess, llvm::numbers::log2e);
      Value power = math::Exp2Op::create(b, loc, exponent);
      scf::YieldOp::create(b, loc, limit(b, power, 1.0)); // exp(min(x, 0))
      return;
    }
    Value moved = multiply(b, limit(b, excess, 0.0), 1.0 / scale);
    Value nothing = splat(b, loc, lse.getType(), 0.0);
    scf::YieldOp::create(b, loc, ValueRange{moved, nothing});
  };
  auto near = [&](OpBuilder &b, Location loc) {
    Value offset = getOffset(b);
    if (ownPowers)
      scf::YieldOp::create(b, loc, raise(b, scores, offset));
    else
      scf::YieldOp::create(b, loc, ValueRange{scores, offset});
  };
  // Far is what is compared with 512.
  Value measured = multiply(outer, lse, maxFoldedScore / match.limit);
  auto branch = scf::IfOp::create(rewriter, loc, isAnyFar(outer, loc, measured),
                                  far, near);
  if (ownPowers)
    return branch.getResult(0);
  return raise(rewriter, branch.getResult(0), branch.getResult(1));
}

/// Erases what led to `value`, up to `end`.
static void eraseUnused(RewriterBase &rewriter, Value value, Operation *end) {
  Operation *op = value.getDefiningOp();
  if (!op || op == end || !isOpTriviallyDead(op))
    return;
  SmallVector<Value> operands(op->getOperands());
  rewriter.eraseOp(op);
  for (Value operand : operands)
    eraseUnused(rewriter, operand, end);
}

static void foldWeights(RewriterBase &rewriter, ScoresOp op, KnownWeights match,
                        double scale, bool bounded, bool ownPowers) {
  rewriter.setInsertionPoint(match.weights);
  Value weights = LseFold(op, match, scale).run(rewriter, bounded, ownPowers);
  Value unfolded = match.weights.getOperand();
  rewriter.replaceOp(match.weights, weights);
  eraseUnused(rewriter, unfolded, op);
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
      return missed("neither a softmax nor exp(scores - lse) takes the scores");
    if (softmax && softmax.getExact())
      return missed("the softmax is exact");
    // A pullback computes what the score function does, too.
    bool isFree = softmax || op->hasOneUse();
    int64_t numFactors = 0;
    APFloat scale = softmax ? softmax.getScale() : APFloat(1.0f);
    DecisionPaths exact = DecisionPaths::find(op.getScore());
    if (op.hasScore() && isFree) {
      if (softmax)
        fuseBias(rewriter, op);
      numFactors = foldScales(rewriter, op, scale);
    }
    bool bounded = isBounded(op, scale, known ? known->limit : maxFoldedScore);
    if (softmax)
      rewriter.modifyOpInPlace(softmax, [&] {
        softmax.setScale(scale);
        softmax.setExp2(true);
        softmax.setBounded(bounded);
      });
    else
      foldWeights(rewriter, op, *known, scale.convertToDouble(), bounded,
                  ownPowers);
    passed() << remark::metric("factors", numFactors);
    if (op.hasScore() && isFree)
      simplify(rewriter, op, exact);
    if (!isPrecise(op))
      approximateCap(op, scale);
  }
};
} // namespace
