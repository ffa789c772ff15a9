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
#include <functional>

using namespace mlir;
using namespace attn::raise;
using Kind = Expr::Kind;

/// No weight is left of a score that is this constant. One that no score brings
/// back is near the lowest number of f32 or bf16; one that is far is -10000 as
/// bf16 has it.
static bool hides(ExprRef expr, Hides which) {
  static constexpr double kLargest[] = {-HUGE_VAL, -1e37, -9984};
  return expr->isConstant() && expr->isFloat() &&
         expr->real <= kLargest[static_cast<int>(which)];
}

static ExprRef conjunction(Expressions &e, ExprRef a, ExprRef b) {
  return a && b ? e.both(a, b) : (a ? a : b);
}

namespace {
/// Takes scores apart; what is added twice once.
class MaskSplitter {
public:
  explicit MaskSplitter(Expressions &e) : e(e) {}

  MaskedScore split(ExprRef scores, Hides which) {
    auto known = results[static_cast<int>(which)].find(scores);
    if (known != results[static_cast<int>(which)].end())
      return known->second;
    MaskedScore result = compute(scores, which);
    results[static_cast<int>(which)][scores] = result;
    return result;
  }

private:
  MaskedScore compute(ExprRef scores, Hides which);

  Expressions &e;
  llvm::DenseMap<ExprRef, MaskedScore> results[3];
};
} // namespace

MaskedScore attn::raise::splitMask(Expressions &e, ExprRef scores,
                                   Hides which) {
  return MaskSplitter(e).split(scores, which);
}

MaskedScore MaskSplitter::compute(ExprRef scores, Hides which) {
  MaskedScore result{scores, nullptr};
  if (scores->is<arith::SelectOp>()) {
    ExprRef condition = scores->operands[0];
    ExprRef shown = scores->operands[1], hidden = scores->operands[2];
    if (hides(shown, which)) {
      std::swap(shown, hidden);
      condition = e.negated(condition);
    }
    if (!hides(hidden, which) || hides(shown, which))
      return result;
    result = split(shown, which);
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
        split(scores->operands[0], factor->real >= 1 ? which : Hides::Infinite);
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
    if (hides(shown, which)) {
      std::swap(shown, hidden);
      condition = e.negated(condition);
    }
    if (!shown->isReal(0) || !hides(hidden, which))
      continue;
    result = split(rest, which);
    result.mask = conjunction(e, condition, result.mask);
    result.isFinite |= !std::isinf(hidden->real);
    return result;
  }
  MaskedScore a = split(scores->operands[0], which);
  MaskedScore b = split(scores->operands[1], which);
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

/// a - b, each node of which is taken apart once; nothing where 64 bits do not
/// hold a coefficient.
static std::optional<IntegerForm> subtract(ExprRef a, ExprRef b) {
  IntegerForm form;
  bool overflows = false;
  // Users first: they were created later.
  std::map<unsigned, std::pair<ExprRef, int64_t>, std::greater<>> open;
  auto add = [&](ExprRef part, int64_t factor) {
    auto &sum = open[part->id];
    sum.first = part;
    overflows |= __builtin_add_overflow(sum.second, factor, &sum.second);
  };
  add(a, 1);
  add(b, -1);
  while (!open.empty() && !overflows) {
    auto [part, factor] = open.extract(open.begin()).mapped();
    bool isSum = part->is<arith::AddIOp>() || part->is<arith::SubIOp>();
    if (part->isConstant()) {
      int64_t product;
      overflows |=
          factor == INT64_MIN ||
          __builtin_mul_overflow(factor, part->integer, &product) ||
          __builtin_add_overflow(form.constant, product, &form.constant);
    } else if (isSum && part->type.isIndex() && factor != INT64_MIN) {
      add(part->operands[0], factor);
      add(part->operands[1], part->is<arith::SubIOp>() ? -factor : factor);
    } else {
      form.terms[part->id] = {part, factor};
    }
  }
  return overflows ? std::nullopt : std::optional(form);
}

/// The least and the largest value of a - b; constants beyond any size have no
/// place here.
static std::optional<IntegerRange> difference(ExprRef a, ExprRef b) {
  std::optional<IntegerForm> form = subtract(a, b);
  if (!form)
    return std::nullopt;
  __int128 low = form->constant, high = form->constant;
  for (auto &[id, term] : form->terms) {
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
  return IntegerRange{int64_t(low), int64_t(high)};
}

static bool isComparisonTrue(ExprRef condition) {
  if (condition->isConstant())
    return condition->integer != 0;
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

/// Whether a condition certainly holds. `known` has the answers for what was
/// looked at before.
static bool isAlwaysTrue(ExprRef condition,
                         llvm::DenseMap<ExprRef, bool> &known) {
  auto found = known.find(condition);
  if (found != known.end())
    return found->second;
  bool result;
  if (condition->is<arith::AndIOp>())
    result = isAlwaysTrue(condition->operands[0], known) &&
             isAlwaysTrue(condition->operands[1], known);
  else if (condition->is<arith::OrIOp>())
    result = isAlwaysTrue(condition->operands[0], known) ||
             isAlwaysTrue(condition->operands[1], known);
  else
    result = isComparisonTrue(condition);
  return known[condition] = result;
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
    llvm::DenseMap<ExprRef, bool> known;
    return isAlwaysTrue(e.substitute(mask, {key}, {witness}), known);
  });
}
