//===- MatchSoftmax.cpp - the weights of the values -*- C++ -*-===//
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

static constexpr double kLn2 = 0.693147180559945309417;

static bool isExponential(ExprRef expr) {
  return expr->is<math::ExpOp>() || expr->is<math::Exp2Op>();
}

/// An exponential of what comes out of a contraction, and a reduction that is
/// none: a graph that may be a softmax between two products.
static bool looksLikeWeights(ExprRef expr) {
  bool hasExponential = false, hasReduction = false;
  Expressions::walk(expr, [&](ExprRef node) {
    if (isContraction(node))
      return false;
    hasExponential |=
        isExponential(node) && Expressions::contains(node, isContraction);
    hasReduction |= node->kind == Kind::Reduction;
    return true;
  });
  return hasExponential && hasReduction;
}

/// Whether `condition` says that `value` is no number.
static bool isNaN(ExprRef condition, ExprRef value) {
  if (!condition->is<arith::CmpFOp>())
    return false;
  auto predicate = static_cast<arith::CmpFPredicate>(condition->predicate);
  return (predicate == arith::CmpFPredicate::UNO ||
          predicate == arith::CmpFPredicate::UNE) &&
         condition->operands[0] == value && condition->operands[1] == value;
}

/// select(c, 0, x): c is noted, to be judged later; x.
ExprRef Matcher::withoutGuards(ExprRef expr) {
  while (expr->is<arith::SelectOp>()) {
    if (expr->operands[1]->isReal(0) &&
        isNaN(expr->operands[0], expr->operands[2])) {
      expr = expr->operands[2]; // of a row that sees no key
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

/// A comparison of the magnitude of `value` with infinity.
static bool isInfinite(ExprRef expr, ExprRef value) {
  return llvm::any_of(expr->operands, [&](ExprRef side) {
    return side->is<math::AbsFOp>() && side->operands[0] == value &&
           isEquality(expr, side, HUGE_VAL);
  });
}

/// A sum or maximum under a guard for rows that see nothing:
/// select(r == -inf or 0, constant, r), also for |r| == inf, and
/// max(r, constant).
static ExprRef guarded(ExprRef expr) {
  while (true) {
    if (expr->is<arith::SelectOp>()) {
      ExprRef condition = expr->operands[0];
      ExprRef constant = expr->operands[1], rest = expr->operands[2];
      bool isGuard =
          constant->isConstant() &&
          (isEquality(condition, rest, -HUGE_VAL) ||
           isEquality(condition, rest, 0) || isInfinite(condition, rest));
      if (!isGuard)
        return expr;
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

/// What an exponential to any base is one of, to the base e.
static LinearSum exponentOf(ExprRef exponential,
                            LinearSum (*formOf)(ExprRef) = linearForm) {
  LinearSum form = formOf(exponential->operands[0]);
  form.scale(exponential->is<math::Exp2Op>() ? kLn2 : 1);
  return form;
}

/// sum + exp(x): leaves the sum and returns x.
static std::optional<LinearSum> takeSink(ExprRef &sum) {
  if (!sum->is<arith::AddFOp>())
    return std::nullopt;
  for (unsigned side : {0u, 1u}) {
    ExprRef sink = sum->operands[side], rest = sum->operands[1 - side];
    if (isExponential(sink) && rest->isReduction(Combiner::Add)) {
      sum = rest;
      return exponentOf(sink);
    }
  }
  return std::nullopt;
}

/// max(m, x) of a maximum m: leaves m and returns x; null if it is none.
static ExprRef takeSinkOfMaximum(ExprRef &reference) {
  if (!reference->is<arith::MaximumFOp>() && !reference->is<arith::MaxNumFOp>())
    return nullptr;
  for (unsigned side : {0u, 1u})
    if (reference->operands[side]->isReduction(Combiner::Max)) {
      ExprRef sink = reference->operands[1 - side];
      reference = reference->operands[side];
      return sink;
    }
  return nullptr;
}

static std::string overAnother(ExprRef reduction, ExprRef key) {
  if (reduction->bound().size() != 1)
    return "runs over " + std::to_string(reduction->bound().size()) +
           " dimensions, wanted the keys only";
  if (reduction->bound()[0]->extents != key->extents)
    return "runs over another dimension than that of the keys";
  return "";
}

/// Takes the maximum over the keys out of the argument of an exponential.
static std::pair<ExprRef, double> takeReference(LinearSum &form, ExprRef key) {
  for (auto it = form.terms.begin(); it != form.terms.end(); ++it) {
    auto [term, coefficient] = it->second;
    if (!guarded(term)->isReduction(Combiner::Max) ||
        Expressions::dependsOn(term, key))
      continue;
    form.terms.erase(it);
    return {term, coefficient};
  }
  return {nullptr, 0};
}

/// 1 + exp(s - lse), by which sigmoid(lse - s) divides, where lse is that of
/// the weights, exp(`weight`): s with the reference of the weights, as an
/// exponential beside their sum has it.
std::optional<LinearSum> Matcher::takeGate(ExprRef divisor, ExprRef key,
                                           LinearSum weight) {
  if (!divisor->is<arith::AddFOp>())
    return std::nullopt;
  ExprRef one = divisor->operands[0], exponential = divisor->operands[1];
  if (!one->isReal(1))
    std::swap(one, exponential);
  if (!one->isReal(1) || !isExponential(exponential))
    return std::nullopt;
  LinearSum gate = exponentOf(exponential);
  auto log = llvm::find_if(gate.terms, [](const auto &entry) {
    return entry.second.first->template is<math::LogOp>() &&
           std::fabs(entry.second.second + 1) < 1e-6;
  });
  if (log == gate.terms.end())
    return std::nullopt;
  ExprRef sum = guarded(reader.expand(log->second.first->operands[0]));
  gate.terms.erase(log);
  if (!sum->isReduction(Combiner::Add) || isContraction(sum) ||
      !overAnother(sum, key).empty())
    return std::nullopt;
  ExprRef summand = e.instantiate(sum, {key});
  if (!isExponential(summand))
    return std::nullopt;
  // lse = log(sum of exp(x - m)) + m, whatever m is.
  LinearSum scores = exponentOf(summand);
  auto [reference, coefficient] = takeReference(scores, key);
  if (reference) {
    auto own = gate.terms.find(reference->id);
    if (own == gate.terms.end() ||
        std::fabs(own->second.second - coefficient) > 1e-6)
      return std::nullopt;
    gate.terms.erase(own);
  }
  auto [subtracted, factor] = takeReference(weight, key);
  if (!scores.matches(weight))
    return std::nullopt;
  if (subtracted)
    gate.terms[subtracted->id] = {subtracted, factor};
  return gate;
}

std::optional<SoftmaxMatch> Matcher::matchSoftmax(ExprRef output) {
  guards.clear();
  FactorList outer = product(withoutGuards(output));
  if (outer.factors.size() != 1 || !isContraction(outer.factors[0]))
    return fail("");
  ExprRef sumOfValues = outer.factors[0];
  SoftmaxMatch result{};
  SmallVector<ExprRef> variables;
  for (ExprRef bound : sumOfValues->bound())
    variables.push_back(e.variable(bound->extents[0]));
  FactorList inner = product(e.instantiate(sumOfValues, variables));

  // The factor that is no weight is the value.
  SmallVector<ExprRef> weights;
  for (ExprRef factor : inner.factors) {
    ExprRef expanded = reader.expand(factor);
    bool isWeight = factor->kind != Kind::Element || looksLikeWeights(expanded);
    for (ExprRef divisor : outer.divisors)
      isWeight |= Expressions::contains(expanded, isExponential) &&
                  looksLikeWeights(divisor);
    if (isWeight)
      weights.push_back(expanded);
    else if (result.value)
      return fail(""); // a product of other things
    else
      result.value = factor;
  }
  bool isCandidate = llvm::any_of(weights, looksLikeWeights) ||
                     llvm::any_of(outer.divisors, looksLikeWeights);
  if (weights.empty() || !isCandidate)
    return fail("");
  if (!result.value)
    return fail("the weights are not multiplied with a tensor of values");
  if (variables.size() != 1)
    return fail("the product with the values sums over " +
                Twine(variables.size()) + " dimensions, wanted 1");
  result.key = variables[0];

  double constant = outer.constant * inner.constant;
  SmallVector<ExprRef> divisors(outer.divisors);
  llvm::append_range(divisors, inner.divisors);
  for (ExprRef expanded : weights) {
    FactorList parts = product(withoutGuards(expanded));
    constant *= parts.constant;
    for (ExprRef factor : parts.factors) {
      if (factor->is<arith::SelectOp>() && factor->operands[1]->isReal(1) &&
          factor->operands[2]->isReal(0)) { // a mask, as a number
        guards.push_back(e.negated(factor->operands[0]));
        continue;
      }
      // The product again, of what stood under a guard.
      if (!isExponential(factor) || result.weight)
        return fail("the weights are multiplied with " + describe(factor) +
                    " after the exponential");
      result.weight = factor;
    }
    llvm::append_range(divisors, parts.divisors);
  }
  if (!result.weight)
    return fail("the weights are no exponential");
  if (std::fabs(constant - 1) > 1e-6)
    return fail("the weights are multiplied with " + text(constant) +
                " after the softmax");

  // exp(x - log(sum)) divides, too.
  LinearSum form = exponentOf(result.weight);
  for (auto it = form.terms.begin(); it != form.terms.end();) {
    auto [term, coefficient] = it->second;
    bool isLog = term->is<math::LogOp>() &&
                 (term->operands[0]->kind == Kind::Reduction ||
                  term->operands[0]->is<arith::AddFOp>()) &&
                 std::fabs(coefficient + 1) < 1e-6;
    if (isLog)
      divisors.push_back(term->operands[0]);
    it = isLog ? form.terms.erase(it) : std::next(it);
  }
  std::optional<LinearSum> gate;
  ExprRef gateDivisor = nullptr;
  for (size_t i = 0; divisors.size() == 2 && i < 2; ++i) {
    gateDivisor = reader.expand(divisors[i]);
    if ((gate = takeGate(gateDivisor, result.key, form)))
      divisors.erase(divisors.begin() + i);
  }
  if (divisors.empty())
    return fail("the weights are not divided by their sum");
  if (divisors.size() > 1)
    return fail("the weights are divided by " + Twine(divisors.size()) +
                " things, wanted their sum");
  result.sum = guarded(reader.expand(divisors[0]));
  ExprRef sum = result.sum;
  std::optional<LinearSum> sink = takeSink(sum);
  if (sink && gate)
    return fail("a sink joins the sum, and the result is multiplied with a "
                "sigmoid");
  if (gate) { // the lse of the graph is not that of the attention
    sink = std::move(gate);
    result.sum = e.mul(sum, gateDivisor);
  }
  if (!sum->isReduction(Combiner::Add) || isContraction(sum))
    return fail("the weights are divided by " + describe(sum) +
                ", wanted the sum of the exponentials");
  std::string other = overAnother(sum, result.key);
  if (!other.empty())
    return fail("the sum of the exponentials " + other);
  ExprRef summand = e.instantiate(sum, {result.key});
  if (!isExponential(summand))
    return fail("the weights are divided by a sum of " + describe(summand) +
                ", wanted the exponentials themselves");
  LinearSum summandForm = exponentOf(summand);
  if (!summandForm.matches(form))
    return fail("the exponentials that are summed differ from those that "
                "weigh the values");
  if (!matchReference(result, std::move(form), std::move(sink)) ||
      !checkGuards(result))
    return std::nullopt;
  return result;
}

/// Whether `maximum` is that of `scores` and of `others`, which are the same
/// for all keys.
bool Matcher::isMaximumOf(ExprRef maximum, const SoftmaxMatch &softmax,
                          const LinearSum &scores, LinearSum &others) {
  std::string other = overAnother(maximum, softmax.key);
  if (!other.empty()) {
    fail("the maximum " + other);
    return false;
  }
  ExprRef init = maximum->init();
  if (!init->isConstant() || init->real > -65504) {
    fail("the maximum starts from " + describe(init) + ", wanted -inf");
    return false;
  }
  LinearSum form = linearForm(e.instantiate(maximum, {softmax.key}));
  if (form.matches(scores))
    return true;
  for (auto &[id, term] : LinearSum(form).terms)
    if (isMaximum(term.first) &&
        !Expressions::dependsOn(term.first, softmax.key)) {
      others.add(term);
      form.terms.erase(id);
    }
  if (form.matches(scores))
    return true;
  fail("the reference that is subtracted is the maximum of something else "
       "than the scores");
  return false;
}

/// Takes the maximum out of the argument of the exponential; what is left are
/// the scores.
bool Matcher::matchReference(SoftmaxMatch &softmax, LinearSum arguments,
                             std::optional<LinearSum> sink) {
  // Reductions that are the same for all keys of a row, the outermost first.
  SmallVector<std::pair<ExprRef, double>> references;
  LinearSum scores = arguments;
  for (auto &[id, term] : arguments.terms) {
    ExprRef reference = guarded(term.first);
    takeSinkOfMaximum(reference);
    if (reference->kind != Kind::Reduction || isContraction(reference) ||
        Expressions::dependsOn(reference, softmax.key))
      continue;
    references.insert(references.begin(), term);
    scores.terms.erase(id);
  }
  double coefficient = 0;
  ExprRef inMaximum = nullptr;
  LinearSum rest; // what is subtracted beside their maximum, and added in it
  for (auto &[term, factor] : references) {
    ExprRef reference = guarded(term);
    ExprRef joined = takeSinkOfMaximum(reference);
    rest.add({term, factor});
    if (softmax.maximum || !reference->isReduction(Combiner::Max))
      continue;
    if (factor >= 0) {
      fail("the maximum is added to the scores, wanted it subtracted");
      return false;
    }
    LinearSum unscaled = scores, others;
    unscaled.scale(-1 / factor);
    if (!isMaximumOf(reference, softmax, unscaled, others))
      return false;
    rest.add({term, -factor});
    others.scale(factor);
    for (auto &[id, other] : others.terms)
      rest.add(other);
    softmax.maximum = term;
    inMaximum = joined;
    coefficient = factor;
  }
  for (auto &[id, term] : rest.terms)
    if (std::fabs(term.second) > 1e-6 * std::fabs(coefficient)) {
      fail("what is subtracted from the scores is " +
           describe(guarded(term.first)) + ", wanted their maximum");
      return false;
    }
  if (inMaximum && !sink) {
    fail("the maximum is not that of the scores alone");
    return false;
  }
  // What the scores are less of in the exponential and in the maximum is
  // nothing to all of them, and something to a logit beside them.
  if (sink && references.size() > (softmax.maximum ? 1 : 0)) {
    fail("another reduction is subtracted from the scores beside a logit");
    return false;
  }
  if (sink && !matchSink(softmax, std::move(*sink), softmax.maximum,
                         coefficient, inMaximum))
    return false;
  if (softmax.maximum && !inMaximum)
    softmax.maximum = guarded(softmax.maximum);
  // The scores: a sum of terms with one factor each, without what was taken out
  // of the exponent.
  LinearSum all = exponentOf(softmax.weight);
  LinearSum written = exponentOf(softmax.weight, linearFormOfReductions);
  for (auto &[id, term] : all.terms)
    if (!scores.terms.count(id))
      written.terms.erase(id);
  ExprRef sum = nullptr;
  for (auto &[id, term] : written.terms) {
    double factor = std::fabs(term.second - 1) < 1e-6 ? 1 : term.second;
    ExprRef scaled = e.mul(term.first, e.real(factor));
    sum = sum ? e.add(sum, scaled) : scaled;
  }
  if (!sum) {
    fail("the exponential is that of a constant");
    return false;
  }
  softmax.scores =
      written.constant == 0 ? sum : e.add(sum, e.real(written.constant));
  return true;
}

/// The exponential beside the sum is that of one logit with the same reference,
/// and the reference is at least that logit or does not know it.
bool Matcher::matchSink(SoftmaxMatch &softmax, LinearSum sink,
                        ExprRef reference, double coefficient,
                        ExprRef inMaximum) {
  if (reference) {
    auto found = sink.terms.find(reference->id);
    if (found == sink.terms.end() ||
        std::fabs(found->second.second - coefficient) > 1e-6) {
      fail("the exponential beside the sum has another reference");
      return false;
    }
    sink.terms.erase(found);
  }
  if (inMaximum) {
    LinearSum joined = linearForm(inMaximum);
    joined.scale(-coefficient);
    if (!joined.matches(sink)) {
      fail("the maximum knows another logit than the sum");
      return false;
    }
  }
  bool isOne = sink.terms.size() == 1 && sink.constant == 0 &&
               std::fabs(sink.terms.begin()->second.second - 1) < 1e-6;
  if (!isOne) {
    fail("the exponential beside the sum is not that of a logit");
    return false;
  }
  softmax.sink = sink.terms.begin()->second.first;
  return true;
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
    auto isIn = [](const Conditions &some, const Conditions &others) {
      return llvm::all_of(some,
                          [&](ExprRef each) { return others.contains(each); });
    };
    surely.insert(guarded.begin(), guarded.end());
    if (!isIn(guarded, all) || !isIn(all, surely))
      return false;
  }
  softmax.scores = e.make<arith::SelectOp>(
      e.f32, {masked.mask, masked.score, e.real(-HUGE_VAL)});
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
