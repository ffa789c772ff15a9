//===- HeadPlans.cpp - gradients of keys that several heads share ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of keys goes through the query heads that share it
// (`tile-loop-heads`) where there are enough blocks without one for each query
// head: about two for each multiprocessor, or as many as there are of these.
// With fewer, or with some more than those, multiprocessors wait.
//
// From timings on an H100, 32 query heads and 8 of keys, d = 64 and 128, in all
// 16,384 tokens (test/Benchmark/results/shared-heads.json): gradients are 1.32
// to 1.52 times as fast at 512 tokens, 1.17 to 1.32 at 1,024, 1.06 to 1.20 at
// 2,048 and 0.98 to 1.12 from 4,096 on. Of 192 blocks they are 0.88 to 1.01
// times as fast, of 64 blocks 0.55 to 0.99. One program for all gradients adds
// to those of queries, and behind a mask, where blocks are of different
// lengths, these sums of several heads leave the cache: 0.71 to 1.04 from 4,096
// tokens on. There its blocks stay those of one head, and two programs are as
// fast up to more queries. Blocks of long sequences lose each other, and then
// the cache: with 8 to 71 heads to one of keys they are 1.00 to 1.05 times as
// fast up to 131,072 rows of keys times heads, and 0.90 to 1.04 times with
// more; behind a mask 0.93 with 16,384 keys.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Analysis/GradientPrograms.h"
#include "attn/Plan/ChoosePlans.h"
#include "attn/Support/OptionalPasses.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;

using Quantity = LaunchQuantity;
using Kind = QuantityComparison::Kind;

/// Rows of keys for each multiprocessor, of blocks of 128: enough, and the
/// bounds of one block for each.
static constexpr int64_t enoughKeys = 240, fewestOfOne = 112, mostOfOne = 128;
/// Up to so many rows of keys times heads that share them, and up to so many
/// keys behind a mask, which has blocks go different ways.
static constexpr int64_t mostSharedKeys = 131072, mostMaskedKeys = 8192;
/// Up to so many queries and keys two programs with a mask, whose blocks go
/// through several heads, are as fast as one, whose blocks do not.
static constexpr int64_t mostOfTwo = 4096;

static QuantityComparison compareKeys(Kind kind, int64_t rows) {
  return {{1, {Quantity::BatchKeyHeads, Quantity::KeyLength}},
          {rows, {Quantity::Multiprocessors}},
          kind};
}

static PlanAttr loopOverHeads(PlanAttr plan) {
  PassSelection passes = plan.getPasses();
  passes.setUse(OptionalPass::LoopHeads, PassUse::On);
  return plan.withPasses(passes);
}

/// Query heads to a head of keys: 0 where it is not known.
static int64_t countSharers(AttentionBackwardOp op) {
  int64_t heads = op.getQuery().getType().getDimSize(ScoredOp::kHead);
  int64_t keyHeads = op.getKey().getType().getDimSize(ScoredOp::kHead);
  bool isKnown =
      !ShapedType::isDynamic(heads) && !ShapedType::isDynamic(keyHeads);
  return isKnown && keyHeads > 0 ? heads / keyHeads : 0;
}

SmallVector<PlanCase> plan::addHeadLoops(ScoredOp op,
                                         SmallVector<PlanCase> cases,
                                         bool isForOneLaunch) {
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (!backward || !cases.back().plan ||
      cases.back().plan.getTarget() != TargetKind::SM90A)
    return cases;
  int64_t sharers = countSharers(backward);
  if (sharers == 1)
    return cases;
  LaunchCondition shared;
  if (sharers == 0)
    shared.comparisons.push_back({{1, {Quantity::BatchHeads}},
                                  {1, {Quantity::BatchKeyHeads}},
                                  Kind::Greater});
  shared.comparisons.push_back(
      {{1, {Quantity::BatchHeads, Quantity::KeyLength}},
       {mostSharedKeys, {Quantity::BatchKeyHeads}},
       Kind::LessEqual});
  if (op.hasMask())
    shared.comparisons.push_back(
        {{1, {Quantity::KeyLength}}, {mostMaskedKeys, {}}, Kind::LessEqual});
  SmallVector<LaunchCondition> conditions(1, shared);
  conditions[0].comparisons.push_back(
      compareKeys(Kind::GreaterEqual, enoughKeys));
  if (!op.hasMask()) {
    conditions.push_back(shared);
    conditions[1].comparisons.push_back(
        compareKeys(Kind::GreaterEqual, fewestOfOne));
    conditions[1].comparisons.push_back(
        compareKeys(Kind::LessEqual, mostOfOne));
  }
  auto hasPrograms = [&](bool once) {
    return [&, once](const PlanCase &entry) {
      return computesOnce(backward, entry.plan) == once;
    };
  };
  auto findLast = [&](bool once) {
    auto reversed = llvm::reverse(cases);
    return llvm::find_if(reversed, hasPrograms(once))->plan;
  };
  SmallVector<PlanCase> all;
  auto add = [&](const LaunchCondition &shape, const LaunchCondition &own,
                 PlanAttr plan) {
    LaunchCondition both = shape;
    llvm::append_range(both.comparisons, own.comparisons);
    all.push_back({std::move(both), loopOverHeads(plan)});
  };
  bool isMaskedOnce = op.hasMask() && llvm::any_of(cases, hasPrograms(true));
  bool hasTwo = llvm::any_of(cases, hasPrograms(false));
  for (const LaunchCondition &condition : conditions) {
    for (PlanCase &entry : cases) {
      bool once = computesOnce(backward, entry.plan);
      // Those for few tiles hold where the condition does not.
      if (entry.condition.names(Quantity::Multiprocessors) ||
          (once && op.hasMask()))
        continue;
      // Who compiles all cases may have no use for these: then it is one plan
      // for each number of programs, that of the largest sizes.
      add(condition, entry.condition,
          sharers != 0 || isForOneLaunch ? entry.plan : findLast(once));
    }
    if (isMaskedOnce && hasTwo)
      add(condition,
          {{{{1, {Quantity::QueryLength}}, {mostOfTwo, {}}, Kind::LessEqual},
            {{1, {Quantity::KeyLength}}, {mostOfTwo, {}}, Kind::LessEqual}}},
          findLast(false));
  }
  llvm::append_range(all, cases);
  return all;
}
