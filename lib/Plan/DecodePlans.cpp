//===- DecodePlans.cpp - plans for few queries with many keys -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A few queries, as of one step of decoding, fill no tile, and a query head for
// each multiprocessor is more than there often is. So a tile has the rows of
// the heads that share a key head, and thread blocks share the keys as long as
// there are fewer tiles than multiprocessors and keys enough: a part of fewer
// than 512 keys is not worth the merging of parts. Of a window these are the
// keys that show; what other masks show is not known, and the blocks that they
// do show are what is shared. Up to 1024 queries fill tiles, and share keys
// where that leaves half of the multiprocessors idle.
//
// Each number of parts is a variant of its own, for sizes that few launches
// have. Kernels that are compiled for any number of queries have none of them:
// they would take twice as long to compile.
// The limits are from timings on an H100 of 1, 2, 4, 8, 16 and 32 parts, one
// query, 1 to 64 tiles, 1,000 to 65,536 keys
// (test/Benchmark/results/decode.json and masked-decode.json): the parts are
// those of the fastest plan or of one within 5 % of it, where as many heads
// share a key head as is assumed; where each has its own, twice as many parts
// as were best took 6 and 15 % longer (d = 128 and 64).
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"

#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

/// The most heads in a tile: with 64 rows 8 queries of each.
static constexpr int64_t mostHeads = 8;
/// A part has at least so many keys.
static constexpr int64_t keysPerPart = 512;
/// Where queries fill tiles there is more to merge: then so many.
static constexpr int64_t keysPerPartOfTiles = 2048, mostQueries = 1024;
/// From so many keys on, tiles have rows of several heads.
static constexpr int64_t leastKeys = 1024;
/// Query heads that share a key head, where that is only known at launch: with
/// fewer there are more blocks than wished for, with more fewer.
static constexpr int64_t usualHeads = 4;

static bool isWanted(const Workload &workload) {
  return !workload.isBackward && !workload.isJvp &&
         workload.elementBytes == 2 && !workload.hasDropout;
}

/// So many keys, and a tile for each so many multiprocessors; 0: any number of
/// tiles.
static LaunchCondition limitSizes(int64_t queries, int64_t keys,
                                  int64_t headsPerTile,
                                  int64_t multiprocessors) {
  using Kind = QuantityComparison::Kind;
  LaunchCondition condition;
  auto compare = [&](QuantityProduct lhs, Kind kind, QuantityProduct rhs) {
    condition.comparisons.push_back({std::move(lhs), std::move(rhs), kind});
  };
  compare({1, {LaunchQuantity::QueryLength}}, Kind::LessEqual, {queries, {}});
  compare({1, {LaunchQuantity::KeyLength}}, Kind::GreaterEqual, {keys, {}});
  if (multiprocessors == 0)
    return condition;
  int64_t common = std::gcd(multiprocessors, headsPerTile);
  compare({multiprocessors / common, {LaunchQuantity::BatchHeads}},
          Kind::LessEqual,
          {headsPerTile / common, {LaunchQuantity::Multiprocessors}});
  return condition;
}

/// So many queries and keys, and a tile of `rows` queries of one head for each
/// so many multiprocessors.
static LaunchCondition limitTiles(int64_t keys, int64_t rows,
                                  int64_t multiprocessors) {
  LaunchCondition condition = limitSizes(mostQueries, keys, 1, 0);
  int64_t common = std::gcd(multiprocessors, rows);
  condition.comparisons.push_back(
      {{multiprocessors / common,
        {LaunchQuantity::BatchHeads, LaunchQuantity::QueryLength}},
       {rows / common, {LaunchQuantity::Multiprocessors}},
       QuantityComparison::Kind::LessEqual});
  return condition;
}

SmallVector<PlanCase> plan::pickDecodePlans(ScoredOp op, TargetKind target) {
  Workload workload = getWorkload(op);
  if (target == TargetKind::CPU || !isWanted(workload))
    return {};
  int64_t dim = std::max(workload.headDim, workload.valueHeadDim);
  Tiles tiles{/*blockQ=*/64, /*blockK=*/64, /*warps=*/4, /*stages=*/2};
  if (getTarget(target).hasWarpgroups) {
    // At d = 128 as fast as 128 keys with two stages, which spill.
    if (dim <= 128)
      (dim > 64 ? tiles.stages : tiles.blockK) *= 2;
    tiles.onGrid = true;
  }
  struct Range {
    int64_t parts, multiprocessors; // for each tile
  };
  SmallVector<PlanCase> cases;
  // As many heads as the queries leave rows for; few queries come first.
  for (int64_t packed = mostHeads; packed != 0; packed /= 2) {
    int64_t heads = workload.headsPerKeyHead;
    tiles.packedHeads = packed;
    int64_t queries = tiles.blockQ / packed;
    if ((heads != 0 && packed > heads) || workload.queries > queries)
      continue;
    int64_t perTile = std::min(packed, heads == 0 ? usualHeads : heads);
    for (Range range :
         {Range{32, 33}, Range{8, 8}, Range{4, 4}, Range{2, 2}, Range{1, 0}}) {
      tiles.splitKeys = range.parts;
      bool isAsOthers = tiles.splitKeys == 1 && tiles.packedHeads == 1;
      bool seesFew = workload.nearKeys != 0 && range.parts != 1 &&
                     range.parts * keysPerPart > workload.nearKeys;
      if (isAsOthers || seesFew ||
          !findObstacle(workload, tiles, getTarget(target)).empty())
        continue;
      LaunchCondition condition =
          limitSizes(queries, std::max(range.parts * keysPerPart, leastKeys),
                     perTile, range.multiprocessors);
      cases.push_back(
          {std::move(condition), makePlan(op->getContext(), target, tiles)});
    }
    // Fewer heads in a tile are for more queries.
    if (workload.queries != 0)
      return cases;
  }
  // A prompt in chunks: tiles are full, and fewer than multiprocessors.
  tiles.packedHeads = 1;
  for (int64_t parts : {8, 4, 2}) {
    tiles.splitKeys = parts;
    int64_t keys = parts * keysPerPartOfTiles;
    bool seesFew = workload.nearKeys != 0 && keys > workload.nearKeys;
    if (!seesFew && findObstacle(workload, tiles, getTarget(target)).empty())
      cases.push_back({limitTiles(keys, tiles.blockQ, parts),
                       makePlan(op->getContext(), target, tiles)});
  }
  return cases;
}
