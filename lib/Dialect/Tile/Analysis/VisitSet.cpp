//===- VisitSet.cpp - which key blocks show anything, or everything -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/VisitSet.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace attn;
using namespace attn::tile;
using mlir::presburger::IntegerPolyhedron;
using mlir::presburger::PresburgerSpace;
using mlir::presburger::Simplex;

using Constraints = SmallVector<LinearForm, 4>;

/// Constraints beyond which those that follow from others are looked for before
/// an elimination, and beyond which there is none.
static constexpr size_t numCheapConstraints = 12, maxConstraints = 60;

/// Disjuncts of a formula beyond which nothing is said about it, and intervals
/// that wait for others to join them.
static constexpr size_t maxDisjuncts = 256, maxOpenIntervals = 12;

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

//===----------------------------------------------------------------------===//
// Polyhedra
//===----------------------------------------------------------------------===//

/// Divides by what divides all coefficients.
static void tighten(LinearForm &constraint) {
  int64_t divisor = 0;
  for (auto [variable, coefficient] : constraint.terms)
    divisor = std::gcd(divisor, coefficient);
  if (divisor <= 1)
    return;
  for (auto &term : constraint.terms)
    term.second /= divisor;
  constraint.constant = llvm::divideFloorSigned(constraint.constant, divisor);
}

static LinearForm violation(const LinearForm &constraint) {
  return constraint * -1 + LinearForm::number(-1);
}

namespace {
/// Constraints over the variables that occur in them.
class System {
public:
  explicit System(const VisitProblem &problem) : problem(problem) {}

  void add(LinearForm constraint) {
    tighten(constraint);
    for (auto [variable, coefficient] : constraint.terms)
      variables.insert(variable);
    if (!llvm::is_contained(constraints, constraint))
      constraints.push_back(std::move(constraint));
  }
  void add(ArrayRef<LinearForm> forms) {
    for (const LinearForm &form : forms)
      add(form);
  }
  /// What is always known of the variables that occur.
  void addFacts();

  bool isInfeasible() const;
  /// What remains for the block number and the symbols.
  Constraints project() const;
  System eliminate(unsigned variable) const;
  System forget(unsigned variable) const;

private:
  IntegerPolyhedron build(ArrayRef<unsigned> columns) const;

  std::reference_wrapper<const VisitProblem> problem;
  llvm::SetVector<unsigned> variables;
  std::vector<LinearForm> constraints;
};
} // namespace

void System::addFacts() {
  const VisitProblem &p = problem.get();
  LinearForm row = LinearForm::variable(VisitProblem::row);
  LinearForm block = LinearForm::variable(VisitProblem::block);
  LinearForm place = LinearForm::variable(VisitProblem::column) -
                     LinearForm::variable(VisitProblem::block, p.numColumns);
  SmallVector<VisitProblem::Fact> facts = {
      {row, {}},
      {LinearForm::number(p.numRows - 1) - row, {}},
      {block - p.lowerBound, {}},
      {p.upperBound - block + LinearForm::number(-1), {}},
      {place, VisitProblem::column},
      {LinearForm::number(p.numColumns - 1) - place, VisitProblem::column}};
  llvm::append_range(facts, p.facts);
  // Facts that connect what occurs with more, until nothing is new.
  std::vector<bool> isAdded(facts.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [number, fact] : llvm::enumerate(facts)) {
      bool occurs = fact.about ? variables.contains(*fact.about)
                               : llvm::any_of(fact.form.terms, [&](auto &term) {
                                   return variables.contains(term.first);
                                 });
      if (isAdded[number] || !occurs)
        continue;
      isAdded[number] = changed = true;
      add(fact.form);
    }
  }
}

IntegerPolyhedron System::build(ArrayRef<unsigned> columns) const {
  IntegerPolyhedron result(PresburgerSpace::getSetSpace(columns.size()));
  SmallVector<int64_t> row(columns.size() + 1);
  for (const LinearForm &constraint : constraints) {
    std::fill(row.begin(), row.end(), 0);
    for (auto [variable, coefficient] : constraint.terms)
      row[llvm::find(columns, variable) - columns.begin()] = coefficient;
    row.back() = constraint.constant;
    result.addInequality(row);
  }
  return result;
}

bool System::isInfeasible() const {
  for (const LinearForm &constraint : constraints)
    if (constraint.terms.empty() && constraint.constant < 0)
      return true;
  return Simplex(build(variables.getArrayRef())).isEmpty();
}

/// How many constraints the elimination of a variable adds at most, and whether
/// integers may be lost: one bound of each pair should have coefficient 1.
static std::pair<bool, int64_t> getCost(ArrayRef<LinearForm> constraints,
                                        unsigned variable) {
  int64_t numLower = 0, numUpper = 0;
  bool isLowerUnit = true, isUpperUnit = true;
  for (const LinearForm &constraint : constraints) {
    int64_t coefficient = constraint.coefficient(variable);
    numLower += coefficient > 0;
    numUpper += coefficient < 0;
    isLowerUnit &= coefficient <= 1;
    isUpperUnit &= coefficient >= -1;
  }
  return {!isLowerUnit && !isUpperUnit,
          numLower * numUpper - numLower - numUpper};
}

/// The constraints that do not say anything about `variable`: they hold for
/// more.
System System::forget(unsigned variable) const {
  System result(problem);
  for (const LinearForm &constraint : constraints)
    if (constraint.coefficient(variable) == 0)
      result.add(constraint);
  return result;
}

System System::eliminate(unsigned variable) const {
  SmallVector<unsigned> columns(variables.begin(), variables.end());
  IntegerPolyhedron shadow = build(columns);
  if (constraints.size() > numCheapConstraints)
    shadow.removeRedundantConstraints();
  shadow.projectOut(llvm::find(columns, variable) - columns.begin());
  llvm::erase(columns, variable);
  System result(problem);
  auto addRow = [&](ArrayRef<int64_t> row, int64_t sign) {
    LinearForm form = LinearForm::number(sign * row.back());
    for (auto [column, coefficient] : llvm::zip(columns, row))
      form += LinearForm::variable(column, sign * coefficient);
    if (!form.terms.empty() || form.constant < 0)
      result.add(form);
  };
  for (unsigned i = 0; i < shadow.getNumInequalities(); ++i)
    addRow(shadow.getInequality64(i), 1);
  for (unsigned i = 0; i < shadow.getNumEqualities(); ++i) {
    addRow(shadow.getEquality64(i), 1);
    addRow(shadow.getEquality64(i), -1);
  }
  return result;
}

Constraints System::project() const {
  System rest = *this;
  while (true) {
    std::optional<std::pair<std::pair<bool, int64_t>, unsigned>> best;
    for (unsigned variable : rest.variables) {
      if (variable == VisitProblem::block || problem.get().isSymbol(variable))
        continue;
      std::pair cost(getCost(rest.constraints, variable), variable);
      if (!best || cost < *best)
        best = cost;
    }
    if (!best)
      return Constraints(rest.constraints.begin(), rest.constraints.end());
    // Coefficients with a common divisor get sharper between two steps.
    if (rest.constraints.size() <= maxConstraints)
      rest = rest.eliminate(best->second);
    else
      rest = rest.forget(best->second);
  }
}

bool attn::tile::isInfeasible(const VisitProblem &problem,
                              ArrayRef<LinearForm> constraints) {
  if (problem.effort == 0)
    return false;
  --problem.effort;
  System system(problem);
  system.add(constraints);
  system.addFacts();
  return system.isInfeasible();
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
struct ValueRange {
  unsigned variable;
  LinearForm base;
  int64_t least, greatest;
};
} // namespace

/// A quotient of the key that lies in a small range: the rows of an image, or
/// the images of a volume, beside that of the query block. For each of its
/// values the keys are one interval, for all of them together they may be far
/// from it.
static std::optional<ValueRange> findRange(const VisitProblem &problem,
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
          return ValueRange{variable, base, 0, slack.constant};
      }
    }
  return std::nullopt;
}

/// Divides disjuncts by the values of such a quotient.
static void splitRanges(const VisitProblem &problem,
                        std::vector<Constraints> &disjuncts) {
  std::vector<Constraints> result;
  for (size_t i = 0; i < disjuncts.size(); ++i) {
    std::optional<ValueRange> range = findRange(problem, disjuncts[i]);
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
    System system(problem);
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
