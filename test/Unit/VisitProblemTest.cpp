//===- VisitProblemTest.cpp - the algebra of visit sets -------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sets of small problems, without IR: blocks of 128 rows and 64 keys; R is the
// first row, of any sign unless said otherwise.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/VisitSet.h"
#include <gtest/gtest.h>

using namespace attn::tile;

namespace {

LinearForm constant(int64_t value) { return LinearForm::number(value); }

class VisitProblemTest : public ::testing::Test {
protected:
  VisitProblemTest() : problem(128, 64) {
    firstRow = LinearForm::variable(problem.addSymbol());
    numBlocks = LinearForm::variable(problem.addSymbol());
    problem.upperBound = numBlocks;
  }

  /// a <= b
  static Formula atMost(const LinearForm &a, const LinearForm &b) {
    return Formula::atLeastZero(b - a);
  }

  VisitSet compute(Formula mask) {
    problem.mask = std::move(mask);
    return computeVisitSet(problem);
  }

  static void expectOnly(const BlockInterval &interval,
                         const LinearForm &constraint) {
    ASSERT_EQ(interval.constraints.size(), 1u);
    EXPECT_TRUE(interval.constraints.front() == constraint);
  }

  VisitProblem problem;
  LinearForm firstRow, numBlocks;
  LinearForm block = LinearForm::variable(VisitProblem::block);
  LinearForm row = LinearForm::variable(VisitProblem::row);
  LinearForm key = LinearForm::variable(VisitProblem::column);
};

// The example of the header.
TEST_F(VisitProblemTest, Causal) {
  VisitSet set = compute(atMost(key, row + firstRow));
  ASSERT_EQ(set.visited.size(), 1u);
  expectOnly(set.visited.front(), firstRow + constant(127) - block * 64);
  ASSERT_EQ(set.masked.size(), 1u);
  expectOnly(set.masked.front(), block * 64 - firstRow + constant(62));
  EXPECT_FALSE(set.isFirstBlockSeen);
}

// Where no row is negative key 0 is seen by all.
TEST_F(VisitProblemTest, FactsDecideWhetherTheFirstBlockIsSeen) {
  problem.addFact(firstRow);
  EXPECT_TRUE(compute(atMost(key, row + firstRow)).isFirstBlockSeen);
  EXPECT_FALSE(
      compute(atMost(key + constant(1), row + firstRow)).isFirstBlockSeen);
}

TEST_F(VisitProblemTest, TrueAndFalse) {
  VisitSet all = compute(Formula::constant(true));
  ASSERT_EQ(all.visited.size(), 1u);
  EXPECT_TRUE(all.visited.front().constraints.empty());
  EXPECT_TRUE(all.masked.empty());
  EXPECT_TRUE(compute(Formula::constant(false)).visited.empty());
}

// The two sides of |i - j| <= 5 touch: one interval.
TEST_F(VisitProblemTest, TouchingIntervalsBecomeOne) {
  LinearForm distance = row + firstRow - key;
  Formula right = Formula::all(
      {atMost(constant(0), distance), atMost(distance, constant(5))});
  Formula left = Formula::all(
      {atMost(distance, constant(-1)), atMost(constant(-5), distance)});
  VisitSet set = compute(Formula::any({right, left}));
  ASSERT_EQ(set.visited.size(), 1u);
  EXPECT_EQ(set.visited.front().lowerBounds().size(), 1u);
  EXPECT_EQ(set.visited.front().upperBounds().size(), 1u);
}

// Bands that need not touch stay two.
TEST_F(VisitProblemTest, FarIntervalsStayApart) {
  LinearForm other = LinearForm::variable(problem.addSymbol());
  auto band = [&](const LinearForm &first) {
    return Formula::all({atMost(first, key), atMost(key, first + constant(9))});
  };
  EXPECT_EQ(compute(Formula::any({band(firstRow), band(other)})).visited.size(),
            2u);
}

// Many intervals are joined until there are few; none is lost.
TEST_F(VisitProblemTest, TooManyIntervalsAreJoined) {
  std::vector<Formula> bands;
  for (int number = 0; number < 7; ++number) {
    LinearForm first = LinearForm::variable(problem.addSymbol());
    bands.push_back(
        Formula::all({atMost(first, key), atMost(key, first + constant(9))}));
  }
  problem.mask = Formula::any(bands);
  VisitSet set = computeVisitSet(problem, /*maxIntervals=*/4);
  EXPECT_LE(set.visited.size(), 4u);
  EXPECT_FALSE(set.visited.empty());
}

// What is not known may show and hide anything, also when negated.
TEST_F(VisitProblemTest, UnknownLeaves) {
  EXPECT_TRUE(Formula::unknown().hasUnknown());
  EXPECT_TRUE(Formula::unknown().negated().hasUnknown());
  Formula causal = atMost(key, row + firstRow);
  EXPECT_FALSE(causal.hasUnknown());
  VisitSet set = compute(Formula::all({causal, Formula::unknown().negated()}));
  ASSERT_EQ(set.visited.size(), 1u);
  expectOnly(set.visited.front(), firstRow + constant(127) - block * 64);
  ASSERT_EQ(set.masked.size(), 1u);
  EXPECT_TRUE(set.masked.front().constraints.empty());
  // Full where the other part holds anyway.
  set = compute(Formula::any({causal, Formula::unknown()}));
  ASSERT_EQ(set.masked.size(), 1u);
  expectOnly(set.masked.front(), block * 64 - firstRow + constant(62));
}

// floor(j / 64) of the keys of block n is n.
TEST_F(VisitProblemTest, QuotientsOfKeys) {
  LinearForm chunk = LinearForm::variable(problem.addQuotient(key, 64));
  EXPECT_EQ(problem.addQuotient(key, 64), chunk.terms.front().first);
  VisitSet set = compute(atMost(chunk, constant(3)));
  ASSERT_EQ(set.visited.size(), 1u);
  expectOnly(set.visited.front(), constant(3) - block);
  EXPECT_TRUE(set.masked.empty());
}

// Without any effort left nothing is wrong, only less is known.
TEST_F(VisitProblemTest, EffortIsBounded) {
  problem.effort = 0;
  VisitSet set = compute(atMost(key, row + firstRow));
  EXPECT_FALSE(set.visited.empty());
  EXPECT_FALSE(set.masked.empty());
  EXPECT_FALSE(set.isFirstBlockSeen);
}

} // namespace
