//===- ErrorRuleTest.cpp - the error rule ---------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Host/ErrorRule.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace attn;

static const RunResult float64{{1, 2, 3, 4}, {0.5, 1.5}};
static const RunResult unfused{{1.01, 2, 3, 4}, {0.5, 1.5}};

static std::string failureOf(const RunResult &result,
                             const RunResult &reference = float64,
                             const RunResult &plain = unfused) {
  return checkErrorRule(result, reference, plain).failure;
}

TEST(ErrorRule, TwiceTheUnfusedErrorIsTheBound) {
  EXPECT_EQ(failureOf({{1.02, 2, 3, 4}, {0.5, 1.5}}), "");
  EXPECT_EQ(failureOf({{1, 2, 3, 3.98}, {0.5, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, 3, 3.97}, {0.5, 1.5}}).find("at element 3"),
            std::string::npos);
  ErrorReport report = checkErrorRule(float64, float64, float64);
  EXPECT_TRUE(report.passes());
  EXPECT_EQ(report.bound, 1e-5);
}

TEST(ErrorRule, LseIsAbsolute) {
  EXPECT_EQ(failureOf({{1, 2, 3, 4}, {0.50009, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {0.5, 1.5002}}).find("error of lse"),
            std::string::npos);
}

TEST(ErrorRule, LseMayMissWhatScoresLose) {
  RunResult result{{1, 2, 3, 4}, {0.5, 1.5002}};
  ErrorReport report = checkErrorRule(result, float64, unfused, 2e-4);
  EXPECT_EQ(report.failure, "");
  EXPECT_DOUBLE_EQ(report.lseBound, 3e-4);
  EXPECT_NE(checkErrorRule(result, float64, unfused, 5e-5).failure, "");
}

TEST(ErrorRule, LargeLseIsNoFinerThanF32) {
  RunResult large{{1, 2, 3, 4}, {511, 2048}};
  EXPECT_EQ(failureOf({{1, 2, 3, 4}, {511, 2048.0005}}, large, large), "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {511.0005, 2048}}, large, large)
                .find("at row 0"),
            std::string::npos);
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {511, 2048.001}}, large, large), "");
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

TEST(ErrorRule, EmptyRowsAreExact) {
  RunResult empty{{0, 0, 3, 4}, {-INFINITY, 1.5}};
  ErrorReport report = checkErrorRule(empty, empty, empty);
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

TEST(ErrorRule, SizesMustAgree) {
  EXPECT_NE(failureOf({{1, 2}, {0.5, 1.5}}), "");
  EXPECT_NE(failureOf({{1, 2, 3, 4}, {}}), "");
}
