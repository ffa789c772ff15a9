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

bool attn::raise::isExponential(ExprRef expr) {
  return expr->is<math::ExpOp>() || expr->is<math::Exp2Op>();
}

/// An exponential of what comes out of a contraction, and another reduction: a
/// graph that may be a softmax between two products.
static bool looksLikeWeights(ExprRef expr) {
  bool hasExponential = false, hasReduction = false;
  Expressions::walk(expr, [&](ExprRef node) {
    hasReduction |= node->kind == Kind::Reduction;
    if (isContraction(node))
      return false;
    if (!isExponential(node))
      return true;
    hasExponential |= Expressions::contains(node, isContraction);
    hasReduction |= Expressions::contains(node, [](ExprRef inner) {
      return inner->kind == Kind::Reduction && !isContraction(inner);
    });
    return false;
  });
  return hasExponential && hasReduction;
}

/// What an exponential to any base is one of, to the base e.
static LinearSum exponentOf(ExprRef exponential,
                            LinearSum (*formOf)(ExprRef) = linearForm) {
  LinearSum form = formOf(exponential->operands[0]);
  form.scale(exponential->is<math::Exp2Op>() ? kLn2 : 1);
  return form;
}

/// sum + exp(x): leaves the sum and returns x, the logarithm of a number.
static std::optional<LinearSum> takeSink(ExprRef &sum) {
  if (!sum->is<arith::AddFOp>())
    return std::nullopt;
  for (unsigned side : {0u, 1u}) {
    ExprRef sink = sum->operands[side], rest = sum->operands[1 - side];
    if (!rest->isReduction(Combiner::Add))
      continue;
    LinearSum logit;
    if (sink->isConstant() && sink->real > 0)
      logit.constant = std::log(sink->real);
    else if (isExponential(sink))
      logit = exponentOf(sink);
    else
      continue;
    sum = rest;
    return logit;
  }
  return std::nullopt;
}

/// max(x, constant).
static bool isMaxOfNumber(ExprRef expr) {
  return (expr->is<arith::MaximumFOp>() || expr->is<arith::MaxNumFOp>()) &&
         expr->operands[1]->isConstant();
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
  unsummed.clear();
  isSumAtLeastOne = false;
  FactorList outer = product(withoutGuards(output, Guarded::Result));
  if (outer.factors.size() != 1 || !isContraction(outer.factors[0]))
    return fail("");
  ExprRef sumOfValues = outer.factors[0];
  SoftmaxMatch result{};
  SmallVector<ExprRef> variables;
  for (ExprRef bound : sumOfValues->bound())
    variables.push_back(e.variable(bound->extents[0]));
  FactorList inner = product(e.instantiate(sumOfValues, variables));

  // A sum of weights times a mask is a sum of products.
  auto looksLikeSum = [&](ExprRef divisor) {
    if (!isContraction(divisor) || divisor->bound().size() != 1)
      return looksLikeWeights(divisor);
    ExprRef variable = e.variable(divisor->bound()[0]->extents[0]);
    ExprRef body = reader.expand(e.instantiate(divisor, {variable}));
    return Expressions::contains(body, [](ExprRef node) {
      return isExponential(node) && Expressions::contains(node, isContraction);
    });
  };
  // The factor that is no weight is the value.
  SmallVector<ExprRef> weights;
  for (ExprRef factor : inner.factors) {
    ExprRef expanded = reader.expand(factor);
    bool isWeight = factor->kind != Kind::Element || looksLikeWeights(expanded);
    for (ExprRef divisor : outer.divisors)
      isWeight |= Expressions::contains(expanded, isExponential) &&
                  looksLikeSum(divisor);
    if (isWeight)
      weights.push_back(expanded);
    else if (result.value)
      return fail(""); // a product of other things
    else
      result.value = factor;
  }
  bool isCandidate = llvm::any_of(weights, looksLikeWeights) ||
                     llvm::any_of(outer.divisors, looksLikeSum);
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
    FactorList parts = product(withoutGuards(expanded, Guarded::Weight));
    constant *= parts.constant;
    llvm::append_range(divisors, parts.divisors);
    while (!parts.factors.empty()) {
      ExprRef factor = parts.factors.pop_back_val();
      ExprRef bare = withoutGuards(factor, Guarded::Factor);
      if (bare != factor) { // a mask, as a number, or what it leaves
        FactorList inner = product(bare);
        constant *= inner.constant;
        llvm::append_range(parts.factors, inner.factors);
        llvm::append_range(divisors, inner.divisors);
        continue;
      }
      if (!isExponential(factor) || result.weight)
        return fail("the weights are multiplied with " + describe(factor) +
                    " after the exponential");
      result.weight = factor;
    }
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
  // max(sum, c) is the sum, where that is 1 at least.
  bool hasFloor =
      isMaxOfNumber(result.sum) && result.sum->operands[1]->real <= 1;
  if (hasFloor)
    result.sum = guarded(result.sum->operands[0]);
  ExprRef sum = result.sum;
  std::optional<LinearSum> sink = takeSink(sum);
  if (sink && gate)
    return fail("a sink joins the sum, and the result is multiplied with a "
                "sigmoid");
  if (gate) { // the lse of the graph is not that of the attention
    sink = std::move(gate);
    result.sum = e.mul(sum, gateDivisor);
  }
  if (!sum->isReduction(Combiner::Add))
    return fail("the weights are divided by " + describe(sum) +
                ", wanted the sum of the exponentials");
  std::string other = overAnother(sum, result.key);
  if (!other.empty())
    return fail("the sum of the exponentials " + other);
  ExprRef summand = e.instantiate(sum, {result.key});
  std::swap(guards, unsummed);
  ExprRef summed = takeExponential(summand);
  std::swap(guards, unsummed);
  if (!summed)
    return fail("the weights are divided by a sum of " + describe(summand) +
                ", wanted the exponentials themselves");
  LinearSum summandForm = exponentOf(summed);
  if (!summandForm.matches(form))
    return fail("the exponentials that are summed differ from those that "
                "weigh the values");
  if (!matchReference(result, std::move(form), std::move(sink)) ||
      !hideUnsummed(result) || !checkGuards(result))
    return std::nullopt;
  if (hasFloor && !(result.maximum && isSumAtLeastOne))
    return fail("the weights are divided by a maximum of their sum and a "
                "number that may be larger");
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
  ExprRef body = e.instantiate(maximum, {softmax.key});
  if (isMaximumOfSummed(body, scores))
    return true;
  LinearSum form = linearForm(body);
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
  // A number beside a sum that is 1 at least, which f32 does not see there.
  bool isUnseen = sink && sink->terms.empty() && softmax.maximum &&
                  isSumAtLeastOne && sink->constant <= -24 * kLn2;
  if (isUnseen && !inMaximum)
    sink.reset();
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
  if (sink.terms.empty() && std::isfinite(static_cast<float>(sink.constant))) {
    softmax.sink = e.real(static_cast<float>(sink.constant));
    return true;
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
