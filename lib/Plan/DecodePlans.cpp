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
// there are fewer tiles than multiprocessors and keys enough to be worth the
// merging of parts. Of a window these are the keys that show; what other masks
// show is not known, and the blocks that they do show are what is shared. Two
// blocks share a multiprocessor: while one begins or ends, the other computes.
// Up to 1024 queries fill tiles, and share keys as long as tiles times parts
// are no more than such blocks at once.
//
// Each number of parts is a variant of its own, for sizes that few launches
// have. Kernels that are compiled for any number of queries have none of them:
// they would take twice as long to compile.
// The limits are from timings on an H200 of 1 to 32 parts, one query, 8 to 512
// tiles, 128 to 65,536 keys, d = 64 and 128: without a score the parts are the
// fastest or within 5 % of it; with ALiBi at d = 64 and many keys more parts
// would be up to 1.25 times as fast. Up to 512 keys, d = 64 and 2048 tiles
// three blocks for a multiprocessor take 0.82 to 0.99 of the time of two, with
// 2048 keys 1.1 times as long.
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"

#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

/// Up to so many keys.
static constexpr int64_t fewKeys = 1024;
/// The most heads in a tile: with 64 rows 8 queries of each.
static constexpr int64_t mostHeads = 8;
/// The most parts, and of a kernel that has the variants of all sizes.
static constexpr int64_t mostParts = 64, mostOfAll = 32;
/// A part has at least so many keys, of two parts each.
static constexpr int64_t keysPerPart = 256, keysPerHalf = 1024;
/// Where queries fill tiles there is more to merge: then so many.
static constexpr int64_t keysPerPartOfTiles = 2048, mostQueries = 1024;

static bool isWanted(const Workload &workload) {
  return !workload.isBackward && !workload.isJvp &&
         workload.elementBytes == 2 && !workload.hasDropout;
}

namespace {
/// The plans of one tile, and for which sizes they are.
class DecodePlans {
public:
  DecodePlans(ScoredOp op, const Workload &workload, TargetKind target,
              bool isForOneLaunch);

  SmallVector<PlanCase> pick();

private:
  void setStages();
  void consider(LaunchCondition condition);
  void compare(LaunchCondition &condition, int64_t factor,
               ArrayRef<LaunchQuantity> product, int64_t perMultiprocessor);
  LaunchCondition limitQueries(int64_t queries);
  bool requireKeys(LaunchCondition &condition, int64_t least);
  bool considerFewKeys(LaunchCondition condition);
  void shareKeys(const LaunchCondition &condition);
  void shareKeysOfFullTiles();
  bool seesFew(int64_t keys) const {
    return tiles.splitKeys != 1 && workload.nearKeys != 0 &&
           keys > workload.nearKeys;
  }

  MLIRContext *context;
  const Workload &workload;
  TargetKind target;
  bool isForOneLaunch;
  int64_t dim, keys = 0; // 0: not known
  Tiles tiles{/*blockQ=*/64, /*blockK=*/64, /*warps=*/4, /*stages=*/2};
  SmallVector<PlanCase> cases;
};
} // namespace

DecodePlans::DecodePlans(ScoredOp op, const Workload &workload,
                         TargetKind target, bool isForOneLaunch)
    : context(op->getContext()), workload(workload), target(target),
      isForOneLaunch(isForOneLaunch),
      dim(std::max(workload.headDim, workload.valueHeadDim)) {
  constexpr unsigned lengthDim = 2; // of batch, heads, length, dim
  auto key = cast<RankedTensorType>(op.getKey().getType());
  if (!key.isDynamicDim(lengthDim))
    keys = key.getDimSize(lengthDim);
  tiles.onGrid = getTarget(target).hasWarpgroups;
  // Wider ones fill shared memory alone.
  if (tiles.onGrid && dim <= 128)
    tiles.blocksPerSM = 2;
}

/// A part has a multiprocessor to itself more often than not, and asks for keys
/// further ahead.
void DecodePlans::setStages() {
  if (tiles.blocksPerSM != 1)
    tiles.stages = dim <= 64 ? 4 : tiles.splitKeys != 1 ? 3 : 2;
}

void DecodePlans::consider(LaunchCondition condition) {
  if (findObstacle(workload, tiles, getTarget(target)).empty())
    cases.push_back({std::move(condition), makePlan(context, target, tiles)});
}

static void limit(LaunchCondition &condition, LaunchQuantity quantity,
                  QuantityComparison::Kind kind, int64_t number) {
  condition.comparisons.push_back({{1, {quantity}}, {number, {}}, kind});
}

/// factor * product <= perMultiprocessor * multiprocessors
void DecodePlans::compare(LaunchCondition &condition, int64_t factor,
                          ArrayRef<LaunchQuantity> product,
                          int64_t perMultiprocessor) {
  int64_t common = std::gcd(factor, perMultiprocessor);
  condition.comparisons.push_back(
      {{factor / common, {product.begin(), product.end()}},
       {perMultiprocessor / common, {LaunchQuantity::Multiprocessors}},
       QuantityComparison::Kind::LessEqual});
}

LaunchCondition DecodePlans::limitQueries(int64_t queries) {
  LaunchCondition condition;
  if (workload.queries == 0)
    limit(condition, LaunchQuantity::QueryLength,
          QuantityComparison::Kind::LessEqual, queries);
  return condition;
}

/// Whether a program has so many keys at least, or may have.
bool DecodePlans::requireKeys(LaunchCondition &condition, int64_t least) {
  if (keys == 0)
    limit(condition, LaunchQuantity::KeyLength,
          QuantityComparison::Kind::GreaterEqual, least);
  return keys == 0 || keys >= least;
}

/// One tile of narrow heads with few keys is mostly its beginning and its end:
/// three share a multiprocessor then. True if there are no other sizes.
bool DecodePlans::considerFewKeys(LaunchCondition condition) {
  if (tiles.blocksPerSM == 1 || dim > 64 || keys > fewKeys)
    return false;
  Tiles usual = tiles;
  tiles.blocksPerSM = tiles.stages = 3;
  if (keys == 0)
    limit(condition, LaunchQuantity::KeyLength,
          QuantityComparison::Kind::LessEqual, fewKeys);
  size_t before = cases.size();
  consider(std::move(condition));
  tiles = usual;
  return keys != 0 && cases.size() != before;
}

/// Where `condition` holds: as many parts as fill the multiprocessors once.
void DecodePlans::shareKeys(const LaunchCondition &condition) {
  int64_t heads = workload.headsPerKeyHead;
  int64_t most = isForOneLaunch ? mostParts : mostOfAll;
  for (int64_t parts = most; parts != 1; parts /= 2) {
    tiles.splitKeys = parts;
    int64_t least = parts * (parts == 2 ? keysPerHalf : keysPerPart);
    LaunchCondition sized = condition;
    if (seesFew(least) || !requireKeys(sized, least))
      continue;
    int64_t perTile =
        heads == 0 ? tiles.packedHeads : std::min(tiles.packedHeads, heads);
    compare(sized, parts, LaunchQuantity::BatchHeads, perTile);
    // A tile has no rows of other key heads.
    if (heads == 0 && perTile != 1)
      compare(sized, parts, LaunchQuantity::BatchKeyHeads, 1);
    setStages();
    consider(std::move(sized));
  }
  tiles.splitKeys = 1;
  setStages();
  if (!considerFewKeys(condition))
    consider(condition);
}

/// A prompt in chunks: tiles are full, and fewer than multiprocessors.
void DecodePlans::shareKeysOfFullTiles() {
  tiles.packedHeads = 1;
  for (int64_t parts : {8, 4, 2}) {
    tiles.splitKeys = parts;
    int64_t least = parts * keysPerPartOfTiles;
    LaunchCondition condition = limitQueries(mostQueries);
    if (seesFew(least) || !requireKeys(condition, least))
      continue;
    int64_t fill = tiles.blocksPerSM;
    compare(condition, parts,
            {LaunchQuantity::BatchHeads, LaunchQuantity::QueryLength},
            tiles.blockQ * fill);
    setStages();
    consider(std::move(condition));
  }
}

SmallVector<PlanCase> DecodePlans::pick() {
  // A head by itself is the same for all rows of a tile, and so is what a mask
  // reads of it.
  if (isForOneLaunch && workload.headsPerKeyHead == 0 &&
      workload.queries <= tiles.blockQ) {
    LaunchCondition condition = limitQueries(tiles.blockQ);
    condition.comparisons.push_back({{1, {LaunchQuantity::BatchHeads}},
                                     {1, {LaunchQuantity::BatchKeyHeads}},
                                     QuantityComparison::Kind::LessEqual});
    shareKeys(condition);
  }
  // As many heads as the queries leave rows for; few queries come first.
  for (int64_t packed = mostHeads; packed != 0; packed /= 2) {
    tiles.packedHeads = packed;
    int64_t queries = tiles.blockQ / packed;
    int64_t heads = workload.headsPerKeyHead;
    if ((heads != 0 && packed > heads) || workload.queries > queries)
      continue;
    shareKeys(limitQueries(queries));
    // Fewer heads in a tile are for more queries.
    if (workload.queries != 0)
      return std::move(cases);
  }
  shareKeysOfFullTiles();
  return std::move(cases);
}

SmallVector<PlanCase> plan::pickDecodePlans(ScoredOp op, TargetKind target,
                                            bool isForOneLaunch) {
  Workload workload = getWorkload(op);
  if (target == TargetKind::CPU || !isWanted(workload))
    return {};
  return DecodePlans(op, workload, target, isForOneLaunch).pick();
}
