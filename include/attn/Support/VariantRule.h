//===- VariantRule.h - which variant of a kernel a launch takes -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rule is a list of cases, tried in order; the last one has no condition:
//
//   query_length <= 1024 -> 0; 1
//
//   rule       ::= case (`;` case)*
//   case       ::= (condition `->`)? variant
//   condition  ::= comparison (`and` comparison)*
//   comparison ::= product (`<` | `<=` | `==` | `>=` | `>`) product
//   product    ::= factor (`*` factor)*
//   factor     ::= integer | quantity
//
// Plain data, no MLIR and no LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_VARIANTRULE_H
#define ATTN_SUPPORT_VARIANTRULE_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// What is known of a launch before it.
enum class LaunchQuantity {
  QueryLength,
  KeyLength,
  BatchHeads, // batch times heads of the queries
  Multiprocessors,
  BatchKeyHeads // batch times heads of the keys
};
inline constexpr size_t kNumLaunchQuantities = 5;

/// "query_length", …
std::string_view quantityName(LaunchQuantity quantity);

/// Their values, none below 0, in the order of the enumeration.
using LaunchQuantities = std::array<int64_t, kNumLaunchQuantities>;

/// A number times quantities. A value that 64 bits do not hold is the largest
/// that they do.
struct QuantityProduct {
  int64_t factor = 1;
  std::vector<LaunchQuantity> quantities;

  int64_t evaluate(const LaunchQuantities &values) const;
  std::string print() const;
};

struct QuantityComparison {
  enum class Kind { Less, LessEqual, Equal, GreaterEqual, Greater };
  QuantityProduct lhs, rhs;
  Kind kind = Kind::LessEqual;

  bool holds(const LaunchQuantities &values) const;
  std::string print() const;
};

/// Comparisons that all hold; none: always.
struct LaunchCondition {
  std::vector<QuantityComparison> comparisons;

  bool holds(const LaunchQuantities &values) const;
  bool names(LaunchQuantity quantity) const;
  /// "query_length <= 1024 and batch_heads == 1"; empty for always.
  std::string print() const;
};

/// A case of a rule, with the text that names its variant.
struct RuleCaseText {
  LaunchCondition condition;
  std::string_view variant;
};

/// The cases of a rule whose variants are called as one likes, but without `;`
/// and `->`. Only the last one has no condition. On failure nothing, and
/// `error` says what is wrong.
std::optional<std::vector<RuleCaseText>> parseRuleCases(std::string_view text,
                                                        std::string &error);

/// A rule over the numbers of variants.
class VariantRule {
public:
  struct Case {
    LaunchCondition condition;
    int64_t variant = 0;
  };

  /// One variant, always.
  explicit VariantRule(int64_t variant = 0) : all({Case{{}, variant}}) {}
  /// The last case has no condition, the others have one.
  explicit VariantRule(std::vector<Case> cases) : all(std::move(cases)) {}
  static std::optional<VariantRule> parse(std::string_view text,
                                          std::string &error);
  std::string print() const;

  const std::vector<Case> &cases() const { return all; }
  bool names(LaunchQuantity quantity) const;
  /// The variant of the first case that holds.
  size_t choose(const LaunchQuantities &values) const {
    return static_cast<size_t>(findCase(values).variant);
  }
  /// Why that one: "query_length <= 1024, with query_length = 512"; "no
  /// condition holds, with query_length = 4096"; empty where there is one case.
  std::string explain(const LaunchQuantities &values) const;
  /// Why it cannot be meant for so many variants: one that is not there, or one
  /// that no case names; empty if it can.
  std::string findFault(size_t numVariants) const;

  bool operator==(const VariantRule &other) const {
    return print() == other.print();
  }

private:
  const Case &findCase(const LaunchQuantities &values) const;

  std::vector<Case> all;
};

} // namespace attn

#endif // ATTN_SUPPORT_VARIANTRULE_H
