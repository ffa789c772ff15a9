//===- SparingPlans.cpp - plans that need fewer registers ----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Plan.h"

#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "attn/Support/RoleRegisters.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <tuple>

using namespace mlir;
using namespace attn;

namespace {
/// A plan, with what it is chosen by.
struct RankedPlan {
  RankedPlan(const plan::Workload &workload, PlanAttr plan)
      : plan(plan), tiles(plan::getTiles(plan)) {
    plan::Budget budget =
        plan::computeBudget(workload, tiles, plan::getTarget(plan.getTarget()));
    limit = budget.registerLimit;
    left = limit - budget.registers();
    clocks = plan::estimate(workload, plan).clocksPerScore;
    hasBlocks = workload.hasBlocks(tiles.blockQ, tiles.blockK);
    if (workload.elementBytes == 4)
      rowsOfSplit = std::max(layout::groupRows, tiles.blockQ / tiles.warps);
  }

  /// Of warps that share registers; 0 where each has its own.
  int64_t groups() const {
    return plan.getTarget() == TargetKind::SM90A
               ? tiles.warps / layout::warpsPerGroup
               : 0;
  }

  PlanAttr plan;
  plan::Tiles tiles;
  int64_t limit, left; // registers, and those that the budget does not name
  double clocks;
  bool hasBlocks; // of a map, which the tiles divide
  /// Of f32: those for which a warp splits a key into numbers of tf32.
  int64_t rowsOfSplit = 0;
};
} // namespace

/// Whether tiles are for few queries, and wait for memory.
static bool isForFewQueries(PlanAttr plan) {
  return plan.getSplitKeys() != 1 || plan.getPackedHeads() != 1 ||
         plan.getBlocksPerSm() != 1;
}

/// The better is less: what the estimate does not tell apart, by how much it is
/// like `wanted`, which was measured, and by large steps.
static auto rank(const RankedPlan &candidate, const RankedPlan &wanted) {
  constexpr double told = 50; // differences of a fiftieth
  const plan::Tiles &tiles = candidate.tiles;
  // As many keys on their way, or two blocks.
  int64_t usualStages =
      isForFewQueries(wanted.plan)
          ? wanted.tiles.stages * wanted.tiles.blockK / tiles.blockK
          : 2;
  return std::tuple(wanted.hasBlocks && !candidate.hasBlocks,
                    candidate.rowsOfSplit < wanted.rowsOfSplit,
                    std::lround(std::log(candidate.clocks) * told),
                    tiles.warps != wanted.tiles.warps,
                    tiles.blockQ != wanted.tiles.blockQ, -tiles.blockK,
                    std::abs(tiles.stages - usualStages), tiles.stages);
}

/// Whether the tiles can have rows of so many heads.
static bool canPack(const plan::Workload &workload, const RankedPlan &candidate,
                    int64_t heads) {
  plan::Tiles tiles = candidate.tiles;
  tiles.packedHeads = heads;
  tiles.onGrid |= tiles.blocksPerSM != 1;
  return plan::findObstacle(workload, tiles,
                            plan::getTarget(candidate.plan.getTarget()))
      .empty();
}

/// The registers of a thread that tiles fill in the code of a step: a score and
/// its weight, the output, and queries that stay.
static int64_t countTileRegisters(const plan::Workload &workload,
                                  const plan::Tiles &tiles) {
  constexpr int64_t registerBytes = 4;
  int64_t columns = 2 * tiles.blockK + plan::padHeadDim(workload.valueHeadDim);
  if (tiles.qInRegisters)
    columns += plan::padHeadDim(workload.headDim) * workload.elementBytes /
               registerBytes;
  return tiles.blockQ * columns / (tiles.warps * layout::warpSize);
}

/// How many registers the consumer gets where so many live in it and in the
/// producer; 0: as usual.
static int64_t chooseConsumerRegisters(int64_t warps, int64_t blocksPerSM,
                                       int64_t live, int64_t producerLive) {
  constexpr int64_t step = 8, madeAgain = 8;
  constexpr int64_t others = 8; // that live inside of a block
  int64_t usual = shareRegisters(warps, 0, blocksPerSM).consumer,
          registers = usual;
  auto getProducer = [&](int64_t consumer) {
    return shareRegisters(warps, consumer, blocksPerSM).producer;
  };
  while (getProducer(registers) < producerLive + others &&
         getProducer(registers) < getProducer(registers - step) &&
         registers - step + madeAgain >= live)
    registers -= step;
  return registers == usual ? 0 : registers;
}

/// With so many numbers alive or fewer a producer does with the fewest
/// registers: it has enough of them in uniform ones. One with 53 did; with 67
/// three spilled hundreds of bytes.
static constexpr int64_t usualOfProducer = 56;

PlanAttr plan::spareForProducer(PlanAttr plan, const RegisterNeed &need) {
  constexpr int64_t unsure = 4;
  if (need.more() > 0 || need.producerLive <= usualOfProducer ||
      need.producerLive <= need.producerLimit + unsure)
    return nullptr;
  int64_t registers = chooseConsumerRegisters(
      plan.getWarps(), plan.getBlocksPerSm(), need.live, need.producerLive);
  if (registers == 0 || registers >= need.limit)
    return nullptr;
  return plan.withConsumerRegisters(registers);
}

PlanAttr plan::favorConsumer(PlanAttr plan, int64_t producerLive) {
  constexpr int64_t registers = 240;
  bool isFree =
      plan.getTarget() == TargetKind::SM90A && plan.getBlocksPerSm() == 1 &&
      plan.getConsumerRegisters() == 0 && producerLive <= usualOfProducer &&
      shareRegisters(plan.getWarps()).consumer < registers &&
      findShareFault(plan.getWarps(), registers).empty();
  return isFree ? plan.withConsumerRegisters(registers) : nullptr;
}

/// About how many registers live with `tiles`.
static int64_t countLive(const plan::Workload &workload,
                         const plan::Tiles &tiles, const plan::Tiles &spilling,
                         const plan::RegisterNeed &need) {
  return need.live + countTileRegisters(workload, tiles) -
         countTileRegisters(workload, spilling);
}

/// Gives what `spilling` lacked to a plan with fewer or other tiles; false if
/// there is not enough.
static bool share(const plan::Workload &workload, RankedPlan &candidate,
                  const plan::Tiles &spilling, const plan::RegisterNeed &need) {
  // Of uniform values the producer has some in other registers.
  constexpr int64_t uniformRegisters = 30;
  plan::Tiles &tiles = candidate.tiles;
  int64_t live = countLive(workload, tiles, spilling, need);
  int64_t limit = candidate.limit;
  // The last plan may have left its producer less than usual.
  int64_t usual =
      shareRegisters(tiles.warps, /*consumer=*/0, tiles.blocksPerSM).producer;
  if (need.producerLive > std::max(need.producerLimit, usual)) {
    tiles.consumerRegisters = chooseConsumerRegisters(
        tiles.warps, tiles.blocksPerSM, live, need.producerLive);
    RoleRegisters registers =
        shareRegisters(tiles.warps, tiles.consumerRegisters, tiles.blocksPerSM);
    limit = registers.consumer;
    if (registers.producer + uniformRegisters < need.producerLive)
      return false;
    candidate.plan =
        candidate.plan.withConsumerRegisters(tiles.consumerRegisters);
  }
  // These were measured; what lies between takes longer to compile and is more
  // likely to lack registers, too.
  return llvm::isPowerOf2_64(tiles.blockK) && !tiles.qInRegisters &&
         live <= limit + plan::registersMadeAgain;
}

/// Whether a forward plan has fewer registers alive by what takes longer than
/// spills do, on sm_90a: one warpgroup where there were several (of 13 random
/// programs on an H100, d = 64 to 256, two groups with 32 keys were 1.14 to 1.9
/// times as fast, where they spilled nothing, and where they spilled 12 to 568
/// bytes), or with wide heads one slot for keys where there were two (1.07
/// to 1.37 times as fast at d = 256; as fast up to 192).
static bool givesUpMore(const plan::Workload &workload, PlanAttr plan,
                        PlanAttr before) {
  constexpr int64_t wide = 192;
  if (plan.getTarget() != TargetKind::SM90A || workload.isBackward)
    return false;
  bool losesGroups = plan.getWarps() == layout::warpsPerGroup &&
                     before.getWarps() > layout::warpsPerGroup;
  bool losesStages = plan.getStages() == 1 && before.getStages() > 1 &&
                     std::max(workload.headDim, workload.valueHeadDim) > wide;
  return losesGroups || losesStages;
}

/// Whether a gradients' plan has one warpgroup where as many with half the keys
/// could follow first, on sm_90a: 64 x 32 took 1.25 to 1.73 times as long as
/// 128 x 32, with one stage or two, for 7 masks and scores that read tables or
/// many numbers (d = 64, an H200), and once 1.01.
static bool losesGroupsFirst(const plan::Workload &workload, PlanAttr plan,
                             PlanAttr spilling) {
  constexpr int64_t fewestKeys = 32;
  return plan.getTarget() == TargetKind::SM90A && workload.isBackward &&
         plan.getWarps() < spilling.getWarps() &&
         spilling.getBlockK() > fewestKeys;
}

/// Whether a forward plan has half as many keys as one that could follow first,
/// on sm_90a: 64 where there were more, or three groups. What lives in the code
/// of more keys says too much of that of few: of 6 random programs that were
/// estimated to lack registers with 64 keys, 5 spilled nothing with these,
/// which took 0.8 to 0.92 of the time of 32 on an H100; the other one 0.94.
static bool skipsKeys(const plan::Workload &workload, PlanAttr plan,
                      PlanAttr spilling) {
  constexpr int64_t usualKeys = 64;
  return plan.getTarget() == TargetKind::SM90A && !workload.isBackward &&
         plan.getBlockK() < usualKeys &&
         (spilling.getBlockK() > usualKeys ||
          spilling.getWarps() > plan.getWarps());
}

PlanAttr plan::pickSparing(const Workload &workload, PlanAttr plan,
                           PlanAttr spilling, const Shortage &shortage) {
  RankedPlan wanted(workload, plan), last(workload, spilling);
  std::optional<RankedPlan> best, most;
  for (PlanAttr each :
       enumeratePlans(workload, plan.getContext(), plan.getTarget())) {
    PlanAttr other = each.withBlocksPerSM(plan.getBlocksPerSm());
    RankedPlan candidate(workload, other);
    // Slots of rings have addresses and numbers, and a warpgroup by itself may
    // have all registers.
    bool isSparing =
        std::tuple(candidate.left, last.tiles.stages, last.groups()) >
        std::tuple(last.left, candidate.tiles.stages, candidate.groups());
    if (!isSparing || givesUpMore(workload, other, plan) ||
        skipsKeys(workload, other, spilling) ||
        losesGroupsFirst(workload, other, spilling) ||
        (isForFewQueries(plan) && other.getBlockQ() > plan.getBlockQ()) ||
        !canPack(workload, candidate, plan.getPackedHeads()))
      continue;
    if (!most || candidate.left > most->left ||
        (candidate.left == most->left && !workload.isBackward &&
         rank(candidate, wanted) < rank(*most, wanted)))
      most = candidate;
    // Scores of more keys at a time take more registers than tiles tell.
    if (candidate.left >= wanted.left + shortage.registers &&
        candidate.tiles.blockK <= wanted.tiles.blockK &&
        (!shortage.need ||
         share(workload, candidate, last.tiles, *shortage.need)) &&
        (!best || rank(candidate, wanted) < rank(*best, wanted)))
      best = candidate;
  }
  const std::optional<RankedPlan> &taken = best ? best : most;
  if (!taken)
    return nullptr;
  PlanAttr next = taken->plan.withScheduler(plan.getScheduler())
                      .withSplitKeys(plan.getSplitKeys())
                      .withPackedHeads(plan.getPackedHeads())
                      .withScores(plan.getScores())
                      .withPasses(plan.getPasses());
  // What would be tried with more registers next has them at once. (11 random
  // programs that need none were 0.98 to 1.04 times as fast with them on an
  // H200.)
  if (!workload.isBackward && shortage.need &&
      shortage.need->producerLimit != 0 &&
      countLive(workload, taken->tiles, last.tiles, *shortage.need) >
          taken->limit)
    if (PlanAttr favored = favorConsumer(next, shortage.need->producerLive))
      return favored;
  return next;
}
