//===- BudgetTest.cpp - bytes and registers of plans ----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Budget.h"
#include "attn/Support/RoleRegisters.h"

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
  Budget budget = computeBudget(workload, {128, 64, 4, 3}, sm80());
  EXPECT_EQ(budget.getBuffer("Q").slotBytes, 128 * 48 * 2);
  EXPECT_EQ(budget.getBuffer("K").slotBytes, 64 * 48 * 2);
  EXPECT_EQ(budget.getBuffer("V").slotBytes, 64 * 128 * 2);
  EXPECT_EQ(budget.sharedBytes(), 128 * 48 * 2 + 3 * (64 * 48 + 64 * 128) * 2);
  EXPECT_EQ(
      budget.describeShared(),
      "Q tile 12288 B + K ring 3 x 6144 B + V ring 3 x 16384 B = 79872 B");
}

TEST(Budget, accumulatorsAndQueryCountAsRegisters) {
  Workload workload{64, 64, 2};
  // 48 + 3 statistics of 4 rows + 64 scores + 64 outputs.
  EXPECT_EQ(computeBudget(workload, {128, 64, 4, 2}, sm80()).registers(), 188);
  EXPECT_EQ(computeBudget(workload, {128, 64, 4, 2, true}, sm80()).registers(),
            220);
}

TEST(Budget, registersAreSharedOutOnce) {
  struct Row {
    int64_t warps, producer, consumer;
  };
  for (Row row : {Row{4, 120, 232}, Row{8, 40, 232}, Row{12, 32, 160},
                  Row{16, 32, 112}}) {
    attn::RoleRegisters registers = attn::shareRegisters(row.warps);
    EXPECT_EQ(registers.consumer, row.consumer) << row.warps;
    EXPECT_EQ(registers.producer, row.producer) << row.warps;
    int64_t all = attn::producerWarps * registers.producer +
                  row.warps * registers.consumer;
    int64_t warps = attn::producerWarps + row.warps;
    EXPECT_LE(all, warps * attn::registersAtStart(warps)) << row.warps;
  }
}

// Several blocks have equal shares, and a producer what it does with.
TEST(Budget, blocksShareAMultiprocessor) {
  struct Row {
    int64_t warps, blocks, producer, consumer;
  };
  for (Row row : {Row{4, 2, 40, 216}, Row{4, 3, 40, 120}, Row{8, 2, 48, 96}}) {
    attn::RoleRegisters registers =
        attn::shareRegisters(row.warps, 0, row.blocks);
    EXPECT_EQ(registers.consumer, row.consumer) << row.warps;
    EXPECT_EQ(registers.producer, row.producer) << row.warps;
    int64_t warps = attn::producerWarps + row.warps;
    int64_t start = warps * attn::registersAtStart(warps, row.blocks);
    EXPECT_LE(attn::producerWarps * registers.producer +
                  row.warps * registers.consumer,
              start);
    EXPECT_LE(row.blocks * start * 32, 64 * 1024);
  }
  EXPECT_EQ(attn::shareRegisters(4, 200, 2).producer, 56);
  EXPECT_EQ(attn::findShareFault(4, 232, 2), "");
  EXPECT_EQ(attn::findShareFault(4, 240, 2),
            "got 240 registers per thread, expected a multiple of 8 in [24, "
            "232] with 4 warps");
}

TEST(Budget, aPlanMaySayWhatTheConsumerHas) {
  attn::RoleRegisters registers = attn::shareRegisters(8, 240);
  EXPECT_EQ(registers.consumer, 240);
  EXPECT_EQ(registers.producer, 24);
  // What the consumer does not take the producer has use for.
  EXPECT_EQ(attn::shareRegisters(8, 208).producer, 88);
  EXPECT_EQ(attn::shareRegisters(8, 160).producer, 120);
  EXPECT_EQ(attn::findShareFault(8, 240), "");
  EXPECT_EQ(attn::findShareFault(12, 168),
            "got 168 registers per thread, expected a multiple of 8 in [24, "
            "160] with 12 warps");
}

TEST(Budget, occupancyIsLimitedByTheScarcest) {
  Workload workload{64, 64, 2};
  Tiles byRegisters{128, 64, 4, 2};
  EXPECT_EQ(blocksPerSM(computeBudget(workload, byRegisters, sm80()),
                        byRegisters, sm80()),
            2);
  Tiles byShared{64, 128, 4, 3};
  EXPECT_EQ(
      blocksPerSM(computeBudget(workload, byShared, sm80()), byShared, sm80()),
      1);
}

TEST(Budget, theLimitItselfFits) {
  // 163 KB = 2 x 64 KB + 35 KB does not come out of a tile; just below it does.
  Workload workload{256, 256, 2};
  EXPECT_EQ(findObstacle(workload, {64, 64, 4, 2}, sm80()), "");
  EXPECT_EQ(computeBudget(workload, {64, 64, 4, 2}, sm80()).sharedBytes(),
            163840);
  EXPECT_EQ(findObstacle(workload, {64, 80, 4, 2}, sm80()),
            "Q tile 32768 B + K ring 2 x 40960 B + V ring 2 x 40960 B = 196608 "
            "B, sm_80 has 166912 B");
}

TEST(Budget, warpsShareRowsInGradientsOfF32) {
  Workload workload{256, 256, 4};
  workload.isBackward = true;
  // Two sums of 256 columns, by twice as many lanes, and what goes to others.
  Budget budget = computeBudget(workload, {32, 32, 8, 1}, sm80());
  EXPECT_EQ(findObstacle(workload, {32, 32, 8, 1}, sm80()), "");
  EXPECT_EQ(budget.getBuffer("weights").slotBytes, 32 * 32 * 4);
  EXPECT_EQ(budget.getBuffer("dS").slotBytes, 32 * 32 * 4);
  EXPECT_EQ(findObstacle(workload, {64, 16, 8, 1, true}, sm80()),
            "q_in_registers = true, warps that share rows read the queries in "
            "shared memory");
  workload.headDim = 80;
  EXPECT_EQ(findObstacle(workload, {64, 16, 8, 1}, sm80()), "");
  EXPECT_EQ(findObstacle(workload, {32, 32, 8, 1}, sm80()),
            "head_dim = 80 is not a multiple of 32, 4 warps share a row");
  std::string stacked =
      "block_q = 64 is not a multiple of 128, 16 rows per warp";
  workload.hasIeeeProducts = true;
  EXPECT_EQ(findObstacle(workload, {64, 16, 8, 1}, sm80()), stacked);
  EXPECT_EQ(findObstacle({64, 64, 4}, {64, 32, 8, 1}, sm80()), stacked);
}

TEST(Budget, anyCPUBlockIsLegal) {
  const TargetInfo &cpu = *findTarget("cpu");
  for (int64_t size : {1, 7, 63, 1024})
    EXPECT_EQ(findObstacle({64, 64, 4}, {size, size}, cpu), "");
}

TEST(Budget, panelsAndBarriersOfSm90) {
  const TargetInfo &sm90 = *findTarget("sm_90a");
  Workload workload{128, 128, 2};
  Budget budget = computeBudget(workload, {128, 128, 8, 2}, sm90);
  EXPECT_EQ(budget.describeShared(),
            "Q tile 32768 B + K ring 2 x 32768 B + V ring 2 x 32768 B + "
            "barriers 80 B = 163920 B");
  // Output 64, scores 64, weights 32, and the rest.
  EXPECT_EQ(budget.registers(), 188);
  EXPECT_EQ(budget.registerLimit, 232);
  // 48 columns of 2 bytes are two panels of 64.
  EXPECT_EQ(
      computeBudget({40, 40, 2}, {64, 64, 4, 1}, sm90).getBuffer("Q").slotBytes,
      64 * 128);
}

TEST(Budget, groupsShareTheRegistersOfSm90) {
  const TargetInfo &sm90 = *findTarget("sm_90a");
  Workload workload{64, 64, 2};
  EXPECT_EQ(findObstacle(workload, {192, 128, 12, 2}, sm90), "");
  EXPECT_EQ(findObstacle(workload, {256, 64, 16, 2}, sm90), "");
  EXPECT_EQ(findObstacle(workload, {256, 128, 16, 2}, sm90),
            "about 156 registers per thread, sm_90a has 112 with 16 warps");
  EXPECT_EQ(findObstacle(workload, {128, 128, 12, 2}, sm90),
            "block_q = 128 is not a multiple of 192, 64 rows per group of 4 "
            "warps");
  EXPECT_EQ(findObstacle(workload, {64, 64, 4, 2, true}, sm90),
            "q_in_registers = true, the matrix instructions of sm_90a read the "
            "queries in shared memory");
}

TEST(TargetInfo, unknownNamesHaveNoRow) {
  EXPECT_EQ(findTarget("sm_75"), nullptr);
  EXPECT_EQ(findTarget(""), nullptr);
}
