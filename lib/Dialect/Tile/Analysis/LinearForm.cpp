//===- LinearForm.cpp - sums, and formulas of their signs -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/VisitSet.h"

#include "llvm/ADT/STLExtras.h"

using namespace attn;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

LinearForm LinearForm::number(int64_t value) {
  LinearForm form;
  form.constant = value;
  return form;
}

LinearForm LinearForm::variable(unsigned number, int64_t coefficient) {
  LinearForm form;
  if (coefficient != 0)
    form.terms.push_back({number, coefficient});
  return form;
}

int64_t LinearForm::coefficient(unsigned variable) const {
  for (auto [number, coefficient] : terms)
    if (number == variable)
      return coefficient;
  return 0;
}

LinearForm &LinearForm::operator+=(const LinearForm &other) {
  constant += other.constant;
  for (auto [variable, coefficient] : other.terms) {
    auto *place = llvm::lower_bound(
        terms, variable,
        [](const auto &term, unsigned number) { return term.first < number; });
    if (place != terms.end() && place->first == variable)
      place->second += coefficient;
    else
      terms.insert(place, {variable, coefficient});
  }
  llvm::erase_if(terms, [](const auto &term) { return term.second == 0; });
  return *this;
}

LinearForm &LinearForm::operator*=(int64_t factor) {
  constant *= factor;
  for (auto &term : terms)
    term.second *= factor;
  if (factor == 0)
    terms.clear();
  return *this;
}

LinearForm attn::tile::operator+(LinearForm lhs, const LinearForm &rhs) {
  return lhs += rhs;
}

LinearForm attn::tile::operator-(LinearForm lhs, const LinearForm &rhs) {
  return lhs += rhs * -1;
}

LinearForm attn::tile::operator*(LinearForm form, int64_t factor) {
  return form *= factor;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

static Formula makeLeaf(LinearForm holds, LinearForm fails) {
  Formula leaf;
  leaf.holds = std::move(holds);
  leaf.fails = std::move(fails);
  return leaf;
}

Formula Formula::atLeastZero(LinearForm form) {
  LinearForm fails = form * -1 + LinearForm::number(-1);
  return makeLeaf(std::move(form), std::move(fails));
}

Formula Formula::constant(bool value) {
  return atLeastZero(LinearForm::number(value ? 0 : -1));
}

Formula Formula::unknown() { return makeLeaf({}, {}); }

bool Formula::isConstant(bool value) const {
  return kind == Kind::Leaf && holds.terms.empty() && fails.terms.empty() &&
         (holds.constant >= 0) == value && (fails.constant >= 0) == !value;
}

/// The parts without those that change nothing; one `absorbing` part decides.
static Formula combine(Formula::Kind kind, std::vector<Formula> parts) {
  bool absorbing = kind == Formula::Kind::Or;
  Formula result;
  result.kind = kind;
  for (Formula &part : parts) {
    if (part.isConstant(absorbing))
      return Formula::constant(absorbing);
    if (part.isConstant(!absorbing))
      continue;
    if (part.kind == kind)
      llvm::append_range(result.parts, part.parts);
    else
      result.parts.push_back(std::move(part));
  }
  if (result.parts.empty())
    return Formula::constant(!absorbing);
  if (result.parts.size() == 1)
    return Formula(result.parts.front());
  result.numLeaves = 0;
  for (const Formula &part : result.parts)
    result.numLeaves += part.numLeaves;
  return result;
}

Formula Formula::all(std::vector<Formula> parts) {
  return combine(Kind::And, std::move(parts));
}

Formula Formula::any(std::vector<Formula> parts) {
  return combine(Kind::Or, std::move(parts));
}

Formula Formula::negated() const {
  if (kind == Kind::Leaf)
    return makeLeaf(fails, holds);
  std::vector<Formula> negatedParts;
  for (const Formula &part : parts)
    negatedParts.push_back(part.negated());
  return combine(kind == Kind::And ? Kind::Or : Kind::And,
                 std::move(negatedParts));
}

bool Formula::hasUnknown() const {
  if (kind == Kind::Leaf)
    return holds.terms.empty() && fails.terms.empty() && holds.constant >= 0 &&
           fails.constant >= 0;
  return llvm::any_of(parts,
                      [](const Formula &part) { return part.hasUnknown(); });
}
