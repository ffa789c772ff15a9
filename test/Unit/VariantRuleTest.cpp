//===- VariantRuleTest.cpp - which variant of a kernel a launch takes -----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Support/VariantRule.h"

#include "gtest/gtest.h"

#include <limits>

using namespace attn;

static VariantRule parsed(std::string_view text) {
  std::string error;
  std::optional<VariantRule> rule = VariantRule::parse(text, error);
  EXPECT_TRUE(rule.has_value()) << text << ": " << error;
  return rule.value_or(VariantRule());
}

static std::string parseError(std::string_view text) {
  std::string error;
  EXPECT_FALSE(VariantRule::parse(text, error).has_value()) << text;
  return error;
}

// Of query_length, key_length, batch_heads and multiprocessors.
static size_t choose(std::string_view text, LaunchQuantities values) {
  return parsed(text).choose(values);
}

TEST(VariantRule, PrintsWhatItParses) {
  for (const char *text :
       {"0", "query_length <= 1024 -> 0; 1",
        "query_length < 2 -> 2; key_length >= 65536 and batch_heads == 1 -> 0; "
        "1",
        "batch_heads * query_length > 256 * multiprocessors -> 1; 0",
        "0 < key_length -> 0; 1"})
    EXPECT_EQ(parsed(text).print(), text);
  // Numbers of a product are one, blanks do not count.
  EXPECT_EQ(parsed(" 2*query_length * 64<=multiprocessors*1->0 ;\n 1").print(),
            "128 * query_length <= multiprocessors -> 0; 1");
}

TEST(VariantRule, TakesTheFirstCaseThatHolds) {
  const char *rule = "query_length < 16 -> 2; query_length <= 1024 and "
                     "key_length > 4096 -> 0; 1";
  EXPECT_EQ(choose(rule, {15, 8192, 1, 132}), 2u);
  EXPECT_EQ(choose(rule, {16, 8192, 1, 132}), 0u);
  EXPECT_EQ(choose(rule, {1024, 8192, 1, 132}), 0u);
  EXPECT_EQ(choose(rule, {1025, 8192, 1, 132}), 1u);
  EXPECT_EQ(choose(rule, {1024, 4096, 1, 132}), 1u);
  EXPECT_EQ(choose("1", {0, 0, 0, 1}), 1u);
}

TEST(VariantRule, ComparesInEachWay) {
  auto holds = [](const char *comparison, int64_t queries) {
    return choose(std::string(comparison) + " -> 0; 1", {queries, 8, 8, 8}) ==
           0;
  };
  for (int64_t queries : {7, 8, 9}) {
    EXPECT_EQ(holds("query_length < 8", queries), queries < 8);
    EXPECT_EQ(holds("query_length <= 8", queries), queries <= 8);
    EXPECT_EQ(holds("query_length == 8", queries), queries == 8);
    EXPECT_EQ(holds("query_length >= 8", queries), queries >= 8);
    EXPECT_EQ(holds("query_length > 8", queries), queries > 8);
  }
}

TEST(VariantRule, MultipliesQuantities) {
  const char *rule =
      "batch_heads * query_length <= 128 * multiprocessors -> 0; 1";
  EXPECT_EQ(choose(rule, {128, 1, 132, 132}), 0u);
  EXPECT_EQ(choose(rule, {129, 1, 132, 132}), 1u);
  // Of products that 64 bits do not hold none is smaller.
  int64_t large = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(choose(rule, {large, 1, large, 132}), 1u);
  EXPECT_EQ(choose(rule, {large, 1, 0, 132}), 0u);
  EXPECT_EQ(choose("query_length * key_length * batch_heads == 0 -> 0; 1",
                   {large, large, 0, 132}),
            0u);
}

TEST(VariantRule, SaysWhy) {
  VariantRule rule = parsed("query_length <= 1024 -> 0; key_length * "
                            "batch_heads < 7 -> 2; 1");
  EXPECT_EQ(rule.explain({512, 9, 1, 132}),
            "query_length <= 1024, with query_length = 512");
  EXPECT_EQ(rule.explain({2000, 3, 2, 132}),
            "key_length * batch_heads < 7, with key_length = 3, batch_heads = "
            "2");
  EXPECT_EQ(rule.explain({2000, 3, 4, 132}),
            "no condition holds, with query_length = 2000, key_length = 3, "
            "batch_heads = 4");
  EXPECT_EQ(parsed("3").explain({1, 1, 1, 1}), "");
}

TEST(VariantRule, NamesVariantsThatAreThere) {
  VariantRule rule = parsed("query_length <= 1024 -> 0; 2");
  EXPECT_EQ(rule.findFault(3), "never takes variant 1 of 3");
  EXPECT_EQ(rule.findFault(2), "names variant 2 of 2");
  EXPECT_EQ(parsed("query_length <= 1024 -> 0; 1").findFault(2), "");
  EXPECT_EQ(VariantRule().findFault(1), "");
  EXPECT_EQ(VariantRule().findFault(0), "names variant 0 of 0");
}

TEST(VariantRule, MalformedOnesAreRefused) {
  EXPECT_EQ(parseError(""),
            "case 0 is '', wanted a condition, -> and a variant");
  EXPECT_EQ(parseError("query_length <= 8 -> 0;"),
            "case 1 is '', wanted a condition, -> and a variant");
  EXPECT_EQ(parseError("query_length <= 8 -> 0 -> 1; 1"),
            "case 0 is 'query_length <= 8 -> 0 -> 1', wanted a condition, -> "
            "and a variant");
  EXPECT_EQ(parseError("query_length <= 8 -> 0"),
            "case 0 is the last one and has a condition, wanted a variant for "
            "all other sizes");
  EXPECT_EQ(parseError("0; 1"),
            "case 0 has no condition, but others come after it");
  EXPECT_EQ(parseError("-> 0; 1"),
            "case 0 of the rule: got '', wanted a comparison by <, <=, ==, >= "
            "or >, such as query_length <= 1024");
  for (const char *text : {"query_length", "query_length <=",
                           "query_length = 8", "query_length <> 8"})
    EXPECT_EQ(parseError(std::string(text) + " -> 0; 1"),
              "case 0 of the rule: got '" + std::string(text) +
                  "', wanted a comparison by <, <=, ==, >= or >, such as "
                  "query_length <= 1024");
  for (const char *factor :
       {"length", "-1", "1.5", "", "8 9", "3 < 4", "9223372036854775808"})
    EXPECT_EQ(
        parseError("query_length <= " + std::string(factor) + " * 2 -> 0; 1"),
        "case 0 of the rule: got '" + std::string(factor) +
            "', wanted a number of 64 bits, query_length, key_length, "
            "batch_heads, batch_key_heads or multiprocessors");
  EXPECT_EQ(parseError("query_length <= 8 and 1 < 2 -> 0; 1"),
            "case 0 of the rule: '1 < 2' compares no quantity of a launch");
  for (const char *variant : {"-1", "x", "1.5", "1 2"})
    EXPECT_EQ(parseError(variant), "got '" + std::string(variant) +
                                       "', wanted the number of a variant");
}
