//===- SparingPlansTest.cpp - plans that need fewer registers -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Plan/Plan.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;

namespace {
class SparingPlans : public ::testing::Test {
protected:
  SparingPlans() { context.loadDialect<AttnDialect>(); }

  PlanAttr make(TargetKind target, const plan::Tiles &tiles) {
    return plan::makePlan(&context, target, tiles);
  }
  static plan::Workload workload(int64_t dim) {
    plan::Workload workload;
    workload.headDim = workload.valueHeadDim = dim;
    workload.elementBytes = 2;
    workload.hasMask = workload.hasScore = true;
    return workload;
  }

  MLIRContext context;
};
} // namespace

// The tiles stay; the producer gets what lives in it, and a little more.
TEST_F(SparingPlans, ForTheProducer) {
  PlanAttr plan = make(TargetKind::SM90A, {128, 64, 8, 4});
  EXPECT_EQ(plan::spareForProducer(plan, {200, 232, 58, 40}),
            plan.withConsumerRegisters(216));
  EXPECT_EQ(plan::spareForProducer(plan, {200, 232, 70, 40}),
            plan.withConsumerRegisters(208));
}

// Not what the consumer has use for, and nothing that the producer has not.
TEST_F(SparingPlans, NothingToSpare) {
  PlanAttr plan = make(TargetKind::SM90A, {128, 64, 8, 4});
  EXPECT_FALSE(plan::spareForProducer(plan, {233, 232, 56, 40}));
  EXPECT_FALSE(plan::spareForProducer(plan, {200, 232, 56, 40}));
  EXPECT_FALSE(plan::spareForProducer(plan, {200, 216, 70, 72}));
  EXPECT_EQ(plan::spareForProducer(plan, {220, 232, 80, 40}),
            plan.withConsumerRegisters(216));
}

// All registers for the consumer, unless the producer needs them, somebody
// wants another number, or three groups have no more anyway.
TEST_F(SparingPlans, ForTheConsumer) {
  PlanAttr plan = make(TargetKind::SM90A, {128, 64, 8, 4});
  PlanAttr favored = plan.withConsumerRegisters(240);
  EXPECT_EQ(plan::favorConsumer(plan, 56), favored);
  EXPECT_FALSE(plan::favorConsumer(plan, 57));
  EXPECT_FALSE(plan::favorConsumer(plan.withConsumerRegisters(216), 30));
  EXPECT_FALSE(plan::favorConsumer(plan.withBlocksPerSM(2), 30));
  EXPECT_FALSE(
      plan::favorConsumer(make(TargetKind::SM90A, {192, 64, 12, 4}), 30));
  EXPECT_FALSE(plan::favorConsumer(make(TargetKind::SM80, {128, 64, 4, 2}), 0));
}

// What the next tiles are known to lack they get at once; a producer that had
// less than usual the last time gets what is usual.
TEST_F(SparingPlans, RegistersOfTheNextTiles) {
  PlanAttr plan = make(TargetKind::SM90A, {128, 128, 8, 2});
  PlanAttr next =
      plan::pickSparing(workload(80), plan, plan, {9, {{310, 232, 30, 40}}});
  EXPECT_EQ(next.getBlockK(), 64);
  EXPECT_EQ(next.getConsumerRegisters(), 240);
  next = plan::pickSparing(workload(80), plan, plan, {9, {{310, 232, 60, 40}}});
  EXPECT_NE(next.getConsumerRegisters(), 240);
  next = plan::pickSparing(workload(80), plan, plan.withConsumerRegisters(240),
                           {9, {{250, 240, 38, 24}}});
  EXPECT_EQ(next.getBlockK(), 64);
  EXPECT_EQ(next.getConsumerRegisters(), 0);
}

// A producer has 120 at most: what it cannot have the consumer keeps.
TEST_F(SparingPlans, NoMoreThanTheProducerTakes) {
  PlanAttr plan = make(TargetKind::SM90A, {128, 64, 8, 4});
  EXPECT_EQ(plan::spareForProducer(plan, {150, 232, 113, 40}),
            plan.withConsumerRegisters(192));
}

// Where both lack registers there are fewer keys, and the producer gets more.
TEST_F(SparingPlans, ForBoth) {
  PlanAttr plan = make(TargetKind::SM90A, {128, 128, 8, 2});
  PlanAttr next =
      plan::pickSparing(workload(80), plan, plan, {25, {{257, 216, 99, 72}}});
  EXPECT_EQ(next.getBlockK(), 64);
  EXPECT_EQ(next.getConsumerRegisters(), 192);
}

// Numbers of keys that were never timed are not tried where a kernel is known;
// 64 come before 32, whatever lives with more.
TEST_F(SparingPlans, PowersOfTwo) {
  PlanAttr plan = make(TargetKind::SM90A, {128, 128, 8, 2});
  PlanAttr blind = plan::pickSparing(workload(80), plan, plan, {9, {}});
  EXPECT_EQ(blind.getBlockK(), 112);
  PlanAttr next =
      plan::pickSparing(workload(80), plan, plan, {9, {{257, 232, 30, 40}}});
  EXPECT_EQ(next.getBlockK(), 64);
  next = plan::pickSparing(workload(80), plan, plan, {9, {{340, 232, 30, 40}}});
  EXPECT_EQ(next.getBlockK(), 64);
  next = plan::pickSparing(workload(80), plan, next, {9, {{310, 232, 30, 40}}});
  EXPECT_EQ(next.getBlockK(), 32);
}

// Queries do not stay in registers that are short.
TEST_F(SparingPlans, QueriesInSharedMemory) {
  PlanAttr plan = make(TargetKind::SM80, {128, 64, 4, 2, true});
  PlanAttr next =
      plan::pickSparing(workload(64), plan, plan, {9, {{260, 255}}});
  EXPECT_EQ(next, make(TargetKind::SM80, {128, 64, 4, 2, false}));
  next = plan::pickSparing(workload(64), plan, plan, {9, {{310, 255}}});
  EXPECT_EQ(next, make(TargetKind::SM80, {64, 64, 4, 2, false}));
}

// A warp of f32 splits its keys for as many rows as before.
TEST_F(SparingPlans, RowsOfSplits) {
  plan::Workload f32 = workload(128);
  f32.elementBytes = 4;
  PlanAttr plan = make(TargetKind::SM80, {128, 32, 4, 1});
  PlanAttr next = plan::pickSparing(f32, plan, plan, {9, {}});
  EXPECT_EQ(next.getBlockQ() / next.getWarps(), 32);
  EXPECT_EQ(next.getBlockK(), 16);
}

// Where nothing leaves more registers, fewer stages are another kernel.
TEST_F(SparingPlans, FewerStages) {
  PlanAttr plan = make(TargetKind::SM80, {64, 64, 4, 1});
  PlanAttr last = make(TargetKind::SM80, {64, 32, 4, 2});
  PlanAttr next =
      plan::pickSparing(workload(192), plan, last, {30, {{240, 255}}});
  EXPECT_EQ(next, make(TargetKind::SM80, {64, 32, 4, 1}));
  EXPECT_FALSE(
      plan::pickSparing(workload(192), plan, next, {40, {{240, 255}}}));
}

// Plans for few queries keep their rows, their blocks for a multiprocessor, and
// as many keys on their way.
TEST_F(SparingPlans, FewQueries) {
  plan::Tiles tiles{64, 64, 4, 4};
  tiles.onGrid = true;
  tiles.blocksPerSM = 2;
  PlanAttr plan = make(TargetKind::SM90A, tiles);
  PlanAttr next = plan::pickSparing(workload(64), plan, plan, {40, {}});
  EXPECT_EQ(next, plan.withTiles(64, 32, 4, 3));
  PlanAttr wide = make(TargetKind::SM90A, {64, 64, 4, 2})
                      .withScheduler(SchedulerKind::Grid)
                      .withSplitKeys(4);
  next = plan::pickSparing(workload(128), wide, wide, {20, {}});
  EXPECT_LE(next.getBlockQ(), 64);
  EXPECT_EQ(next.getSplitKeys(), 4);
}

// Gradients keep their warpgroups while there are keys to give up, and then
// have one, which gets all registers.
TEST_F(SparingPlans, GradientsOfGroups) {
  plan::Workload gradients = workload(64);
  gradients.isBackward = true;
  PlanAttr plan = make(TargetKind::SM90A, {128, 64, 8, 2});
  PlanAttr next =
      plan::pickSparing(gradients, plan, plan, {64, {{420, 232, 30, 40}}});
  EXPECT_EQ(next, make(TargetKind::SM90A, {128, 32, 8, 1}));
  next = plan::pickSparing(gradients, plan, next, {128, {{330, 232, 30, 40}}});
  EXPECT_EQ(next, make(TargetKind::SM90A, {64, 32, 4, 1}));
  EXPECT_FALSE(
      plan::pickSparing(gradients, plan, next, {192, {{330, 232, 30, 40}}}));
}

// Tiles that divide the blocks of a map are followed by such: those that lie
// across blocks take several times as long.
TEST_F(SparingPlans, BlocksOfMaps) {
  PlanAttr plan = make(TargetKind::SM90A, {64, 64, 4, 2});
  plan::Workload map = workload(192);
  EXPECT_EQ(plan::pickSparing(map, plan, plan, {8, {}}).getBlockQ(), 128);
  map.queryGrain = map.keyGrain = 64;
  PlanAttr next = plan::pickSparing(map, plan, plan, {8, {}});
  EXPECT_EQ(next.getBlockQ(), 64);
  EXPECT_EQ(64 % next.getBlockK(), 0);
}
