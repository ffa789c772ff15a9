//===- MatchGuards.cpp - what stands in for rows without a key -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Match.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

/// Whether `condition` says that `value` is no number.
static bool isNaN(ExprRef condition, ExprRef value) {
  if (!condition->is<arith::CmpFOp>())
    return false;
  auto predicate = static_cast<arith::CmpFPredicate>(condition->predicate);
  return (predicate == arith::CmpFPredicate::UNO ||
          predicate == arith::CmpFPredicate::UNE) &&
         condition->operands[0] == value && condition->operands[1] == value;
}

/// A comparison of `value` with a constant for equality.
static bool isEquality(ExprRef expr, ExprRef value, double constant) {
  if (!expr->is<arith::CmpFOp>())
    return false;
  auto predicate = static_cast<arith::CmpFPredicate>(expr->predicate);
  if (predicate != arith::CmpFPredicate::OEQ &&
      predicate != arith::CmpFPredicate::UEQ)
    return false;
  ExprRef a = expr->operands[0], b = expr->operands[1];
  return (a == value && b->isReal(constant)) ||
         (b == value && a->isReal(constant));
}

/// Whether `condition` says of `rest`, or of what that is made of in the same
/// way, that it is no number, and `constant` is 0, or that it is infinite,
/// which no weight is.
static bool isOfNoWeight(ExprRef condition, ExprRef constant, ExprRef rest,
                         bool isWeight) {
  while (constant->isConstant()) {
    if ((constant->isReal(0) && isNaN(condition, rest)) ||
        (isWeight && (isEquality(condition, rest, HUGE_VAL) ||
                      isEquality(condition, rest, -HUGE_VAL))))
      return true;
    if (!rest->is<arith::SelectOp>() || !rest->operands[1]->isConstant())
      return false;
    rest = rest->operands[2];
  }
  return false;
}

/// select(c, 0, x): c is noted, to be judged later; x. What takes the place of
/// NaN in results and weights, and of infinities in weights, is none: it is
/// that of a row that sees no key.
ExprRef Matcher::withoutGuards(ExprRef expr, Guarded what) {
  while (expr->is<arith::SelectOp>()) {
    ExprRef condition = expr->operands[0];
    if (what != Guarded::Factor &&
        isOfNoWeight(condition, expr->operands[1], expr->operands[2],
                     what == Guarded::Weight)) {
      expr = expr->operands[2];
    } else if (expr->operands[1]->isReal(0)) {
      guards.push_back(expr->operands[0]);
      expr = expr->operands[2];
    } else if (expr->operands[2]->isReal(0)) {
      guards.push_back(e.negated(expr->operands[0]));
      expr = expr->operands[1];
    } else {
      break;
    }
  }
  return expr;
}

/// A comparison of the magnitude of `value` with infinity.
static bool isInfinite(ExprRef expr, ExprRef value) {
  return llvm::any_of(expr->operands, [&](ExprRef side) {
    return side->is<math::AbsFOp>() && side->operands[0] == value &&
           isEquality(expr, side, HUGE_VAL);
  });
}

/// A comparison that says of the result of a reduction that it is one: r != 0
/// or -inf, r > -inf, of a sum r > 0, |r| != inf and |r| < inf.
static bool isProper(ExprRef expr, ExprRef value) {
  if (!expr->is<arith::CmpFOp>())
    return false;
  ExprRef left = expr->operands[0], right = expr->operands[1];
  auto predicate = static_cast<arith::CmpFPredicate>(expr->predicate);
  bool isOther = predicate == arith::CmpFPredicate::ONE ||
                 predicate == arith::CmpFPredicate::UNE;
  if (isOther && !right->isConstant())
    std::swap(left, right);
  if (left->is<math::AbsFOp>() && left->operands[0] == value)
    return right->isReal(HUGE_VAL) &&
           (isOther || predicate == arith::CmpFPredicate::OLT);
  bool isAbove = predicate == arith::CmpFPredicate::OGT;
  return left == value &&
         ((right->isReal(-HUGE_VAL) && (isOther || isAbove)) ||
          (right->isReal(0) &&
           (isOther || (isAbove && value->isReduction(Combiner::Add)))));
}

/// r of select(r == 0, c, 0) + r; null if it is none.
static ExprRef besideItsZero(ExprRef expr) {
  if (!expr->is<arith::AddFOp>())
    return nullptr;
  for (unsigned side : {0u, 1u}) {
    ExprRef rest = expr->operands[side], zero = expr->operands[1 - side];
    if (zero->is<arith::SelectOp>() && zero->operands[1]->isConstant() &&
        zero->operands[2]->isReal(0) && isEquality(zero->operands[0], rest, 0))
      return rest;
  }
  return nullptr;
}

/// A sum or maximum under a guard for rows that see nothing:
/// select(r == -inf or 0, constant, r), also for |r| == inf, the same with what
/// says the opposite, (r == 0) + r, and max(r, constant).
ExprRef attn::raise::guarded(ExprRef expr) {
  while (true) {
    if (expr->is<arith::SelectOp>()) {
      ExprRef condition = expr->operands[0];
      ExprRef constant = expr->operands[1], rest = expr->operands[2];
      bool isGuard =
          constant->isConstant() &&
          (isEquality(condition, rest, -HUGE_VAL) ||
           isEquality(condition, rest, 0) || isInfinite(condition, rest));
      if (!isGuard) {
        std::swap(constant, rest);
        isGuard = constant->isConstant() && isProper(condition, rest);
      }
      if (!isGuard)
        return expr;
      expr = rest;
    } else if (ExprRef rest = besideItsZero(expr)) {
      expr = rest;
    } else if ((expr->is<arith::MaximumFOp>() ||
                expr->is<arith::MaxNumFOp>()) &&
               expr->operands[1]->isConstant() &&
               expr->operands[1]->real <= -1e30) {
      expr = expr->operands[0];
    } else {
      return expr;
    }
  }
}

std::string attn::raise::overAnother(ExprRef reduction, ExprRef key) {
  if (reduction->bound().size() != 1)
    return "runs over " + std::to_string(reduction->bound().size()) +
           " dimensions, wanted the keys only";
  if (reduction->bound()[0]->extents != key->extents)
    return "runs over another dimension than that of the keys";
  return "";
}

using Conditions = llvm::SmallSetVector<ExprRef, 8>;

/// What has to hold where a mask does; of no mask nothing.
static Conditions conditionsOf(Expressions &e, ExprRef mask) {
  Conditions found;
  SmallVector<ExprRef> open;
  if (mask)
    open.push_back(mask);
  while (!open.empty()) {
    ExprRef node = open.pop_back_val();
    bool isNegation =
        node->is<arith::XOrIOp>() && node->operands[1]->isInteger(1);
    ExprRef inner = isNegation ? node->operands[0] : node;
    if (node->is<arith::AndIOp>())
      llvm::append_range(open, node->operands);
    else if (isNegation && inner->is<arith::OrIOp>())
      for (ExprRef operand : inner->operands)
        open.push_back(e.negated(operand));
    else
      found.insert(node);
  }
  return found;
}

static bool isIn(const Conditions &some, const Conditions &others) {
  return llvm::all_of(some,
                      [&](ExprRef each) { return others.contains(each); });
}

/// Whether `scores` are -inf where `part` is: it is added to them, or hides by
/// conditions that hide them, too.
static bool hidesLike(Expressions &e, ExprRef part, ExprRef scores) {
  MaskedScore inner = splitMask(e, part, Hides::Infinite);
  MaskedScore outer = splitMask(e, scores, Hides::Infinite);
  Conditions known = conditionsOf(e, outer.mask);
  LinearSum added = linearForm(inner.score), all = linearForm(outer.score);
  return llvm::all_of(conditionsOf(e, inner.mask),
                      [&](ExprRef node) { return known.contains(node); }) &&
         llvm::all_of(added.terms, [&](const auto &entry) {
           auto found = all.terms.find(entry.first);
           return found != all.terms.end() && found->second.second > 0 &&
                  entry.second.second > 0;
         });
}

/// Weights that are 0 where `condition` says so are those of a mask: of whole
/// rows, or of what hides the scores, too. Then rows that see no key are 0 as
/// well, whatever the scores were filled with.
bool Matcher::hideByGuard(SoftmaxMatch &softmax, ExprRef condition) {
  if (Expressions::contains(condition, isContraction))
    return false;
  ExprRef seen = e.negated(condition);
  MaskedScore masked{softmax.scores, seen};
  if (Expressions::dependsOn(condition, softmax.key)) {
    MaskedScore infinite = splitMask(e, softmax.scores, Hides::Infinite);
    masked = splitMask(e, softmax.scores, Hides::Far);
    Conditions all = conditionsOf(e, masked.mask);
    Conditions guarded = conditionsOf(e, seen);
    Conditions surely = conditionsOf(e, infinite.mask);
    surely.insert(guarded.begin(), guarded.end());
    if (!isIn(guarded, all) || !isIn(all, surely))
      return false;
  }
  softmax.scores = e.make<arith::SelectOp>(
      e.f32, {masked.mask, masked.score, e.real(-HUGE_VAL)});
  softmax.hidesMore = true;
  return true;
}

/// The exponential that `expr` is where its guards let it, which are noted;
/// null if there is none, or more.
ExprRef Matcher::takeExponential(ExprRef expr) {
  ExprRef exponential = nullptr;
  SmallVector<ExprRef> open = {expr};
  while (!open.empty()) {
    ExprRef part = reader.expand(open.pop_back_val());
    part = withoutGuards(part, Guarded::Factor);
    FactorList parts = product(part);
    if (parts.factors.size() == 1 && parts.factors[0] == part) {
      if (exponential || !isExponential(part))
        return nullptr;
      exponential = part;
      continue;
    }
    if (!parts.divisors.empty() || parts.constant != 1)
      return nullptr;
    llvm::append_range(open, parts.factors);
  }
  return exponential;
}

/// What has to hold where none of `guards` does.
static Conditions conditionsOf(Expressions &e, Reader &reader,
                               ArrayRef<ExprRef> guards) {
  Conditions all;
  for (ExprRef guard : guards) {
    Conditions some = conditionsOf(e, e.negated(reader.expand(guard)));
    all.insert(some.begin(), some.end());
  }
  return all;
}

/// Whether the maximum of `body` is that of `scores` where the sum takes them,
/// or of all of them.
bool Matcher::isMaximumOfSummed(ExprRef body, const LinearSum &scores) {
  Conditions summed = conditionsOf(e, reader, unsummed);
  MaskedScore masked = splitMask(e, body, Hides::Infinite);
  Conditions known = conditionsOf(e, masked.mask);
  MaskedScore far = splitMask(e, body, Hides::Far);
  isSumAtLeastOne = isIn(summed, conditionsOf(e, far.mask));
  return linearForm(body).matches(scores) ||
         (isIn(known, summed) && linearForm(masked.score).matches(scores));
}

/// What the sum leaves out weighs nothing: the scores hide it, or the weights
/// are 0 there, too. Then it is a mask.
bool Matcher::hideUnsummed(SoftmaxMatch &softmax) {
  Conditions summed = conditionsOf(e, reader, unsummed);
  MaskedScore masked = splitMask(e, softmax.scores, Hides::Infinite);
  Conditions known = conditionsOf(e, masked.mask);
  if (isIn(summed, known))
    return true;
  Conditions weighed = conditionsOf(e, reader, guards);
  known.insert(weighed.begin(), weighed.end());
  if (!isIn(summed, known)) {
    fail("the exponentials that are summed differ from those that weigh the "
         "values");
    return false;
  }
  ExprRef mask = nullptr;
  for (ExprRef condition : summed)
    mask = mask ? e.both(mask, condition) : condition;
  softmax.scores =
      e.make<arith::SelectOp>(e.f32, {mask, softmax.scores, e.real(-HUGE_VAL)});
  softmax.hidesMore = true;
  return true;
}

/// The conditions under which weights or results are 0 are those of rows that
/// see no key, or those of a mask.
bool Matcher::checkGuards(SoftmaxMatch &softmax) {
  for (ExprRef guard : guards) {
    ExprRef condition = reader.expand(guard);
    if (isEquality(condition, softmax.sum, 0) ||
        (softmax.maximum && isEquality(condition, softmax.maximum, -HUGE_VAL)))
      continue;
    // The largest of what is added to the scores of the row is -inf.
    bool isOfPart = condition->is<arith::CmpFOp>() &&
                    llvm::any_of(condition->operands, [&](ExprRef side) {
                      return side->isReduction(Combiner::Max) &&
                             side->init()->isReal(-HUGE_VAL) &&
                             isEquality(condition, side, -HUGE_VAL) &&
                             overAnother(side, softmax.key).empty() &&
                             hidesLike(e, e.instantiate(side, {softmax.key}),
                                       softmax.scores);
                    });
    if (isOfPart)
      continue;
    // All scores of the row are -inf.
    bool isNone =
        condition->is<arith::XOrIOp>() && condition->operands[1]->isInteger(1);
    ExprRef all = isNone ? condition->operands[0] : condition;
    if (all->isReduction(isNone ? Combiner::Or : Combiner::And) &&
        all->init()->isInteger(isNone ? 0 : 1) &&
        overAnother(all, softmax.key).empty()) {
      ExprRef each = e.instantiate(all, {softmax.key});
      auto predicate = static_cast<arith::CmpFPredicate>(each->predicate);
      if (isNone && each->is<arith::CmpFOp>() &&
          (predicate == arith::CmpFPredicate::ONE ||
           predicate == arith::CmpFPredicate::UNE))
        each = e.make<arith::CmpFOp>(
            e.i1, each->operands,
            static_cast<int64_t>(arith::CmpFPredicate::OEQ));
      ExprRef compared =
          each->kind == Kind::Operation ? each->operands[0] : nullptr;
      if (compared && isEquality(each, compared, -HUGE_VAL) &&
          linearForm(compared).matches(linearForm(softmax.scores)))
        continue;
    }
    if (hideByGuard(softmax, condition))
      continue;
    fail("the weights are 0 where " + describe(condition) +
         " says so, wanted rows without a visible key, or what "
         "hides the scores, too");
    return false;
  }
  return true;
}
