//===- BudgetTest.cpp - bytes and registers of plans ----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Budget.h"

#include "gtest/gtest.h"

using namespace attn;
using namespace attn::plan;

static const TargetInfo &sm80() { return *findTarget("sm_80"); }

TEST(Budget, headDimsArePadded) {
  EXPECT_EQ(padHeadDim(8), 16);
  EXPECT_EQ(padHeadDim(40), 48);
  EXPECT_EQ(padHeadDim(64), 64);
}

TEST(Budget, sharedBytesAreExact) {
  Workload workload{/*headDim=*/40, /*valueHeadDim=*/128, /*elementBytes=*/2};
  Budget budget = computeBudget(workload, {128, 64, 4, 3});
  EXPECT_EQ(budget.queryBytes, 128 * 48 * 2);
  EXPECT_EQ(budget.keyBytes, 64 * 48 * 2);
  EXPECT_EQ(budget.valueBytes, 64 * 128 * 2);
  EXPECT_EQ(budget.sharedBytes(), 128 * 48 * 2 + 3 * (64 * 48 + 64 * 128) * 2);
  EXPECT_EQ(
      budget.describeShared(),
      "Q tile 12288 B + K ring 3 x 6144 B + V ring 3 x 16384 B = 79872 B");
}

TEST(Budget, accumulatorsAndQueryCountAsRegisters) {
  Workload workload{64, 64, 2};
  // 48 + 3 statistics of 4 rows + 64 scores + 64 outputs.
  EXPECT_EQ(computeBudget(workload, {128, 64, 4, 2}).registers, 188);
  EXPECT_EQ(computeBudget(workload, {128, 64, 4, 2, true}).registers, 220);
}

TEST(Budget, occupancyIsLimitedByTheScarcest) {
  Workload workload{64, 64, 2};
  Tiles byRegisters{128, 64, 4, 2};
  EXPECT_EQ(
      blocksPerSM(computeBudget(workload, byRegisters), byRegisters, sm80()),
      2);
  Tiles byShared{64, 128, 4, 3};
  EXPECT_EQ(blocksPerSM(computeBudget(workload, byShared), byShared, sm80()),
            1);
}

TEST(Budget, theLimitItselfFits) {
  // 163 KB = 2 x 64 KB + 35 KB does not come out of a tile; just below it does.
  Workload workload{256, 256, 2};
  EXPECT_EQ(findObstacle(workload, {64, 64, 4, 2}, sm80()), "");
  EXPECT_EQ(computeBudget(workload, {64, 64, 4, 2}).sharedBytes(), 163840);
  EXPECT_EQ(findObstacle(workload, {64, 80, 4, 2}, sm80()),
            "Q tile 32768 B + K ring 2 x 40960 B + V ring 2 x 40960 B = 196608 "
            "B, sm_80 has 166912 B");
}

TEST(Budget, anyCPUBlockIsLegal) {
  const TargetInfo &cpu = *findTarget("cpu");
  for (int64_t size : {1, 7, 63, 1024})
    EXPECT_EQ(findObstacle({64, 64, 4}, {size, size}, cpu), "");
}

TEST(TargetInfo, unknownNamesHaveNoRow) {
  EXPECT_EQ(findTarget("sm_75"), nullptr);
  EXPECT_EQ(findTarget(""), nullptr);
}
