//===- MatchMask.cpp - conditions that hide keys -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "Positions.h"

#include <cmath>

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

/// No weight is left of a score that is this constant. A finite one is near
/// the lowest number of f32 or bf16, from where no score brings it back.
static bool hides(ExprRef expr, bool finite) {
  return expr->isConstant() && expr->isFloat() &&
         (expr->real == -HUGE_VAL || (finite && expr->real <= -1e37));
}

static ExprRef conjunction(Expressions &e, ExprRef a, ExprRef b) {
  return a && b ? e.both(a, b) : (a ? a : b);
}

MaskedScore attn::raise::splitMask(Expressions &e, ExprRef scores,
                                   bool finite) {
  MaskedScore result{scores, nullptr};
  if (scores->is<arith::SelectOp>()) {
    ExprRef condition = scores->operands[0];
    ExprRef shown = scores->operands[1], hidden = scores->operands[2];
    if (hides(shown, finite)) {
      std::swap(shown, hidden);
      condition = e.negated(condition);
    }
    if (!hides(hidden, finite) || hides(shown, finite))
      return result;
    result = splitMask(e, shown, finite);
    result.mask = conjunction(e, condition, result.mask);
    result.isFinite |= !std::isinf(hidden->real);
    return result;
  }
  if (scores->is<arith::MulFOp>() && scores->operands[1]->isConstant() &&
      scores->operands[1]->real > 0) {
    // Both sides of a choice are scaled alike; -inf stays what it is. A finite
    // constant is judged after the scale.
    ExprRef factor = scores->operands[1];
    MaskedScore inner =
        splitMask(e, scores->operands[0], finite && factor->real >= 1);
    if (!inner.mask)
      return result;
    inner.score = e.mul(inner.score, factor);
    return inner;
  }
  if (!scores->is<arith::AddFOp>())
    return result;
  for (unsigned side : {0u, 1u}) {
    // x + select(c, 0, -inf)
    ExprRef choice = scores->operands[side], rest = scores->operands[1 - side];
    if (!choice->is<arith::SelectOp>())
      continue;
    ExprRef condition = choice->operands[0];
    ExprRef shown = choice->operands[1], hidden = choice->operands[2];
    if (hides(shown, finite)) {
      std::swap(shown, hidden);
      condition = e.negated(condition);
    }
    if (!shown->isReal(0) || !hides(hidden, finite))
      continue;
    result = splitMask(e, rest, finite);
    result.mask = conjunction(e, condition, result.mask);
    result.isFinite |= !std::isinf(hidden->real);
    return result;
  }
  MaskedScore a = splitMask(e, scores->operands[0], finite);
  MaskedScore b = splitMask(e, scores->operands[1], finite);
  if (!a.mask && !b.mask)
    return result;
  return {e.add(a.score, b.score), conjunction(e, a.mask, b.mask),
          a.isFinite || b.isFinite};
}

//===----------------------------------------------------------------------===//
// Rows that certainly see a key
//===----------------------------------------------------------------------===//

namespace {
/// An integer as a sum, so that what cancels is gone.
struct IntegerForm {
  std::map<unsigned, std::pair<ExprRef, int64_t>> terms;
  int64_t constant = 0;
};
} // namespace

static void addTerms(ExprRef expr, int64_t factor, IntegerForm &form) {
  if (expr->isConstant()) {
    form.constant += factor * expr->integer;
  } else if (expr->is<arith::AddIOp>() && expr->type.isIndex()) {
    addTerms(expr->operands[0], factor, form);
    addTerms(expr->operands[1], factor, form);
  } else if (expr->is<arith::SubIOp>() && expr->type.isIndex()) {
    addTerms(expr->operands[0], factor, form);
    addTerms(expr->operands[1], -factor, form);
  } else {
    auto &term = form.terms[expr->id];
    term.first = expr;
    term.second += factor;
  }
}

/// The least and the largest value of a - b; constants beyond any size have no
/// place here.
static std::optional<Interval> difference(ExprRef a, ExprRef b) {
  IntegerForm form;
  addTerms(a, 1, form);
  addTerms(b, -1, form);
  __int128 low = form.constant, high = form.constant;
  for (auto &[id, term] : form.terms) {
    if (term.second == 0)
      continue;
    auto range = interval(term.first);
    if (!range)
      return std::nullopt;
    __int128 ends[] = {__int128(range->low) * term.second,
                       __int128(range->high) * term.second};
    low += std::min(ends[0], ends[1]);
    high += std::max(ends[0], ends[1]);
  }
  if (low < INT64_MIN || high > INT64_MAX)
    return std::nullopt;
  return Interval{int64_t(low), int64_t(high)};
}

static bool isAlwaysTrue(ExprRef condition) {
  if (condition->isConstant())
    return condition->integer != 0;
  if (condition->is<arith::AndIOp>())
    return isAlwaysTrue(condition->operands[0]) &&
           isAlwaysTrue(condition->operands[1]);
  if (condition->is<arith::OrIOp>())
    return isAlwaysTrue(condition->operands[0]) ||
           isAlwaysTrue(condition->operands[1]);
  if (!condition->is<arith::CmpIOp>())
    return false;
  auto range = difference(condition->operands[0], condition->operands[1]);
  if (!range)
    return false;
  switch (static_cast<arith::CmpIPredicate>(condition->predicate)) {
  case arith::CmpIPredicate::eq:
    return range->low == 0 && range->high == 0;
  case arith::CmpIPredicate::ne:
    return range->low > 0 || range->high < 0;
  case arith::CmpIPredicate::sge:
    return range->low >= 0;
  case arith::CmpIPredicate::sgt:
    return range->low > 0;
  case arith::CmpIPredicate::sle:
    return range->high <= 0;
  case arith::CmpIPredicate::slt:
    return range->high < 0;
  default:
    return false;
  }
}

bool attn::raise::everyRowSees(Expressions &e, ExprRef mask, ExprRef row,
                               ExprRef key) {
  Extent keys = key->extents[0];
  SmallVector<ExprRef> witnesses = {e.index(0)};
  if (row && row->isVariable()) {
    Extent queries = row->extents[0];
    if (queries == keys ||
        (isKnown(queries) && isKnown(keys) && queries < keys))
      witnesses.push_back(row);
    // The diagonal from the last corner.
    if (isKnown(queries) && isKnown(keys) && queries < keys)
      witnesses.push_back(
          e.make<arith::AddIOp>(e.indexType, {row, e.index(keys - queries)}));
  }
  if (isKnown(keys) && keys > 0)
    witnesses.push_back(e.index(keys - 1));
  return llvm::any_of(witnesses, [&](ExprRef witness) {
    return isAlwaysTrue(e.substitute(mask, {key}, {witness}));
  });
}
