//===- ConstraintSystem.cpp - systems of linear inequalities --------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConstraintSystem.h"

#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace attn;
using namespace attn::tile;
using mlir::presburger::IntegerPolyhedron;
using mlir::presburger::PresburgerSpace;
using mlir::presburger::Simplex;

/// Constraints beyond which those that follow from others are looked for before
/// an elimination, and beyond which there is none.
static constexpr size_t numCheapConstraints = 12, maxConstraints = 60;

/// Facts that are gone through, and constraints that are solved for, with the
/// effort of one small system.
static constexpr int64_t numFactsOfOne = 256, numConstraintsOfOne = 64;

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

void ConstraintSystem::add(LinearForm constraint) {
  tighten(constraint);
  for (auto [variable, coefficient] : constraint.terms)
    variables.insert(variable);
  if (!llvm::is_contained(constraints, constraint))
    constraints.push_back(std::move(constraint));
}

void ConstraintSystem::addFacts() {
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

IntegerPolyhedron ConstraintSystem::build(ArrayRef<unsigned> columns) const {
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

bool ConstraintSystem::isInfeasible() const {
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
ConstraintSystem ConstraintSystem::forget(unsigned variable) const {
  ConstraintSystem result(problem);
  for (const LinearForm &constraint : constraints)
    if (constraint.coefficient(variable) == 0)
      result.add(constraint);
  return result;
}

ConstraintSystem ConstraintSystem::eliminate(unsigned variable) const {
  SmallVector<unsigned> columns(variables.begin(), variables.end());
  IntegerPolyhedron shadow = build(columns);
  if (constraints.size() > numCheapConstraints)
    shadow.removeRedundantConstraints();
  shadow.projectOut(llvm::find(columns, variable) - columns.begin());
  llvm::erase(columns, variable);
  ConstraintSystem result(problem);
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

Constraints ConstraintSystem::project() const {
  ConstraintSystem rest = *this;
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
  if (problem.effort <= 0)
    return false;
  ConstraintSystem system(problem);
  system.add(constraints);
  system.addFacts();
  int64_t size = system.size(), numFacts = problem.facts.size();
  problem.effort -= 1 + numFacts / numFactsOfOne +
                    size * size / (numConstraintsOfOne * numConstraintsOfOne);
  return system.isInfeasible();
}
