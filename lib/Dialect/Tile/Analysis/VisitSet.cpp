//===- VisitSet.cpp - which key blocks show anything, or everything -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/VisitSet.h"

#include "ConstraintSystem.h"

using namespace attn;
using namespace attn::tile;

/// Disjuncts of a formula beyond which nothing is said about it, and intervals
/// that wait for others to join them.
static constexpr size_t maxDisjuncts = 256, maxOpenIntervals = 12;

/// Constraints of a disjunct beyond which the others are left out: it is then
/// taken for larger than it is.
static constexpr size_t maxConjuncts = 64;

/// What the projection of one disjunct costs of `VisitProblem::effort`.
static constexpr int64_t projectionEffort = 20;

/// Values of a quotient that become disjuncts of their own, and disjuncts that
/// this makes at most.
static constexpr int64_t maxSplit = 8;
static constexpr size_t maxSplitTotal = 48;

//===----------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------===//

VisitProblem::VisitProblem(int64_t numRows, int64_t numColumns)
    : numRows(numRows), numColumns(numColumns), mask(Formula::constant(true)),
      isSymbolic(3, false) {}

unsigned VisitProblem::addSymbol() {
  isSymbolic.push_back(true);
  return isSymbolic.size() - 1;
}

unsigned VisitProblem::addUnknown() {
  isSymbolic.push_back(false);
  return isSymbolic.size() - 1;
}

bool VisitProblem::isSymbolicForm(const LinearForm &form) const {
  return llvm::all_of(form.terms,
                      [&](const auto &term) { return isSymbol(term.first); });
}

const VisitProblem::Quotient *
VisitProblem::findQuotient(unsigned variable) const {
  for (const Quotient &quotient : quotients)
    if (quotient.variable == variable)
      return &quotient;
  return nullptr;
}

unsigned VisitProblem::addQuotient(const LinearForm &form, int64_t divisor) {
  for (const Quotient &quotient : quotients)
    if (quotient.form == form && quotient.divisor == divisor)
      return quotient.variable;
  unsigned variable = addUnknown();
  quotients.push_back({form, divisor, variable});
  // 0 <= form - divisor * quotient <= divisor - 1
  LinearForm rest = form - LinearForm::variable(variable, divisor);
  addFact(rest, variable);
  addFact(LinearForm::number(divisor - 1) - rest, variable);
  return variable;
}

static void shiftRows(LinearForm &form, const LinearForm &first) {
  if (int64_t coefficient = form.coefficient(VisitProblem::row))
    form += first * coefficient;
}

static void shiftRows(Formula &formula, const LinearForm &first) {
  shiftRows(formula.holds, first);
  shiftRows(formula.fails, first);
  for (Formula &part : formula.parts)
    shiftRows(part, first);
}

void VisitProblem::restrictRows(const LinearForm &first, int64_t rows) {
  addFact(first);
  addFact(LinearForm::number(numRows - rows) - first);
  shiftRows(mask, first);
  for (Fact &fact : facts)
    shiftRows(fact.form, first);
  for (Quotient &quotient : quotients)
    shiftRows(quotient.form, first);
  numRows = rows;
}

static LinearForm violation(const LinearForm &constraint) {
  return constraint * -1 + LinearForm::number(-1);
}

/// Whether `constraint` follows from `others` and the facts.
static bool isImplied(const VisitProblem &problem, ArrayRef<LinearForm> others,
                      const LinearForm &constraint) {
  for (const LinearForm &other : others)
    if (other.terms == constraint.terms &&
        other.constant <= constraint.constant)
      return true;
  Constraints constraints(others);
  constraints.push_back(violation(constraint));
  return isInfeasible(problem, constraints);
}

//===----------------------------------------------------------------------===//
// Disjunctive normal form
//===----------------------------------------------------------------------===//

/// Fails if there are too many disjuncts.
static FailureOr<std::vector<Constraints>>
getDisjuncts(const VisitProblem &problem, const Formula &formula) {
  if (formula.kind == Formula::Kind::Leaf) {
    std::vector<Constraints> result;
    if (!formula.holds.terms.empty())
      result.push_back({formula.holds});
    else if (formula.holds.constant >= 0)
      result.push_back({});
    return result;
  }
  bool isAnd = formula.kind == Formula::Kind::And;
  std::vector<Constraints> result(isAnd ? 1 : 0);
  for (const Formula &part : formula.parts) {
    FailureOr<std::vector<Constraints>> more = getDisjuncts(problem, part);
    if (failed(more))
      return failure();
    if (!isAnd) {
      llvm::append_range(result, *more);
    } else {
      std::vector<Constraints> product;
      bool prune = result.size() > 1 && more->size() > 1;
      for (const Constraints &left : result)
        for (const Constraints &right : *more) {
          Constraints both(left);
          llvm::append_range(both, right);
          if (both.size() > maxConjuncts)
            both.resize(maxConjuncts);
          if (!prune || !isInfeasible(problem, both))
            product.push_back(std::move(both));
        }
      result = std::move(product);
    }
    if (result.size() > maxDisjuncts)
      return failure();
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

static SmallVector<LinearForm, 2> select(const BlockInterval &interval,
                                         int sign) {
  SmallVector<LinearForm, 2> result;
  for (const LinearForm &constraint : interval.constraints) {
    int64_t coefficient = constraint.coefficient(VisitProblem::block);
    if ((coefficient > 0) - (coefficient < 0) == sign)
      result.push_back(constraint);
  }
  return result;
}

SmallVector<LinearForm, 2> BlockInterval::lowerBounds() const {
  return select(*this, 1);
}
SmallVector<LinearForm, 2> BlockInterval::upperBounds() const {
  return select(*this, -1);
}
SmallVector<LinearForm, 2> BlockInterval::conditions() const {
  return select(*this, 0);
}

static LinearForm firstBlockBound(const VisitProblem &problem) {
  return LinearForm::variable(VisitProblem::block) - problem.lowerBound;
}

/// Drops constraints that follow from the others, `given` and the facts, among
/// them the loop's own bounds.
static void simplify(const VisitProblem &problem, BlockInterval &interval,
                     ArrayRef<LinearForm> given = {}) {
  Constraints &constraints = interval.constraints;
  // Conditions first: a bound costs less.
  Constraints ordered;
  for (bool isCondition : {true, false})
    for (const LinearForm &constraint : constraints)
      if ((constraint.coefficient(VisitProblem::block) == 0) == isCondition)
        ordered.push_back(constraint);
  constraints = std::move(ordered);
  for (size_t i = 0; i < constraints.size();) {
    Constraints others(given);
    for (auto [number, other] : llvm::enumerate(constraints))
      if (number != i)
        others.push_back(other);
    if (isImplied(problem, others, constraints[i]))
      constraints.erase(constraints.begin() + i);
    else
      ++i;
  }
}

/// The smallest set of constraints of `a` and `b` that hold for both.
static BlockInterval hull(const VisitProblem &problem, const BlockInterval &a,
                          const BlockInterval &b) {
  BlockInterval result;
  auto addValid = [&](const BlockInterval &from, const BlockInterval &other) {
    for (const LinearForm &constraint : from.constraints)
      if (isImplied(problem, other.constraints, constraint) &&
          !llvm::is_contained(result.constraints, constraint))
        result.constraints.push_back(constraint);
  };
  addValid(a, b);
  addValid(b, a);
  return result;
}

/// Whether the hull holds nothing beside `a` and `b`.
static bool isUnion(const VisitProblem &problem, const BlockInterval &whole,
                    const BlockInterval &a, const BlockInterval &b) {
  for (const LinearForm &first : a.constraints)
    for (const LinearForm &second : b.constraints) {
      Constraints outside(whole.constraints);
      outside.push_back(violation(first));
      outside.push_back(violation(second));
      if (!isInfeasible(problem, outside))
        return false;
    }
  return true;
}

/// Adds an interval, joined with those with which it is one.
static void addInterval(const VisitProblem &problem,
                        SmallVectorImpl<BlockInterval> &intervals,
                        BlockInterval added, ArrayRef<LinearForm> given) {
  for (size_t i = 0; i < intervals.size();) {
    BlockInterval whole = hull(problem, intervals[i], added);
    if (!isUnion(problem, whole, intervals[i], added)) {
      ++i;
      continue;
    }
    simplify(problem, whole, given);
    intervals.erase(intervals.begin() + i);
    added = std::move(whole);
    // What did not fit before may now.
    i = 0;
  }
  intervals.push_back(std::move(added));
}

namespace {
/// Values of a variable: base + least to base + greatest, base of symbols.
struct DisjunctRange {
  unsigned variable;
  LinearForm base;
  int64_t least, greatest;
};
} // namespace

/// A quotient of the key that lies in a small range: the rows of an image, or
/// the images of a volume, beside that of the query block. For each of its
/// values the keys are one interval, for all of them together they may be far
/// from it.
static std::optional<DisjunctRange> findRange(const VisitProblem &problem,
                                              ArrayRef<LinearForm> disjunct) {
  for (const LinearForm &lower : disjunct)
    for (auto [variable, coefficient] : lower.terms) {
      const VisitProblem::Quotient *quotient = problem.findQuotient(variable);
      if (coefficient != 1 || !quotient ||
          quotient->form.coefficient(VisitProblem::column) == 0)
        continue;
      // variable >= base
      LinearForm base = LinearForm::variable(variable) - lower;
      if (!problem.isSymbolicForm(base))
        continue;
      for (const LinearForm &upper : disjunct) {
        LinearForm slack = upper + LinearForm::variable(variable) - base;
        if (upper.coefficient(variable) == -1 && slack.terms.empty() &&
            slack.constant >= 0 && slack.constant <= maxSplit)
          return DisjunctRange{variable, base, 0, slack.constant};
      }
    }
  return std::nullopt;
}

/// Divides disjuncts by the values of such a quotient.
static void splitRanges(const VisitProblem &problem,
                        std::vector<Constraints> &disjuncts) {
  std::vector<Constraints> result;
  for (size_t i = 0; i < disjuncts.size(); ++i) {
    std::optional<DisjunctRange> range = findRange(problem, disjuncts[i]);
    int64_t count = range ? range->greatest - range->least + 1 : 1;
    if (!range ||
        result.size() + disjuncts.size() - i + count > maxSplitTotal) {
      result.push_back(disjuncts[i]);
      continue;
    }
    for (int64_t value = range->least; value <= range->greatest; ++value) {
      LinearForm excess = LinearForm::variable(range->variable) - range->base -
                          LinearForm::number(value);
      Constraints constraints(disjuncts[i]);
      constraints.push_back(excess);
      constraints.push_back(excess * -1);
      result.push_back(std::move(constraints));
    }
  }
  disjuncts = std::move(result);
}

/// The blocks for which some row and key satisfy `formula`.
static SmallVector<BlockInterval, 2> project(const VisitProblem &problem,
                                             const Formula &formula,
                                             ArrayRef<LinearForm> given,
                                             size_t maxIntervals) {
  SmallVector<BlockInterval, 2> intervals;
  auto joinLast = [&] {
    BlockInterval last = intervals.pop_back_val();
    intervals.back() = hull(problem, intervals.back(), last);
    simplify(problem, intervals.back(), given);
  };
  FailureOr<std::vector<Constraints>> disjuncts =
      getDisjuncts(problem, formula);
  if (failed(disjuncts))
    disjuncts = std::vector<Constraints>(1);
  splitRanges(problem, *disjuncts);
  for (const Constraints &disjunct : *disjuncts) {
    if (problem.effort <= 0)
      return {BlockInterval()};
    problem.effort -= projectionEffort;
    ConstraintSystem system(problem);
    system.add(disjunct);
    // A condition on rows alone is one on all blocks.
    system.add(firstBlockBound(problem));
    system.add(given);
    system.addFacts();
    if (system.isInfeasible())
      continue;
    BlockInterval interval{system.project()};
    simplify(problem, interval, given);
    addInterval(problem, intervals, std::move(interval), given);
    if (intervals.size() > maxOpenIntervals)
      joinLast();
  }
  while (intervals.size() > maxIntervals)
    joinLast();
  return intervals;
}

//===----------------------------------------------------------------------===//
// The set
//===----------------------------------------------------------------------===//

/// `form` with a linear form in place of a variable.
static LinearForm substitute(const LinearForm &form, unsigned variable,
                             const LinearForm &value) {
  int64_t coefficient = form.coefficient(variable);
  return form - LinearForm::variable(variable, coefficient) +
         value * coefficient;
}

/// Whether every row sees key `key`, of the first visited block.
static bool isSeenByAll(const VisitProblem &problem, const VisitSet &set,
                        ArrayRef<Constraints> hidden, const LinearForm &key) {
  for (const BlockInterval &interval : set.visited) {
    SmallVector<LinearForm, 2> bounds = interval.lowerBounds();
    bounds.push_back(firstBlockBound(problem));
    // Block n is the first one: n - 1 is below one of the bounds.
    for (const LinearForm &bound : bounds) {
      int64_t step = bound.coefficient(VisitProblem::block);
      LinearForm before = violation(bound + LinearForm::number(-step));
      for (const Constraints &disjunct : hidden) {
        Constraints constraints(interval.constraints);
        constraints.push_back(before);
        for (const LinearForm &constraint : disjunct)
          constraints.push_back(
              substitute(constraint, VisitProblem::column, key));
        // The number of the key, for what is known of quotients.
        LinearForm same = LinearForm::variable(VisitProblem::column) - key;
        constraints.push_back(same);
        constraints.push_back(same * -1);
        if (!isInfeasible(problem, constraints))
          return false;
      }
    }
  }
  return true;
}

static bool isFirstBlockSeen(const VisitProblem &problem, const VisitSet &set) {
  for (const BlockInterval &interval : set.visited)
    if (interval.lowerBounds() != set.visited.front().lowerBounds())
      return false;
  FailureOr<std::vector<Constraints>> hidden =
      getDisjuncts(problem, problem.mask.negated());
  if (failed(hidden))
    return false;
  LinearForm first =
      LinearForm::variable(VisitProblem::block, problem.numColumns);
  return isSeenByAll(problem, set, *hidden, first) ||
         isSeenByAll(problem, set, *hidden,
                     first + LinearForm::number(problem.numColumns - 1));
}

VisitSet attn::tile::computeVisitSet(const VisitProblem &problem,
                                     size_t maxIntervals) {
  VisitSet set;
  set.visited = project(problem, problem.mask, {}, maxIntervals);
  ArrayRef<LinearForm> given;
  if (set.visited.size() == 1)
    given = set.visited.front().constraints;
  size_t maxMasked = maxPieces / std::max<size_t>(set.visited.size(), 1) / 2;
  set.masked = project(problem, problem.mask.negated(), given,
                       std::max<size_t>(maxMasked, 1));
  set.isFirstBlockSeen = isFirstBlockSeen(problem, set);
  return set;
}

SmallVector<BlockInterval, 2>
attn::tile::findBlocks(const VisitProblem &problem, const Formula &formula,
                       size_t maxIntervals) {
  return project(problem, formula, {}, maxIntervals);
}
