//===- GradientPlans.cpp - plans for gradients by one program or two ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gradients whose sums may be in any order are one program, which adds parts of
// d_query to memory, or two, which compute scores twice; each has tiles of its
// own. What one costs more is of each query: a sum that is zeroed, added to and
// rounded. What it saves is of each pair of a query and a key. So two are
// faster for few keys, and for some hundreds of both (GradientPrograms.cpp).
// But tiles may be few:
//
// - Two programs run beside each other (warp-start-early): where each tile of
//   both has a multiprocessor, they take as long as one of them. A mask halves
//   the work of a tile: twice as many tiles are as good.
// - Else one program is launched once, with a tile for each block of keys. With
//   no more of these than multiprocessors two programs take longer, with up to
//   twice as many if they have work for a while.
// - Of few queries the program of d_query has few tiles, with many keys long
//   ones: one program is faster, unless there are so many heads that these have
//   tiles enough. Then two are, as a tile of one has but a few steps.
// - A query that sees few keys, a window, is as one of few.
//
// Products of f32 take ten times as long: there two are faster only where each
// tile of both has a multiprocessor, and tiles are narrow.
//
// From timings on an H200, 64 to 8192 queries with 300 to 32,768 keys, d = 64
// and 128, sm_90a: two programs of which each tile has a multiprocessor take
// 0.74 to 0.84 of the time of one. Otherwise one takes 0.72 to 1.06 of the time
// of two with tiles for one or two multiprocessors, 0.36 to 1.03 with few
// queries and many keys; behind a causal mask, of which they leave out what is
// hidden, two take 0.74 to 0.97 with up to 512 keys. Before they ran beside
// each other two took 0.81 to 1.07 with up to 192 keys.
//
// 64 to 300 queries with 1024 to 8192 keys, d = 64 to 128: with 8 and 16 heads
// two take 1.16 to 2.9 times as long as one, with 32 heads 0.73 to 1.3 times (d
// = 64 0.73 to 0.9), with 64 and 128 heads 0.65 to 1.03 times; with 64 heads of
// 512 queries 0.98 to 1.05 times. Windows of 512 before the query, d = 64 to
// 128 and 4096 tokens: 0.92 to 1.03 times, with the first four keys 0.82 to
// 0.98 times; windows of 1024, 8192 tokens 1.03 to 1.1 times.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Analysis/GradientPrograms.h"
#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;

using Quantity = LaunchQuantity;

/// A block of keys or queries, about.
static constexpr int64_t rowsOfTile = 128;
/// Up to so many keys two programs are faster, side by side and with a mask up
/// to others; from so many on one is where there are few tiles.
static constexpr int64_t fewKeys = 192, fewMaskedKeys = 512, manyKeys = 512;
/// Up to so many queries two programs are faster where heads are many: of one
/// in so many multiprocessors there are few.
static constexpr int64_t fewQueries = 384, narrowHead = 64, perNarrowHead = 6,
                         perHead = 3;

static QuantityComparison compare(std::vector<Quantity> quantities,
                                  QuantityComparison::Kind kind, int64_t factor,
                                  std::vector<Quantity> other = {}) {
  return {{1, std::move(quantities)}, {factor, std::move(other)}, kind};
}

static QuantityComparison upTo(std::vector<Quantity> quantities, int64_t factor,
                               std::vector<Quantity> other = {}) {
  return compare(std::move(quantities), QuantityComparison::Kind::LessEqual,
                 factor, std::move(other));
}

/// Where each tile of two programs has a multiprocessor, about, and those of
/// d_query, of 192 rows, are not the longest. Of f32 these have 64 rows, and
/// are the shorter ones.
static LaunchCondition haveAllTiles(bool isMasked, bool isF32 = false) {
  constexpr int64_t rowsOfKeys = rowsOfTile / 2, rowsOfQueries = rowsOfTile;
  int64_t factor = isMasked ? 2 : 1;
  std::vector<Quantity> device = {Quantity::Multiprocessors};
  LaunchCondition condition = {
      {upTo({Quantity::KeyLength}, 1, {Quantity::QueryLength}),
       upTo({Quantity::BatchHeads, Quantity::KeyLength}, factor * rowsOfKeys,
            device)}};
  if (!isF32)
    condition.comparisons.push_back(
        upTo({Quantity::BatchHeads, Quantity::QueryLength},
             factor * rowsOfQueries, device));
  return condition;
}

/// Where one program is faster, for want of tiles.
static SmallVector<LaunchCondition> listSmallLaunches(int64_t headDim) {
  std::vector<Quantity> device = {Quantity::Multiprocessors};
  auto ofKeys = [&](int64_t tiles) {
    return upTo({Quantity::BatchHeads, Quantity::KeyLength}, tiles * rowsOfTile,
                device);
  };
  QuantityComparison hasMany = compare(
      {Quantity::KeyLength}, QuantityComparison::Kind::GreaterEqual, manyKeys);
  QuantityComparison hasFewQueries =
      upTo({Quantity::BatchHeads, Quantity::QueryLength}, rowsOfTile, device);
  QuantityComparison hasFewHeads = {
      {headDim <= narrowHead ? perNarrowHead : perHead, {Quantity::BatchHeads}},
      {1, device},
      QuantityComparison::Kind::LessEqual};
  return {LaunchCondition{{ofKeys(1)}}, LaunchCondition{{hasMany, ofKeys(2)}},
          LaunchCondition{{hasMany, hasFewQueries, hasFewHeads}}};
}

SmallVector<PlanCase> plan::pickGradientPlans(ScoredOp op, PlanAttr one) {
  SmallVector<PlanCase> cases = {{LaunchCondition(), one}};
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (!one || !backward)
    return cases;
  std::optional<int64_t> most = findMostQueriesOfTwo(backward, one);
  Workload workload = getWorkload(op);
  bool isKnown = workload.queries != 0;
  bool isF32 = !isKnown && wantsTwoSideBySide(backward, one);
  std::optional<int64_t> mostSeen = findMostKeysOfTwo(backward, one);
  bool isNarrow =
      mostSeen && workload.seenKeys != 0 && workload.seenKeys <= *mostSeen;
  if (!isF32 && (!most || (workload.queries > *most && !isNarrow)))
    return cases;
  workload.inAnyOrder = false; // within each of two programs
  auto pickTwo = [&](int64_t queries) {
    workload.queries = queries;
    PlanAttr two = pick(workload, op->getContext(), one.getTarget());
    bool isSaid = two && (!isKnown || isNarrow);
    return isSaid ? two.withScores(RecomputedScores::Twice) : two;
  };
  if (isF32) {
    if (PlanAttr two = pickTwo(0))
      cases.insert(cases.begin(), {haveAllTiles(op.hasMask(), isF32), two});
    return cases;
  }
  PlanAttr two = pickTwo(isKnown ? workload.queries : *most);
  if (!two)
    return cases;
  if (isKnown) // attn-recompute knows it, too
    return {{LaunchCondition(), two}};

  // For fewer queries yet the table may have other plans.
  workload.queries = 0;
  SmallVector<std::pair<int64_t, PlanAttr>> plansOfTwo;
  for (const SizeLimits &fewer :
       listHeuristicLimits(workload, getTarget(one.getTarget())))
    if (fewer.maxQueries && *fewer.maxQueries < *most)
      if (PlanAttr own = pickTwo(*fewer.maxQueries))
        plansOfTwo.push_back({*fewer.maxQueries, own});
  plansOfTwo.push_back({*most, two});

  cases.clear();
  PlanAttr ofFewest = plansOfTwo.front().second;
  bool canRunBeside = one.getTarget() == TargetKind::SM90A;
  int64_t fewest = canRunBeside && op.hasMask() ? fewMaskedKeys : fewKeys;
  cases.push_back({{{upTo({Quantity::KeyLength}, fewest)}}, ofFewest});
  if (canRunBeside)
    cases.push_back({haveAllTiles(op.hasMask()), ofFewest});
  for (LaunchCondition &condition : listSmallLaunches(backward.getHeadDim()))
    cases.push_back({std::move(condition), one});
  if (canRunBeside)
    cases.push_back({{{upTo({Quantity::QueryLength}, fewQueries)}}, ofFewest});
  for (auto [queries, plan] : plansOfTwo)
    cases.push_back({{{upTo({Quantity::QueryLength}, queries),
                       upTo({Quantity::KeyLength}, *most)}},
                     plan});
  cases.push_back({LaunchCondition(), isNarrow ? two : one});
  return cases;
}
