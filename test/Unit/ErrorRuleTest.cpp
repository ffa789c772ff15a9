//===- ErrorRuleTest.cpp - the error rule ---------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Check/ErrorRule.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace attn;

static const RunResult float64{{1, 2, 3, 4}, {0.5, 1.5}};
static const RunResult unfused{{1.01, 2, 3, 4}, {0.5, 1.5}};

static std::string failureOf(const RunResult &result,
                             const RunResult &reference = float64,
                             const RunResult &plain = unfused) {
  return checkErrorRule(result, reference, plain, ErrorTerms()).failure;
}

TEST(ErrorRule, TwiceTheUnfusedErrorIsTheBound) {
  EXPECT_EQ(failureOf({{1.02, 2, 3, 4}, {0.5, 1.5}}), "");
  EXPECT_EQ(failureOf({{1, 2, 3, 3.98}, {0.5, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, 3, 3.97}, {0.5, 1.5}}).find("at element 3"),
            std::string::npos);
  ErrorReport report = checkErrorRule(float64, float64, float64, ErrorTerms());
  EXPECT_TRUE(report.passes());
  // The unfused evaluation is exact: one unit of f32 at 4 is what remains.
  EXPECT_EQ(report.bound, 1e-5 + 0x1p-21);
}

TEST(ErrorRule, LseIsAbsolute) {
  EXPECT_EQ(failureOf({{1, 2, 3, 4}, {0.50009, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {0.5, 1.5002}}).find("error of lse"),
            std::string::npos);
}

TEST(ErrorRule, LseMayMissWhatScoresLose) {
  RunResult result{{1, 2, 3, 4}, {0.5, 1.5002}};
  ErrorTerms terms;
  terms.scoreLoss = terms.cutOff = 1e-4;
  ErrorReport report = checkErrorRule(result, float64, unfused, terms);
  EXPECT_EQ(report.failure, "");
  EXPECT_DOUBLE_EQ(report.lseBound, 3e-4 + 0x1p-23);
  terms.scoreLoss = terms.cutOff = 2.5e-5;
  EXPECT_NE(checkErrorRule(result, float64, unfused, terms).failure, "");
}

TEST(ErrorRule, TwiceTheRmseWhereTensorCoresCutOffMuch) {
  // Half of the elements are off by 0.0625, of t0 by 0.05.
  RunResult exact, got, plain;
  for (int i = 0; i < 4096; ++i) {
    exact.o.push_back(1);
    got.o.push_back(1 + 0.0625 * (i % 2));
    plain.o.push_back(1 + 0.05 * (i % 2));
  }
  ErrorTerms terms;
  terms.element = ElementKind::F16;
  terms.cutOff = 0x1p-11;
  EXPECT_NE(checkErrorRule(got, exact, plain, terms).failure, "");
  terms.cutOff = 0x1.1p-11;
  EXPECT_EQ(checkErrorRule(got, exact, plain, terms).failure, "");
  terms.element = ElementKind::BF16;
  EXPECT_NE(checkErrorRule(got, exact, plain, terms).failure, "");
}

TEST(ErrorRule, LseMayMissTwiceWhatTheScoreFunctionLoses) {
  EXPECT_EQ(measureScoreLoss(float64, float64), 0);
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(measureScoreLoss({{}, {1, 8, -infinity, 3}},
                             {{}, {1.25, 7.5, -infinity, infinity}}),
            1);
}

TEST(ErrorRule, LargeLseIsNoFinerThanF32) {
  // One unit in the last place of f32 is 2^-15 from 256 on, 2^-12 from 2048.
  RunResult large{{1, 2, 3, 4}, {511, 2048}};
  EXPECT_EQ(failureOf({{1, 2, 3, 4}, {511.00012, 2048.0003}}, large, large),
            "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {511.00015, 2048}}, large, large)
                .find("at row 0"),
            std::string::npos);
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {511, 2048.0004}}, large, large), "");
  RunResult lowest{{1, 2, 3, 4}, {-0x1p127, 1.5}};
  EXPECT_EQ(failureOf({{1, 2, 3, 4}, {-0x1.000001p127, 1.5}}, lowest, lowest),
            "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {-0x1.000004p127, 1.5}}, lowest, lowest),
            "");
}

TEST(ErrorRule, PoisonIsAnError) {
  EXPECT_NE(failureOf({{1, NAN, 3, 4}, {0.5, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {NAN, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, INFINITY, 4}, {0.5, 1.5}}), "");
}

TEST(ErrorRule, NaNAndInfinityMustBeMet) {
  RunResult special{{NAN, INFINITY, 3, 4}, {NAN, 1.5}};
  EXPECT_EQ(failureOf(special, special, special), "");
  EXPECT_NE(failureOf({{0, INFINITY, 3, 4}, {NAN, 1.5}}, special, special), "");
  EXPECT_NE(failureOf({{NAN, -INFINITY, 3, 4}, {NAN, 1.5}}, special, special),
            "");
}

// (C16) of attn.attention_backward.
TEST(ErrorRule, Gradients) {
  auto run = [](std::vector<double> query, std::vector<double> key) {
    RunResult result;
    result.gradients = {
        {"d_q", ArgumentRole::QueryGradient, ElementKind::F16,
         std::move(query)},
        {"d_k", ArgumentRole::KeyGradient, ElementKind::F16, std::move(key)}};
    return result;
  };
  RunResult exact = run({0, 0, 1, 2}, {1, -4});
  RunResult unfused = run({0, 0, 1.01, 2}, {1, -4});
  ErrorTerms terms;
  terms.element = ElementKind::F16;
  terms.lse = {-INFINITY, 0.5};
  auto check = [&](const RunResult &result) {
    return checkErrorRule(result, exact, unfused, terms);
  };
  ErrorReport report = check(run({0, 0, 1.03, 2}, {1, -4}));
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.emptyRows, 1);
  ASSERT_EQ(report.gradients.size(), 2u);
  EXPECT_EQ(report.gradients[1].name, "d_k");
  EXPECT_NEAR(report.gradients[0].bound, 0.03 + 1e-4, 1e-9);
  EXPECT_NEAR(report.gradients[0].error, 0.03, 1e-9);
  // The unfused evaluation is right by chance: one unit at 4.
  EXPECT_EQ(report.gradients[1].bound, 0x1p-8 + 1e-4);
  EXPECT_TRUE(check(run({0, 0, 1, 2}, {1, -4 + 0x1p-8})).passes());
  EXPECT_NE(check(run({0, 0, 1.031, 2}, {1, -4})).failure.find("error of d_q"),
            std::string::npos);
  EXPECT_NE(check(run({0, 0, 1, 2}, {1, -3.995})).failure.find("error of d_k"),
            std::string::npos);
  EXPECT_EQ(check(run({0, 1e-9, 1, 2}, {1, -4})).failure,
            "row 0 has no visible key: d_q must be 0");
  EXPECT_FALSE(check(run({0, 0, NAN, 2}, {1, -4})).passes());
  EXPECT_EQ(check(run({0, 0, 1, 2}, {1})).failure, "d_k has different sizes");
  EXPECT_EQ(check(RunResult()).failure, "results of different sizes");
  // An input type coarser than the gradient's says what one unit is.
  terms.element = ElementKind::BF16;
  EXPECT_EQ(check(exact).gradients[1].bound, 0x1p-5 + 1e-4);
}

// (C16) of attn.attention_backward.
TEST(ErrorRule, CapturesAndSinksMayBeJudgedFromTheSavedOutput) {
  auto run = [](ArgumentRole role, std::vector<double> values) {
    RunResult result;
    result.gradients = {{"d_c0", role, ElementKind::F32, std::move(values)}};
    return result;
  };
  constexpr auto capture = ArgumentRole::CaptureGradient;
  // The rounding of output moves element 0 by 0.05; of g0 others offset it.
  RunResult exact = run(capture, {1, 2}), saved = run(capture, {1.05, 2});
  RunResult unfused = run(capture, {1.01, 2});
  ErrorTerms terms;
  terms.element = ElementKind::F16;
  auto check = [&](const RunResult &result, const RunResult *saved) {
    return checkErrorRule(result, exact, unfused, terms, saved);
  };
  ErrorReport report = check(saved, nullptr);
  EXPECT_FALSE(report.passes());
  EXPECT_TRUE(report.missesSum);
  report = check(saved, &saved);
  EXPECT_EQ(report.failure, "");
  EXPECT_TRUE(report.gradients[0].isFromSaved);
  EXPECT_NEAR(report.gradients[0].bound, 0.03 + 1e-4, 1e-9);
  EXPECT_EQ(report.gradients[0].error, 0);
  EXPECT_FALSE(check(run(capture, {1.05, 2.031}), &saved).passes());
  EXPECT_FALSE(check(run(capture, {NAN, 2}), &saved).passes());
  // Only where r does not do.
  report = check(run(capture, {1.02, 2}), &saved);
  EXPECT_FALSE(report.missesSum || report.gradients[0].isFromSaved);
  // A sink's is a sum of deltas, too.
  exact = run(ArgumentRole::SinkGradient, {1, 2});
  RunResult sink = run(ArgumentRole::SinkGradient, {1.05, 2});
  EXPECT_FALSE(check(sink, nullptr).passes());
  EXPECT_TRUE(check(sink, &sink).passes());
  EXPECT_FALSE(
      check(run(ArgumentRole::SinkGradient, {1.09, 2}), &sink).passes());
  // Other gradients keep their r.
  exact = run(ArgumentRole::KeyGradient, {1, 2});
  RunResult key = run(ArgumentRole::KeyGradient, {1.05, 2});
  report = check(key, &key);
  EXPECT_FALSE(report.passes() || report.missesSum);
  EXPECT_EQ(check(key, &float64).failure, "results of different sizes");
}

TEST(ErrorRule, EmptyRowsAreExact) {
  RunResult empty{{0, 0, 3, 4}, {-INFINITY, 1.5}};
  ErrorReport report = checkErrorRule(empty, empty, empty, ErrorTerms());
  EXPECT_TRUE(report.passes());
  EXPECT_EQ(report.emptyRows, 1);
  EXPECT_NE(failureOf({{0, 1e-9, 3, 4}, {-INFINITY, 1.5}}, empty, empty)
                .find("row 0 has no visible key"),
            std::string::npos);
  EXPECT_NE(failureOf({{0, 0, 3, 4}, {-1e30, 1.5}}, empty, empty), "");
}

TEST(ErrorRule, RmseIsJudgedOnManyElements) {
  auto make = [](size_t size, double error) {
    RunResult result{std::vector<double>(size, 1), {}};
    for (size_t i = 0; i < size; i += 2)
      result.o[i] += error;
    return result;
  };
  // Within the bound of the largest error, but worse on average.
  EXPECT_EQ(failureOf(make(4094, 0.015), make(4094, 0), make(4094, 0.01)), "");
  EXPECT_NE(failureOf(make(4096, 0.015), make(4096, 0), make(4096, 0.01))
                .find("rmse"),
            std::string::npos);
}

TEST(ErrorRule, OneUnitOfTheTypeIsAllowed) {
  // The unfused evaluation is exact: a row in which one key has all the weight.
  auto judge = [](ElementKind element, double error) {
    ErrorTerms terms;
    terms.element = element;
    RunResult exact{{1, -3}, {0.5}};
    return checkErrorRule({{1, -3 + error}, {0.5}}, exact, exact, terms)
        .passes();
  };
  EXPECT_TRUE(judge(ElementKind::BF16, 0x1p-6));
  EXPECT_FALSE(judge(ElementKind::BF16, 0x1.01p-6));
  EXPECT_TRUE(judge(ElementKind::F16, 0x1p-9));
  EXPECT_FALSE(judge(ElementKind::F16, 0x1.1p-9));
  EXPECT_FALSE(judge(ElementKind::F32, 0x1p-9));
}

TEST(ErrorRule, RmseOfRoundingIsAllowed) {
  // Values that bf16 rounds by 2^-9; the unfused evaluation happens to be
  // exact.
  RunResult exact{std::vector<double>(4096, 1 + 0x1p-9), {}};
  ErrorTerms terms;
  terms.element = ElementKind::BF16;
  auto judge = [&](double error) {
    RunResult result = exact;
    for (double &value : result.o)
      value += error;
    return checkErrorRule(result, exact, exact, terms).failure;
  };
  EXPECT_EQ(judge(-0x1p-9), "");
  EXPECT_NE(judge(-0x1.1p-9).find("rmse"), std::string::npos);
  terms.element = ElementKind::F32;
  EXPECT_NE(judge(0x1p-20).find("rmse"), std::string::npos);
}

TEST(ErrorRule, SplitProductsMayLoseTwice) {
  RunResult exact{std::vector<double>(4096, 1), {}};
  RunResult unfused{std::vector<double>(4096, 1 + 1e-6), {}};
  ErrorTerms terms;
  terms.largestValue = 4; // 2^-20, about 9.5e-7
  auto judge = [&](double error, bool isSplit) {
    terms.isSplit = isSplit;
    RunResult result{std::vector<double>(4096, 1 + error), {}};
    return checkErrorRule(result, exact, unfused, terms).failure;
  };
  EXPECT_EQ(judge(0.99e-6, false), "");
  EXPECT_NE(judge(1.002e-6, false).find("rmse"), std::string::npos);
  EXPECT_EQ(judge(2.9e-6, true), "");
  EXPECT_NE(judge(3e-6, true).find("rmse"), std::string::npos);
}

TEST(ErrorRule, SizesMustAgree) {
  EXPECT_NE(failureOf({{1, 2}, {0.5, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {}}), "");
}
