//===- Digits.cpp - indices by quotients and remainders -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// table[i / 64 - j / 64 + 127, i % 64 - j % 64 + 63]: elements are so many keys
// after the first one, and so many rows of the image. Of a row of scores the
// first is a constant, the second one of two, as a test of the first key says
// (Quotients.h). So an element lies at one address of the row plus a constant,
// plus as many strides: one selection, where all elements that there can be are
// in the table.
//
// A remainder is base + c less its divisor times the quotient: all indices are
// sums of the position and of its quotients, by constants each of which divides
// the next one.
//
//===----------------------------------------------------------------------===//

#include "Gatherer.h"
#include "Offsets.h"
#include "Quotients.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// A sum of numbers times factors, which wraps around as they do: values that
/// are not taken apart, quotients of offsets by constants, and a constant.
struct DigitSum {
  struct Term {
    Value value;
    int64_t factor;

    bool operator==(const Term &other) const {
      return value == other.value && factor == other.factor;
    }
  };
  SmallVector<Term> terms, quotients;
  int64_t constant = 0;

  static DigitSum split(Value value);
};
} // namespace

/// Larger factors are none of an index, and it has no more operations.
static constexpr int64_t mostFactor = int64_t(1) << 31;
static constexpr unsigned mostOperations = 64;

static void addTerm(SmallVectorImpl<DigitSum::Term> &terms, Value value,
                    int64_t factor) {
  auto *found = llvm::find_if(
      terms, [&](const DigitSum::Term &term) { return term.value == value; });
  if (found == terms.end())
    terms.push_back({value, factor});
  else
    found->factor += factor;
}

static void eraseZeros(SmallVectorImpl<DigitSum::Term> &terms) {
  llvm::erase_if(terms,
                 [](const DigitSum::Term &term) { return term.factor == 0; });
}

static void addTimes(DigitSum &sum, Value value, int64_t factor,
                     unsigned &numOperations) {
  if (std::optional<int64_t> number = getConstantIntValue(value)) {
    sum.constant += factor * *number;
    return;
  }
  Operation *op = value.getDefiningOp();
  if (++numOperations > mostOperations)
    op = nullptr;
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    addTimes(sum, op->getOperand(0), factor, numOperations);
    addTimes(sum, op->getOperand(1), isa<arith::SubIOp>(op) ? -factor : factor,
             numOperations);
    return;
  }
  if (isa_and_nonnull<arith::MulIOp>(op))
    for (unsigned side : {0, 1}) {
      std::optional<int64_t> number =
          getConstantIntValue(op->getOperand(1 - side));
      if (!number || std::abs(*number * factor) >= mostFactor)
        continue;
      addTimes(sum, op->getOperand(side), factor * *number, numOperations);
      return;
    }
  addTerm(Quotient::match(value) ? sum.quotients : sum.terms, value, factor);
}

DigitSum DigitSum::split(Value value) {
  DigitSum sum;
  unsigned numOperations = 0;
  addTimes(sum, value, 1, numOperations);
  return sum;
}

namespace {
/// A position of which elements have quotients: base + c.
struct DigitBase {
  Value value;
  SmallVector<DigitSum::Term> terms;         // that it is a sum of
  SmallVector<int64_t> divisors;             // each divides the next one
  SmallVector<SmallVector<Value>> quotients; // by divisor, of each element
};

/// An index of one element: rest + constant + position * place + factors *
/// quotients, with the place that it has quotients of.
struct DigitIndex {
  SmallVector<DigitSum::Term> rest;
  int64_t constant = 0, position = 0;
  SmallVector<int64_t> factors; // by divisor

  bool operator==(const DigitIndex &other) const {
    return rest == other.rest && constant == other.constant &&
           position == other.position && factors == other.factors;
  }
};

/// Elements that differ in their places alone, and one of them.
struct DigitRow {
  SmallVector<DigitIndex> indices;
  size_t example;
};
} // namespace

static Value getBase(const DigitSum::Term &quotient) {
  return Offset::split(Quotient::match(quotient.value)->dividend).base;
}

static int64_t getPlace(Value quotient) {
  return Offset::split(Quotient::match(quotient)->dividend).constant;
}

/// The base whose quotients have most offsets.
static Value findBase(ArrayRef<SmallVector<DigitSum>> elements) {
  llvm::MapVector<Value, llvm::DenseSet<Value>> quotients;
  for (ArrayRef<DigitSum> indices : elements)
    for (const DigitSum &index : indices)
      for (const DigitSum::Term &term : index.quotients)
        if (Value base = getBase(term))
          quotients[base].insert(term.value);
  Value found;
  size_t most = leastRun - 1;
  for (auto &[base, values] : quotients)
    if (values.size() > most) {
      found = base;
      most = values.size();
    }
  return found;
}

/// Its divisors, and the quotients of each element. None if an element has none
/// or several by one of them.
static std::optional<DigitBase>
describeBase(Value value, ArrayRef<SmallVector<DigitSum>> elements) {
  DigitBase base;
  base.value = value;
  base.terms = DigitSum::split(value).terms;
  eraseZeros(base.terms);
  for (auto [number, indices] : llvm::enumerate(elements))
    for (const DigitSum &index : indices)
      for (const DigitSum::Term &term : index.quotients) {
        if (getBase(term) != value)
          continue;
        int64_t divisor = Quotient::match(term.value)->divisor;
        auto *at = llvm::find(base.divisors, divisor);
        if (at == base.divisors.end()) {
          base.divisors.push_back(divisor);
          base.quotients.emplace_back(elements.size());
          at = std::prev(base.divisors.end());
        }
        Value &own = base.quotients[at - base.divisors.begin()][number];
        if (own && getPlace(own) != getPlace(term.value))
          return std::nullopt;
        own = term.value;
      }
  return base;
}

/// Each divisor shall divide the next one.
static bool sortDivisors(DigitBase &base) {
  SmallVector<size_t> order = llvm::to_vector(llvm::seq(base.divisors.size()));
  llvm::sort(order, [&](size_t lhs, size_t rhs) {
    return base.divisors[lhs] < base.divisors[rhs];
  });
  DigitBase sorted = base;
  for (auto [to, from] : llvm::enumerate(order)) {
    sorted.divisors[to] = base.divisors[from];
    sorted.quotients[to] = base.quotients[from];
  }
  base = std::move(sorted);
  for (size_t number = 1; number < base.divisors.size(); ++number)
    if (base.divisors[number] % base.divisors[number - 1] != 0)
      return false;
  return true;
}

static DigitIndex takeApart(const DigitSum &sum, const DigitBase &base) {
  DigitIndex index;
  index.constant = sum.constant;
  index.rest = sum.terms;
  index.factors.resize(base.divisors.size());
  for (const DigitSum::Term &term : sum.quotients) {
    if (getBase(term) != base.value) {
      addTerm(index.rest, term.value, term.factor);
      continue;
    }
    int64_t divisor = Quotient::match(term.value)->divisor;
    index.factors[llvm::find(base.divisors, divisor) - base.divisors.begin()] +=
        term.factor;
  }
  const DigitSum::Term &first = base.terms.front();
  for (const DigitSum::Term &term : index.rest)
    if (term.value == first.value && term.factor % first.factor == 0)
      index.position = term.factor / first.factor;
  if (index.position != 0)
    for (const DigitSum::Term &term : base.terms)
      addTerm(index.rest, term.value, -index.position * term.factor);
  eraseZeros(index.rest);
  return index;
}

/// The digits of the base: scales, and factors of one index.
static SmallVector<int64_t> getScales(const DigitBase &base) {
  SmallVector<int64_t> scales = {1};
  llvm::append_range(scales, base.divisors);
  return scales;
}

static SmallVector<int64_t> getDigitFactors(const DigitIndex &index,
                                            const DigitBase &base) {
  return llvm::map_to_vector(getScales(base), [&](int64_t scale) {
    int64_t factor = index.position * scale;
    for (auto [own, divisor] : llvm::zip_equal(index.factors, base.divisors))
      if (scale % divisor == 0)
        factor += own * (scale / divisor);
    return factor;
  });
}

/// The least and the most that an index adds to `rest`, which has the top
/// digit.
static std::pair<int64_t, int64_t> boundDigits(ArrayRef<int64_t> factors,
                                               ArrayRef<int64_t> scales,
                                               int64_t topCount) {
  int64_t least = 0, most = 0;
  for (auto [digit, factor] : llvm::enumerate(factors)) {
    int64_t count = digit + 1 == scales.size()
                        ? topCount
                        : scales[digit + 1] / scales[digit];
    least += std::min<int64_t>(0, factor * (count - 1));
    most += std::max<int64_t>(0, factor * (count - 1));
  }
  return {least, most};
}

/// One address for each row, plus constants and strides. None if elements are
/// not of that kind.
std::optional<SmallVector<Value>> Gatherer::loadDigits() {
  if (!view.isContiguous() || elements.size() < leastGrid)
    return std::nullopt;
  SmallVector<SmallVector<DigitSum>> sums;
  for (ArrayRef<Value> indices : elements)
    sums.push_back(llvm::map_to_vector(indices, DigitSum::split));
  Value found = findBase(sums);
  std::optional<DigitBase> base;
  if (found)
    base = describeBase(found, sums);
  if (!base || base->terms.empty() || !sortDivisors(*base))
    return std::nullopt;
  SmallVector<int64_t> places;
  for (ArrayRef<Value> quotients : base->quotients)
    for (auto [number, quotient] : llvm::enumerate(quotients)) {
      if (!quotient)
        return std::nullopt;
      int64_t place = getPlace(quotient);
      if (number == places.size())
        places.push_back(place);
      else if (place != places[number])
        return std::nullopt;
    }

  SmallVector<DigitRow> rows;
  SmallVector<size_t> rowOf;
  for (auto [number, indices] : llvm::enumerate(sums)) {
    DigitRow row = {{}, number};
    for (auto [dim, sum] : llvm::enumerate(indices)) {
      DigitIndex &index = row.indices.emplace_back(takeApart(sum, *base));
      index.constant -= index.position * places[number];
      if (dim + 1 != indices.size() && index.position != 0)
        return std::nullopt;
    }
    auto *same = llvm::find_if(rows, [&](const DigitRow &other) {
      return other.indices == row.indices;
    });
    rowOf.push_back(same - rows.begin());
    if (same == rows.end())
      rows.push_back(std::move(row));
  }
  // Of quotients alone there are few elements: loadBlocks.
  bool areBlocks = llvm::all_of(rows, [](const DigitRow &row) {
    return row.indices.back().position == 0;
  });
  if (areBlocks || rows.size() * leastRun > elements.size())
    return std::nullopt;
  SmallVector<QuotientRow> quotients;
  for (ArrayRef<Value> values : base->quotients) {
    std::optional<QuotientRow> row = QuotientRow::match(b, loc, values);
    if (!row)
      return std::nullopt;
    quotients.push_back(*row);
  }

  auto addTimes = [&](Value sum, Value value, int64_t factor) {
    return factor == 0 ? sum : addresses.add(sum, addresses.mul(value, factor));
  };
  Value wide = addresses.fromInt(found);
  int64_t start = *llvm::min_element(places);
  Value first = addresses.add(wide, addresses.constant(start));
  SmallVector<Value> firsts =
      llvm::map_to_vector(quotients, [&](const QuotientRow &row) {
        return addresses.fromInt(row.first);
      });
  SmallVector<int64_t> scales = getScales(*base);
  // Without the place and its quotients; with those that come first.
  SmallVector<SmallVector<Value>> origins;
  Value all;
  for (const DigitRow &row : rows) {
    SmallVector<Value> &origin = origins.emplace_back();
    for (auto [dim, index] : llvm::enumerate(row.indices)) {
      size_t example = row.example;
      Value rest = addresses.fromInt(elements[example][dim]);
      rest = addTimes(rest,
                      addresses.add(wide, addresses.constant(places[example])),
                      -index.position);
      for (auto [own, factor] : llvm::zip_equal(base->quotients, index.factors))
        rest = addTimes(rest, addresses.fromInt(own[example]), -factor);
      SmallVector<int64_t> factors = getDigitFactors(index, *base);
      auto [least, most] = boundDigits(factors, scales, quotients.back().count);
      Value top = addTimes(rest, firsts.back(), factors.back());
      for (int64_t bound : {least, most})
        require(all, arith::CmpIOp::create(
                         b, loc, arith::CmpIPredicate::ult,
                         addresses.add(top, addresses.constant(bound)),
                         view.sizes[dim]));
      Value at = addTimes(rest, first, index.position);
      for (auto [number, factor] : llvm::zip_equal(firsts, index.factors))
        at = addTimes(at, number, factor);
      origin.push_back(at);
    }
  }
  auto loadAll = [&] {
    // By row and divisor: what a step of the quotient is.
    SmallVector<SmallVector<Value>> steps;
    SmallVector<Value> starts;
    for (auto [row, origin] : llvm::zip_equal(rows, origins)) {
      starts.push_back(view.addressOf(b, loc, origin));
      SmallVector<Value> &own = steps.emplace_back();
      for (size_t number = 0; number < quotients.size(); ++number) {
        Value step = addresses.constant(0);
        for (auto [dim, index] : llvm::enumerate(row.indices))
          step = addTimes(step, view.strides[dim],
                          index.factors[number] * view.elementBytes);
        own.push_back(step);
      }
    }
    llvm::DenseMap<std::tuple<Value, Value, int64_t>, Value> moved;
    auto move = [&](Value address, Value step, int64_t count) {
      Value &result = moved[{address, step, count}];
      if (!result)
        result = addTimes(address, step, count);
      return result;
    };
    SmallVector<Value> result;
    for (auto [number, row] : llvm::enumerate(rowOf)) {
      Value address = starts[row];
      for (auto [quotient, step] : llvm::zip_equal(quotients, steps[row])) {
        auto [count, isBehind] = quotient.places[number];
        Value own = move(address, step, count);
        if (isBehind)
          own = arith::SelectOp::create(b, loc, isBehind,
                                        move(address, step, count + 1), own);
        address = own;
      }
      int64_t bytes = rows[row].indices.back().position *
                      (places[number] - start) * view.elementBytes;
      result.push_back(
          load(offsetBy(b, loc, addresses.toPointer(address), bytes)));
    }
    return result;
  };
  if (areInside)
    return loadAll();
  return choose(all, elementTypes(elements.size()), loadAll,
                [&] { return loadUnlessEmpty(findBlocks()); });
}
