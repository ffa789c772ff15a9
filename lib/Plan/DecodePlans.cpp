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
// Products of f32 take ten times as long, so that fewer keys are worth a part,
// and one block leaves half of a multiprocessor idle.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"
#include "llvm/Support/MathExtras.h"

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

namespace {
/// What is worth the merging of parts.
struct Worth {
  /// A part has at least so many keys, of two parts each.
  int64_t keysPerPart, keysPerHalf;
  /// Where queries fill tiles there is more to merge: then so many.
  int64_t keysPerPartOfTiles, mostQueries;
};
} // namespace
static constexpr Worth ofHalves{256, 1024, 2048, 1024},
    ofF32{64, 128, 128, 4096};

static bool isWanted(const Workload &workload) {
  return !workload.isBackward && !workload.isJvp && !workload.hasDropout;
}

namespace {
/// The plans of one tile, and for which sizes they are.
class DecodePlans {
public:
  DecodePlans(ScoredOp op, const Workload &workload, TargetKind target,
              bool isForOneLaunch);

  SmallVector<PlanCase> pick();

private:
  void setTilesOfF32(int64_t rows);
  void setRows(int64_t packed);
  void shareKeysOfOneHead();
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
  Worth worth = ofHalves;
  /// Blocks of a multiprocessor: of tiles with few queries, and of full ones.
  int64_t fillOfFew = 1, fillOfFull = 1;
  static constexpr int64_t fullRows = 64;
  Tiles tiles{/*blockQ=*/fullRows, /*blockK=*/64, /*warps=*/4, /*stages=*/2};
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
  if (workload.elementBytes == 4)
    return; // setRows
  tiles.onGrid = getTarget(target).hasWarpgroups;
  // Wider ones fill shared memory alone.
  if (tiles.onGrid && dim <= 128)
    tiles.blocksPerSM = fillOfFull = 2;
}

/// A warp for each 16 rows, and as many keys as leave registers, and room for
/// two warps on each quarter of a multiprocessor, of few rows one.
void DecodePlans::setTilesOfF32(int64_t rows) {
  constexpr int64_t mostWarps = 8, fewWarps = 4;
  worth = ofF32;
  tiles.stages = 1;
  tiles.blockQ = rows;
  tiles.warps = rows / layout::groupRows;
  bool isFull = rows == fullRows;
  const TargetInfo &info = getTarget(target);
  for (int64_t blockK : {64, 32, 16}) {
    if (blockK == 64 && (dim > 64 || !isFull))
      continue;
    tiles.blockK = blockK;
    int64_t blocks =
        blocksPerSM(computeBudget(workload, tiles, info), tiles, info);
    fillOfFew = fillOfFull =
        std::clamp<int64_t>(blocks, 1, mostWarps / tiles.warps);
    if (blocks * tiles.warps >= (isFull ? mostWarps : fewWarps))
      return;
  }
}

/// As many rows as the queries of `packed` heads, if they are known, which have
/// eight rows each.
void DecodePlans::setRows(int64_t packed) {
  tiles.packedHeads = packed;
  if (workload.elementBytes != 4)
    return;
  int64_t rows = std::max({layout::groupRows, layout::rowsOfSwizzle * packed,
                           workload.queries * packed});
  bool isKnown = workload.queries != 0 && rows <= fullRows;
  setTilesOfF32(isKnown ? llvm::PowerOf2Ceil(rows) : fullRows);
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

/// Where `condition` holds: as many parts as fill the multiprocessors.
void DecodePlans::shareKeys(const LaunchCondition &condition) {
  int64_t heads = workload.headsPerKeyHead;
  int64_t most = isForOneLaunch ? mostParts : mostOfAll;
  for (int64_t parts = most; parts != 1; parts /= 2) {
    tiles.splitKeys = parts;
    int64_t least =
        parts * (parts == 2 ? worth.keysPerHalf : worth.keysPerPart);
    LaunchCondition sized = condition;
    if (seesFew(least) || !requireKeys(sized, least))
      continue;
    int64_t perTile =
        heads == 0 ? tiles.packedHeads : std::min(tiles.packedHeads, heads);
    compare(sized, parts, LaunchQuantity::BatchHeads, perTile * fillOfFew);
    // A tile has no rows of other key heads.
    if (heads == 0 && perTile != 1)
      compare(sized, parts, LaunchQuantity::BatchKeyHeads, fillOfFew);
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
  setRows(/*packed=*/1);
  for (int64_t parts : {8, 4, 2}) {
    tiles.splitKeys = parts;
    int64_t least = parts * worth.keysPerPartOfTiles;
    LaunchCondition condition = limitQueries(worth.mostQueries);
    if (seesFew(least) || !requireKeys(condition, least))
      continue;
    compare(condition, parts,
            {LaunchQuantity::BatchHeads, LaunchQuantity::QueryLength},
            tiles.blockQ * fillOfFull);
    setStages();
    consider(std::move(condition));
  }
}

/// A head by itself is the same for all rows of a tile, and so is what a mask
/// reads of it.
void DecodePlans::shareKeysOfOneHead() {
  setRows(/*packed=*/1);
  bool hasFewRows = workload.elementBytes == 4 && workload.queries == 0;
  for (int64_t rows = hasFewRows ? layout::groupRows : tiles.blockQ;
       rows <= fullRows; rows *= 2) {
    if (hasFewRows)
      setTilesOfF32(rows);
    LaunchCondition condition = limitQueries(rows);
    condition.comparisons.push_back({{1, {LaunchQuantity::BatchHeads}},
                                     {1, {LaunchQuantity::BatchKeyHeads}},
                                     QuantityComparison::Kind::LessEqual});
    shareKeys(condition);
    if (workload.queries != 0)
      return;
  }
}

SmallVector<PlanCase> DecodePlans::pick() {
  if (isForOneLaunch && workload.headsPerKeyHead == 0 &&
      workload.queries <= fullRows)
    shareKeysOfOneHead();
  // As many heads as the queries leave rows for; few queries come first.
  for (int64_t packed = mostHeads; packed != 0; packed /= 2) {
    int64_t queries = fullRows / packed;
    int64_t heads = workload.headsPerKeyHead;
    if ((heads != 0 && packed > heads) || workload.queries > queries)
      continue;
    setRows(packed);
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
