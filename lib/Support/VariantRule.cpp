//===- VariantRule.cpp - which variant of a kernel a launch takes ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/VariantRule.h"

#include <algorithm>
#include <limits>

using namespace attn;

using Comparison = QuantityComparison;

// In the order of the enumerations.
static constexpr std::string_view kQuantities[] = {
    "query_length", "key_length", "batch_heads", "multiprocessors",
    "batch_key_heads"};
static constexpr std::string_view kComparisons[] = {"<", "<=", "==", ">=", ">"};

std::string_view attn::quantityName(LaunchQuantity quantity) {
  return kQuantities[static_cast<size_t>(quantity)];
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

int64_t QuantityProduct::evaluate(const LaunchQuantities &values) const {
  int64_t product = factor;
  bool isTooLarge = false, isZero = factor == 0;
  for (LaunchQuantity quantity : quantities) {
    int64_t value = values[static_cast<size_t>(quantity)];
    isZero |= value == 0;
    isTooLarge |= __builtin_mul_overflow(product, value, &product);
  }
  if (isZero)
    return 0;
  return isTooLarge ? std::numeric_limits<int64_t>::max() : product;
}

bool Comparison::holds(const LaunchQuantities &values) const {
  int64_t left = lhs.evaluate(values), right = rhs.evaluate(values);
  switch (kind) {
  case Kind::Less:
    return left < right;
  case Kind::LessEqual:
    return left <= right;
  case Kind::Equal:
    return left == right;
  case Kind::GreaterEqual:
    return left >= right;
  case Kind::Greater:
    return left > right;
  }
  return false;
}

bool LaunchCondition::holds(const LaunchQuantities &values) const {
  return std::all_of(
      comparisons.begin(), comparisons.end(),
      [&](const Comparison &comparison) { return comparison.holds(values); });
}

bool LaunchCondition::names(LaunchQuantity quantity) const {
  for (const Comparison &comparison : comparisons)
    for (const QuantityProduct *side : {&comparison.lhs, &comparison.rhs})
      if (std::count(side->quantities.begin(), side->quantities.end(),
                     quantity) != 0)
        return true;
  return false;
}

bool VariantRule::names(LaunchQuantity quantity) const {
  return std::any_of(all.begin(), all.end(), [&](const Case &entry) {
    return entry.condition.names(quantity);
  });
}

const VariantRule::Case &
VariantRule::findCase(const LaunchQuantities &values) const {
  size_t number = 0;
  while (!all[number].condition.holds(values))
    ++number;
  return all[number];
}

//===----------------------------------------------------------------------===//
// As text
//===----------------------------------------------------------------------===//

std::string QuantityProduct::print() const {
  std::string text;
  if (factor != 1 || quantities.empty())
    text = std::to_string(factor);
  for (LaunchQuantity quantity : quantities)
    text += (text.empty() ? "" : " * ") + std::string(quantityName(quantity));
  return text;
}

std::string Comparison::print() const {
  return lhs.print() + " " +
         std::string(kComparisons[static_cast<size_t>(kind)]) + " " +
         rhs.print();
}

std::string LaunchCondition::print() const {
  std::string text;
  for (const Comparison &comparison : comparisons)
    text += (text.empty() ? "" : " and ") + comparison.print();
  return text;
}

std::string VariantRule::print() const {
  std::string text;
  for (const Case &entry : all) {
    std::string condition = entry.condition.print();
    text += (text.empty() ? "" : "; ") + condition +
            (condition.empty() ? "" : " -> ") + std::to_string(entry.variant);
  }
  return text;
}

std::string VariantRule::explain(const LaunchQuantities &values) const {
  if (all.size() == 1)
    return "";
  const LaunchCondition &chosen = findCase(values).condition;
  bool isDefault = chosen.comparisons.empty();
  std::string text = isDefault ? "no condition holds" : chosen.print();
  std::string_view separator = ", with ";
  for (size_t i = 0; i < kNumLaunchQuantities; ++i) {
    auto quantity = static_cast<LaunchQuantity>(i);
    if (!(isDefault ? names(quantity) : chosen.names(quantity)))
      continue;
    text += std::string(separator) + std::string(quantityName(quantity)) +
            " = " + std::to_string(values[i]);
    separator = ", ";
  }
  return text;
}

std::string VariantRule::findFault(size_t numVariants) const {
  std::vector<bool> isNamed(numVariants, false);
  for (const Case &entry : all) {
    if (entry.variant < 0 || entry.variant >= static_cast<int64_t>(numVariants))
      return "names variant " + std::to_string(entry.variant) + " of " +
             std::to_string(numVariants);
    isNamed[entry.variant] = true;
  }
  for (size_t i = 0; i < numVariants; ++i)
    if (!isNamed[i])
      return "never takes variant " + std::to_string(i) + " of " +
             std::to_string(numVariants);
  return "";
}

//===----------------------------------------------------------------------===//
// From text
//===----------------------------------------------------------------------===//

static bool isBlank(char c) { return c == ' ' || c == '\n' || c == '\t'; }

static std::string_view trim(std::string_view text) {
  while (!text.empty() && isBlank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back()))
    text.remove_suffix(1);
  return text;
}

// The parts of `text` between `separator`s, trimmed.
static std::vector<std::string_view> split(std::string_view text,
                                           std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos)
      return parts;
    text.remove_prefix(end + separator.size());
  }
}

static std::string quote(std::string_view text) {
  return "'" + std::string(text) + "'";
}

static std::optional<int64_t> parseNumber(std::string_view text) {
  int64_t value = 0;
  for (char c : text)
    if (c < '0' || c > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, c - '0', &value))
      return std::nullopt;
  return text.empty() ? std::nullopt : std::optional(value);
}

static bool parseFactor(std::string_view text, QuantityProduct &product,
                        std::string &error) {
  auto found = std::find(std::begin(kQuantities), std::end(kQuantities), text);
  if (found != std::end(kQuantities)) {
    product.quantities.push_back(
        static_cast<LaunchQuantity>(found - std::begin(kQuantities)));
    return true;
  }
  std::optional<int64_t> number = parseNumber(text);
  if (number &&
      !__builtin_mul_overflow(product.factor, *number, &product.factor))
    return true;
  error = "got " + quote(text) +
          ", wanted a number of 64 bits, query_length, key_length, "
          "batch_heads, batch_key_heads or multiprocessors";
  return false;
}

static bool parseProduct(std::string_view text, QuantityProduct &product,
                         std::string &error) {
  for (std::string_view factor : split(text, "*"))
    if (!parseFactor(factor, product, error))
      return false;
  return true;
}

static bool parseComparison(std::string_view text, Comparison &comparison,
                            std::string &error) {
  size_t begin = text.find_first_of("<>=");
  size_t end = text.find_first_not_of("<>=", begin);
  auto found = std::find(std::begin(kComparisons), std::end(kComparisons),
                         begin < end && end < text.size()
                             ? text.substr(begin, end - begin)
                             : std::string_view());
  if (found == std::end(kComparisons)) {
    error = "got " + quote(text) +
            ", wanted a comparison by <, <=, ==, >= or >, such as "
            "query_length <= 1024";
    return false;
  }
  comparison.kind =
      static_cast<Comparison::Kind>(found - std::begin(kComparisons));
  if (!parseProduct(text.substr(0, begin), comparison.lhs, error) ||
      !parseProduct(text.substr(end), comparison.rhs, error))
    return false;
  if (!comparison.lhs.quantities.empty() || !comparison.rhs.quantities.empty())
    return true;
  error = quote(text) + " compares no quantity of a launch";
  return false;
}

std::optional<std::vector<RuleCaseText>>
attn::parseRuleCases(std::string_view text, std::string &error) {
  constexpr std::string_view kArrow = "->", kAnd = " and ";
  std::vector<std::string_view> parts = split(text, ";");
  std::vector<RuleCaseText> cases;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string where = "case " + std::to_string(i) + " ";
    std::vector<std::string_view> sides = split(parts[i], kArrow);
    bool isLast = i + 1 == parts.size();
    if (sides.size() > 2 || sides.back().empty()) {
      error = where + "is " + quote(parts[i]) +
              ", wanted a condition, -> and a variant";
      return std::nullopt;
    }
    if (isLast != (sides.size() == 1)) {
      error = where + (isLast ? "is the last one and has a condition, wanted a "
                                "variant for all other sizes"
                              : "has no condition, but others come after it");
      return std::nullopt;
    }
    RuleCaseText &entry = cases.emplace_back();
    entry.variant = sides.back();
    if (isLast)
      break;
    for (std::string_view comparison : split(sides.front(), kAnd))
      if (!parseComparison(comparison,
                           entry.condition.comparisons.emplace_back(), error)) {
        error = where + "of the rule: " + error;
        return std::nullopt;
      }
  }
  return cases;
}

std::optional<VariantRule> VariantRule::parse(std::string_view text,
                                              std::string &error) {
  std::optional<std::vector<RuleCaseText>> parsed = parseRuleCases(text, error);
  if (!parsed)
    return std::nullopt;
  std::vector<Case> cases;
  for (RuleCaseText &entry : *parsed) {
    std::optional<int64_t> variant = parseNumber(entry.variant);
    if (!variant) {
      error =
          "got " + quote(entry.variant) + ", wanted the number of a variant";
      return std::nullopt;
    }
    cases.push_back({std::move(entry.condition), *variant});
  }
  return VariantRule(std::move(cases));
}
