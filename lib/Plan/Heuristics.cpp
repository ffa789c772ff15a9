//===- Heuristics.cpp - measured choices ----------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Plan.h"

#include <algorithm>
#include <limits>

using namespace attn;
using namespace attn::plan;

namespace {
/// The tiles for what all conditions hold for.
struct Row {
  Row(int64_t elementBytes, int64_t maxHeadDim, Tiles tiles)
      : elementBytes(elementBytes), maxHeadDim(maxHeadDim), tiles(tiles) {}

  Row maxValue(int64_t dim) && { return maxValueHeadDim = dim, *this; }
  /// Queries and values of just that dimension.
  Row exactly() && { return isExact = true, *this; }
  Row mask(bool has) && { return hasMask = has, *this; }
  /// With a mask, of which half is visible.
  Row half() && { return hasMask = isHalf = true, *this; }
  Row scattered() && { return isScattered = true, *this; }
  Row comparingFew() && { return comparesFew = true, *this; }
  /// A map of blocks that tiles of such a size divide.
  Row blocks(int64_t queries, int64_t keys) && {
    return blockQueries = queries, blockKeys = keys, *this;
  }
  /// With so many remainders in the mask.
  Row periods(int64_t most) && { return mostPeriods = most, *this; }
  Row documents() && { return isOfDocuments = true, *this; }
  Row window() && { return isWindow = true, *this; }
  Row score(bool has) && { return hasScore = has, *this; }
  Row softcap() && { return isSoftcap = true, *this; }
  Row captures(bool has) && { return hasCaptures = has, *this; }
  Row byPosition(bool has = true) && { return readsByPosition = has, *this; }
  /// Numbers of each query or key in the score, which the mask hides no part
  /// of by data.
  Row rowsOfScores() && { return hasRows = true, *this; }
  /// What the score reads by position are numbers of queries or keys at most.
  Row withoutTables() && { return hasNoTables = true, *this; }
  Row readsPairs() && { return hasPairs = true, *this; }
  Row dropout(bool has) && { return hasDropout = has, *this; }
  /// No score function, no random numbers, and nothing read by position.
  Row plain() && { return hasScore = hasCaptures = hasDropout = false, *this; }
  Row backward() && { return isBackward = true, *this; }
  Row jvp() && { return isJvp = true, *this; }
  Row pullback(bool has) && { return hasPullback = has, *this; }
  Row inAnyOrder() && { return isInAnyOrder = true, *this; }
  /// One of several for a mask that was run (Workload::visits): the one whose
  /// time is the least counts, by what a key in a visited block takes of it, in
  /// blocks of which a part is shown and in those of which all is.
  Row visiting(double partial, double full) && {
    return perPartial = partial, perFull = full, *this;
  }
  Row upTo(int64_t queries) && { return limits.maxQueries = queries, *this; }
  /// With so few rows for each multiprocessor.
  Row rows(int64_t most) && { return limits.maxRows = most, *this; }
  Row onGrid() && { return tiles.onGrid = true, *this; }
  Row sync() && { return tiles.isSync = true, *this; }
  Row testAhead() && { return tiles.testsAhead = true, *this; }
  Row noTurns() && { return tiles.takesTurns = false, *this; }
  Row turnEnds() && { return tiles.endsTakeTurns = true, *this; }

  bool takes(const Workload &workload) const {
    return suits(workload) && (!isChosen() || findVisits(workload));
  }
  /// Whatever is known of its visits.
  bool suits(const Workload &workload) const {
    int64_t valueDim = padHeadDim(workload.valueHeadDim);
    int64_t dim = std::max(padHeadDim(workload.headDim), valueDim);
    return elementBytes == workload.elementBytes &&
           isBackward == workload.isBackward && isJvp == workload.isJvp &&
           dim <= maxHeadDim && valueDim <= maxValueHeadDim &&
           (!isExact || (workload.headDim == maxHeadDim &&
                         workload.valueHeadDim == maxHeadDim)) &&
           (!hasMask || *hasMask == workload.hasMask) &&
           (!isHalf || *isHalf == workload.isHalf) &&
           (!isScattered || workload.isScattered) &&
           (!comparesFew || workload.comparesFew) &&
           (blockQueries == 0 || workload.hasBlocks(blockQueries, blockKeys)) &&
           isWithin(workload.periods, mostPeriods) &&
           (!isOfDocuments || workload.isOfDocuments) &&
           (!isWindow || workload.isWindow) &&
           (!hasScore || *hasScore == workload.hasScore) &&
           (!isSoftcap || workload.isSoftcap) &&
           (!hasCaptures || *hasCaptures == workload.hasCaptures) &&
           (!readsByPosition || *readsByPosition == workload.readsByPosition) &&
           (!hasRows || (workload.readsRows && !workload.isScattered &&
                         !workload.isOfDocuments)) &&
           (!hasNoTables || !workload.readsByPosition || workload.readsRows) &&
           (!hasPairs || workload.readsPairs) &&
           (!hasDropout || *hasDropout == workload.hasDropout) &&
           (!hasPullback || *hasPullback == workload.hasPullback) &&
           (!isInAnyOrder || workload.inAnyOrder) &&
           isWithin(workload.queries, limits.maxQueries) &&
           isWithin(workload.rows, limits.maxRows);
  }

  /// By its time.
  bool isChosen() const { return perFull != 0; }
  const TileVisits *findVisits(const Workload &workload) const {
    for (const TileVisits &visits : workload.visits)
      if (visits.blockQ == tiles.blockQ && visits.blockK == tiles.blockK)
        return &visits;
    return nullptr;
  }
  double getTime(const Workload &workload) const {
    // What a tile takes beside its blocks, in keys of a full one.
    constexpr double ofTile = 70;
    const TileVisits *visits = findVisits(workload);
    return perPartial * visits->partial + perFull * (visits->full + ofTile);
  }

  /// Is a size, 0 if it is not known, within its limit, if it has one?
  static bool isWithin(int64_t size, std::optional<int64_t> limit) {
    return !limit || (size > 0 && size <= *limit);
  }

  int64_t elementBytes;
  int64_t maxHeadDim; // of query and value, padded
  Tiles tiles;        // block_q, block_k, warps, stages, q_in_registers
  int64_t maxValueHeadDim = 256, blockQueries = 0, blockKeys = 0;
  bool isExact = false, isBackward = false, isInAnyOrder = false, isJvp = false,
       isScattered = false, isOfDocuments = false, isWindow = false,
       isSoftcap = false, hasRows = false, hasNoTables = false,
       hasPairs = false, comparesFew = false;
  std::optional<bool> hasMask, isHalf, hasScore, hasCaptures, hasDropout,
      hasPullback, readsByPosition;
  std::optional<int64_t> mostPeriods;
  double perPartial = 0, perFull = 0;
  SizeLimits limits; // known to be at most
};
} // namespace

// The first row that takes a workload counts.
//
// 16-bit: from timings at d = 64, 128 and 256, sm_80 code on an H200, s = 2048
// to 16384. At d = 128 block_k = 48 is as fast as 64 with a mask and 3 % slower
// without, but spills nothing, also where the driver compiles it for sm_90.
// Random numbers take registers that are not there with the queries in them, or
// with 48 keys at d = 128 (ptxas 13.0). f32: see sm_90a; at d = 128 ptxas
// spills 630 bytes of 128 x 32. Maps of blocks (see sm_90a; d = 64 and 128, one
// block in ten): 64 by 64 are 4.0 and 3.8 times as fast with 64 x 64 tiles, at
// d = 128 128 by 128 1.4 times with 32 keys, which 48 do not divide.
static const Row sm80Rows[] = {
    Row(2, 64, {128, 64, 4, 2, false}).dropout(true),
    Row(2, 128, {128, 32, 4, 2, false}).dropout(true),
    Row(2, 64, {128, 64, 4, 2, true}).blocks(128, 64),
    Row(2, 64, {64, 64, 4, 2, false}).blocks(64, 64),
    Row(2, 128, {128, 32, 4, 2, false}).blocks(128, 64),
    Row(2, 128, {64, 64, 4, 1, false}).blocks(64, 64),
    Row(2, 64, {128, 64, 4, 2, true}),
    Row(2, 128, {128, 48, 4, 2, false}),
    Row(2, 256, {64, 64, 4, 1, false}),
    Row(4, 64, {64, 64, 4, 1, false}).plain().rows(128),
    Row(4, 64, {128, 32, 4, 1, false}),
    Row(4, 128, {64, 32, 4, 1, false}).mask(true),
    Row(4, 128, {64, 32, 4, 1, false}).plain().rows(128),
    Row(4, 96, {128, 32, 4, 1, false}),
    Row(4, 128, {128, 16, 4, 1, false}),
    Row(4, 160, {64, 32, 4, 1, false}).plain().rows(64),
    Row(4, 160, {128, 32, 8, 1, false}),
    Row(4, 192, {64, 16, 4, 1, false}).plain().rows(64),
    Row(4, 192, {128, 16, 8, 1, false}),
    Row(4, 256, {64, 32, 4, 1, false}),
};

// 16-bit: the fastest of the plans measured on an H200, with and without a
// mask, s = 512 to 16384 (test/Benchmark/results/plans-sm_90a.json,
// share/attn/plans.json). Three warpgroups are faster from about 2000 queries
// on, where 192 rows waste little. Masks that show keys here and there leave
// less half-empty in small tiles (of an H100, d = 64, s = 8192: every fourth
// key of a window, first keys and a window, global tokens are 1.17 to 1.27
// times as fast as with 256 rows; a captured prefix is 1.15 times as fast with
// 256). Documents of sorted data want three warpgroups at d = 64 (of an H200,
// 1024 to 8192 tokens, 1.01 to 1.15 times as fast), neighbourhoods in two
// dimensions two (1.15 with 128 columns, 0.96 with 32), and what one remainder
// picks of an interval 128 keys at d = 128 (1.05 to 1.11). There masks that
// read data want 128 keys, too: seven of them, of pairs, of queries and of
// keys, are 1.07 to 1.43 times as fast (an H200, s = 8192), but a map of blocks
// of 100 0.80 times. Several remainders want two warpgroups at d <= 64:
// neighbourhoods in three dimensions and tiles of a video are 1.16 to 1.28
// times as fast (d = 48 and 64), cubes of 384 tokens, which 256 rows do not
// divide, 10.6 times. Through a window groups of queries go each at its own
// pace, without turns (of 1024 keys, an H200: 1.03 to 1.05 times as fast at d
// <= 64; with 192 x 64 tiles 1.02 to 1.10 times at d = 80 to 128), and so they
// do under short causal masks at d = 80 to 112 (1.02 to 1.07). Where four
// groups have no mask, and two a causal one at d = 128, the ends of a tile take
// turns, too (1.01 to 1.04, 1.01 to 1.02). Score functions want registers, or
// warpgroups to hide behind: softcaps at d = 64 four of them (of an H200, 1.18
// times as fast as three at 1024 queries, 1.04 times at 8192); so do random
// numbers, which spill with four warpgroups, and what is read by position, most
// of which spills with 128 keys at d = 128. Numbers of each query or key arrive
// beside the turns (InsertTurns.cpp): at d = 64 256 rows are 1.05 to 1.34 times
// as fast as 192 x 64 without a mask, 192 x 96 0.99 to 1.09 times with a causal
// one; at d = 128 192 x 64 is 0.99 to 1.15 times as fast as 128 x 96 without,
// 1.09 to 1.15 times as 128 x 64 with one, where numbers of each head want 128
// keys (1.11; of an H200, 8192 tokens).
// Biases of each query and key that come as tiles do (TileToWarp/
// StageGathers.cpp) have place beside two stages of 128 x 128 up to d = 96, and
// not beside three of 192 x 96: 1.9 times as fast at d = 96 (an H200).
// Which tiles short and long rows want at d = 64 and 128: an H100
// (test/Benchmark/results/length-plans.json). With so few rows that each tile
// of 64 has a multiprocessor to itself, such tiles take 0.5 to 0.8 of the time
// (test/Benchmark/results/short-tiles.json).
//
// Masks of positions alone that are more than intervals are run for some
// queries (MaskSample.cpp). What a key takes in blocks of which a part or all
// is shown is a fit to 29 masks of papers and models, each with three tiles, at
// d = 64 and 128 (an H200, 8192 tokens): the tile it names is 1.016 and 1.014
// times as slow as the fastest of the three in geometric mean, the rows
// below 1.059 and 1.049 times. The last 16 keys of each 128 are 1.42 times as
// fast with 256 x 64 tiles as with 128 x 128 at d = 64; of an image's row and
// column, of each 128th distance, and of landmarks 128 x 128 is 1.15 to 1.17
// times as fast as 128 x 64 at d = 128.
//
// f32, of an H200: 32 rows for a warp split each key once for two products: 8 x
// 16 heads of 1024 tokens take 0.71 (d = 112) to 0.91 (d = 64) of the time of
// 16 rows. But a step of 64 x 32 takes half as long as one of 128 x 32: where
// each tile has a multiprocessor they take 0.55, behind a causal mask 4 x 12
// heads of 577 tokens 0.7 to 0.8 and 8 x 16 of 1024 0.97 to 1.05 (d = 112,
// 128). At d = 256 128 x 32 by 8 warps takes 0.64 of the time of 64 x 32, with
// few tiles 1.25.
//
// Tiles of a map of blocks lie in one block each: pairs of others are tested
// one by one. Of an H200, s = 8192, 1 to 50 % of the blocks shown: blocks of 64
// by 64 take 64 x 64 tiles 5.2 to 8.7 times as fast as 128 x 128 at d = 64, 2.4
// to 4.0 times as 128 x 64 at d = 128, 2.3 to 3.5 times at d = 160 and 256 (2
// and 15 %); blocks of 128 by 64 128 x 64 tiles 3.9 to 6.9 times as 128 x 128
// at d = 64. At d = 80 and 96 (2 and 15 %) tiles of 192 rows take 6.0 to 8.5
// times as long for blocks of 128 by 128, 7.3 to 9.4 times for 64 by 64.
// Smaller blocks of a map are tested in any case, fewer pairs of them in small
// tiles: with 128 x 64 32 by 32 are 1.0 to 2.0 times as fast at d <= 96.
// One number of each key and query, d = 64, an H200, 8192 tokens: 192 x 96 is
// 1.02 to 1.19 times as fast as 128 x 128 for 11 of 15 masks, 0.91 for a zigzag
// and 0.95 to 1.00 for three others; with two numbers of each query 0.82.
static const Row sm90Rows[] = {
    Row(2, 64, {64, 128, 4, 2, false}).plain().mask(false).rows(64).onGrid(),
    Row(2, 64, {64, 128, 4, 2, false}).plain().half().rows(64).onGrid(),
    Row(2, 64, {128, 64, 8, 4, false}).plain().mask(false).rows(128).onGrid(),
    Row(2, 64, {128, 64, 8, 4, false}).plain().half().rows(128).onGrid(),
    Row(2, 128, {64, 64, 4, 4, false}).plain().mask(false).rows(64).onGrid(),
    Row(2, 128, {64, 64, 4, 4, false}).plain().half().rows(64).onGrid(),
    Row(2, 112, {128, 128, 8, 2, false})
        .score(false)
        .dropout(false)
        .blocks(128, 128),
    Row(2, 128, {128, 64, 8, 4, false}).blocks(128, 64),
    Row(2, 160, {128, 64, 8, 3, false}).blocks(128, 64),
    Row(2, 256, {128, 64, 8, 2, false}).blocks(128, 64),
    Row(2, 128, {64, 64, 4, 4, false}).blocks(64, 64),
    Row(2, 160, {64, 64, 4, 3, false}).blocks(64, 64),
    Row(2, 256, {64, 64, 4, 2, false}).blocks(64, 64),
    Row(2, 112, {128, 64, 8, 4, false}).captures(true).blocks(1, 1),
    Row(2, 64, {192, 64, 12, 4, false}).dropout(true),
    Row(2, 64, {256, 64, 16, 4, false})
        .score(true)
        .dropout(false)
        .mask(false)
        .rowsOfScores(),
    Row(2, 64, {192, 96, 12, 3, false}).score(true).rowsOfScores(),
    Row(2, 64, {192, 64, 12, 4, false}).score(true).captures(true),
    Row(2, 64, {192, 96, 12, 3, false}).score(true).scattered(),
    Row(2, 64, {256, 64, 16, 4, false}).softcap().window().noTurns(),
    Row(2, 64, {256, 64, 16, 4, false}).softcap(),
    Row(2, 64, {192, 96, 12, 3, false}).score(true),
    Row(2, 64, {256, 64, 16, 4, false}).window().plain().noTurns(),
    Row(2, 64, {192, 96, 12, 3, false}).plain().visiting(1.63, 1),
    Row(2, 64, {256, 64, 16, 4, false}).plain().visiting(1.8, 1.03),
    Row(2, 64, {128, 128, 8, 2, false}).plain().visiting(1.73, 1.16),
    Row(2, 56, {128, 128, 8, 2, false}).scattered(),
    Row(2, 56, {128, 128, 8, 2, false}).periods(4),
    Row(2, 56, {256, 64, 16, 4, false}),
    Row(2, 64, {192, 96, 12, 3, false}).documents(),
    Row(2, 64, {192, 96, 12, 3, false})
        .score(false)
        .dropout(false)
        .comparingFew(),
    Row(2, 64, {128, 128, 8, 2, false}).scattered(),
    Row(2, 64, {128, 128, 8, 2, false}).periods(4),
    Row(2, 64, {256, 64, 16, 4, false}).mask(true),
    Row(2, 64, {256, 64, 16, 4, false}).upTo(5792).turnEnds(),
    Row(2, 64, {192, 128, 12, 1, false}),
    Row(2, 112, {192, 64, 12, 4, false}).window().plain().noTurns(),
    Row(2, 112, {192, 64, 12, 4, false}).window().softcap().noTurns(),
    Row(2, 112, {192, 64, 12, 4, false}).window().score(true).captures(false),
    Row(2, 112, {192, 64, 12, 4, false})
        .half()
        .score(false)
        .dropout(false)
        .upTo(1536)
        .noTurns(),
    Row(2, 112, {128, 128, 8, 2, false}).upTo(1536),
    Row(2, 96, {128, 128, 8, 2, false}).readsPairs(),
    Row(2, 96, {192, 96, 12, 3, false}),
    Row(2, 112, {192, 80, 12, 2, false}),
    Row(2, 128, {128, 64, 8, 4, false}).window().plain().upTo(1536),
    Row(2, 128, {192, 64, 12, 4, false}).window().plain().noTurns(),
    Row(2, 128, {192, 64, 12, 4, false}).window().softcap().noTurns(),
    Row(2, 128, {192, 64, 12, 2, false}).score(true).captures(false),
    Row(2, 128, {128, 64, 8, 4, false})
        .half()
        .score(false)
        .dropout(false)
        .upTo(5792)
        .turnEnds(),
    Row(2, 128, {192, 64, 12, 2, false}).plain().visiting(1.14, 1),
    Row(2, 128, {128, 128, 8, 2, false}).plain().visiting(1.07, 1.02),
    Row(2, 128, {128, 64, 8, 4, false}).plain().visiting(1.21, 1.05),
    Row(2, 128, {128, 128, 8, 1, false}).half().score(false).dropout(false),
    Row(2, 128, {128, 128, 8, 1, false}).periods(1).score(false).dropout(false),
    Row(2, 128, {128, 64, 8, 4, false}).captures(true).blocks(1, 1),
    Row(2, 128, {128, 64, 8, 4, false}).documents(),
    Row(2, 128, {128, 128, 8, 2, false})
        .scattered()
        .captures(true)
        .score(false)
        .dropout(false),
    Row(2, 128, {192, 64, 12, 2, false})
        .score(true)
        .dropout(false)
        .rowsOfScores(),
    Row(2, 128, {128, 128, 8, 2, false})
        .half()
        .score(true)
        .captures(true)
        .byPosition(false),
    Row(2, 128, {128, 64, 8, 4, false}).mask(true),
    Row(2, 128, {128, 96, 8, 2, false}).byPosition(),
    Row(2, 128, {128, 64, 8, 4, false}).score(false).dropout(false).upTo(1024),
    Row(2, 128, {128, 128, 8, 2, false}),
    Row(2, 160, {128, 64, 8, 3, false}),
    Row(2, 192, {128, 128, 8, 2, false}).maxValue(128),
    Row(2, 256, {128, 64, 8, 2, false}),
    Row(4, 64, {64, 64, 4, 1, false}).plain().rows(128),
    Row(4, 64, {128, 32, 4, 2, false}),
    Row(4, 128, {64, 32, 4, 1, false}).mask(true),
    Row(4, 128, {64, 32, 4, 1, false}).plain().rows(128),
    Row(4, 128, {128, 32, 4, 1, false}),
    Row(4, 256, {64, 32, 4, 1, false}).plain().rows(64),
    Row(4, 256, {128, 32, 8, 1, false}),
};

// Gradients, 16-bit: the fastest of the few tiles that were timed on an H100, d
// = 64 and 128, s = 4096 (test/Benchmark/results/backward.json); sm_80, d = 64:
// 128 x 32 is 1.05 to 1.14 times as fast as 64 x 64 (s = 1024 and 4096); d =
// 128, one program with all products: 128 x 64 is 1.05 to 1.11 times as fast as
// 64 x 64 (s = 1024 to 16384; causal 0.97 at 1024, 1.05 and 1.08 from 4096 on).
// Larger dimensions: chosen to fit. So are those of d = 128 whose score
// functions or random numbers want registers: with 64 keys they spill 100 to
// 3,200 bytes (ptxas 13.0), with 32 at most 380; score functions that are not
// linear none with a third stage, which leaves d_query no more than 128 rows
// (16 of them, in any order or not, under a causal mask). Of warpgroups a
// softcap spills 260 bytes with 64 keys and is 1.07 times as fast as with 32,
// where consumers have 240 registers (s = 8192); these make ALiBi 1.03 and
// documents 1.05 times as fast, causal attention 0.99. Maps of blocks: both
// programs have tiles of two sizes, each once of queries. One block in ten of
// 64 by 64, code on an H200, is 2.4 times as fast with 64 x 32 at d = 64, 1.16
// times at d = 128. f32, of an H200, 2 x 32 heads of 577 tokens and 8 x 16 of
// 1024: 64 x 32 takes 0.81 to 0.97 of the time of 64 x 16 at d = 80 to 112,
// 1.02 to 1.07 at d = 128. One program: 64 x 64 by 8 warps, two of which share
// rows, is 0.98 to 1.06 times as fast as 64 x 32 by 4 at d = 96, 1.06 to 1.2
// times at d = 112, 1.05 to 1.2 times as 64 x 16 at d = 128, and 0.9 to 0.96
// times at d = 80. Two sums of more columns do not fit 4 warps: there 64 x 32
// by 8 warps is 1.6 to 2.2 times as fast as three programs for d_key, d_value
// and d_query, in two programs 1.15 to 1.4 times.
static const Row sm80BackwardRows[] = {
    Row(2, 64, {128, 32, 4, 2, false}).backward().blocks(128, 128),
    Row(2, 64, {64, 32, 4, 2, false}).backward().blocks(64, 64),
    Row(2, 64, {128, 32, 4, 2, false}).backward(),
    Row(2, 128, {64, 32, 4, 2, false}).backward().dropout(true),
    Row(2, 128, {64, 32, 4, 2, false}).backward().pullback(true),
    Row(2, 128, {64, 32, 4, 2, false}).backward().score(true).captures(true),
    Row(2, 128, {128, 64, 8, 2, false})
        .exactly()
        .plain()
        .backward()
        .inAnyOrder(),
    Row(2, 128, {64, 64, 4, 2, false}).backward().blocks(128, 128),
    Row(2, 128, {64, 32, 4, 2, false}).backward().blocks(64, 64),
    Row(2, 128, {64, 64, 4, 2, false}).backward(),
    Row(2, 256, {64, 32, 4, 1, false}).backward(),
    Row(4, 64, {64, 32, 4, 2, false}).backward(),
    Row(4, 80, {64, 32, 4, 1, false}).backward(),
    Row(4, 128, {64, 64, 8, 1, false}).plain().backward().inAnyOrder(),
    Row(4, 128, {64, 32, 8, 1, false}).backward().inAnyOrder(),
    Row(4, 112, {64, 32, 4, 1, false}).backward(),
    Row(4, 128, {64, 16, 4, 1, false}).backward(),
    Row(4, 192, {64, 32, 8, 1, false}).backward(),
    Row(4, 256, {32, 32, 8, 1, false}).backward().inAnyOrder(),
    Row(4, 256, {64, 16, 4, 1, false}).backward(),
};
// Two programs at d = 64: a third stage makes them 1.00 to 1.03 times as fast,
// without a mask up to 3072; from 4096 on two stages do (1.004, 1.009, 1.015 at
// 4096, 8192, 16384). Under a causal mask 128 x 128 is 1.01 to 1.04 times as
// fast as 128 x 64 from 1536 on and 1.01 to 1.02 times as fast as 128 x 96 from
// 3072 on; at 1024 it is as fast, below 0.91 to 0.99 times (s = 200 to 900).
// Without products in flight they are 1.00 to 1.04 times as fast (s = 512 to
// 16384; 0.99 at 512 without a mask) and spill at most 16 bytes.
// One program with all products, s = 1024 to 16384: at d = 64 128 x 128 is 1.03
// to 1.11 times as fast as 128 x 64 (causal 0.97 to 1.10), with a third stage
// 1.02 to 1.04 times from 8192 on and 0.93 to 0.95 at 1024, as keys and values
// have one slot each then; at d = 128 240 registers are 1.00 to 1.05 times as
// fast as the usual, and tests ahead 1.00 times at 1024, 1.02 at 4096 and 1.02
// to 1.03 at 16384 (at d = 64 0.98 to 1.00); a softcap's is 1.33 times as fast
// as two programs.
// A bias that comes as tiles do leaves registers for 64 keys at d = 128, and
// spills nothing. What is added by numbers of each head, query or key spills 4
// to 220 bytes (8 to 16 lie in front of the loops and behind them), and is 1.0
// to 1.7 times as fast as two programs with 32 keys where no sums of these
// numbers come with it (an H200, 8192 tokens).
// At d = 80 to 112 a third stage and 240 registers make two programs 1.00 to
// 1.06 times as fast (an H200, s = 512 to 16384, with a causal mask or none;
// 0.94 to 0.96 times with 77 keys). Tests ahead make one program 1.01 to 1.03
// times as fast at 1024, 0.99 to 1.09 from 4096 on, and 64 keys one with a
// score function that reads captures 1.25 to 1.36 times, but for biases of
// pairs at d = 112, which spill. At d = 64 tests ahead make one program behind
// masks of data 1.00 to 1.07 times as fast (4096 tokens).
// Larger dimensions: of an H100, s = 1024 and 4096, where these take 0.5 to
// 0.84 of the time of 64 x 32 (test/Benchmark/results/backward-wide.json); at d
// = 256 with a score or a mask of data, of an H200, s = 4096: 128 x 64 with 240
// registers is 1.02 to 1.18 times as fast as 128 x 32.
// Maps of blocks, an H200, s = 8192, 2 and 15 % of the blocks: with 64 x 64
// tiles those of 128 by 128 are 1.9 to 2.1 times as fast at d = 64 (d_query has
// 192 rows else), of 128 by 64 or 64 by 128 2.3 to 3.8 times, 1.7 to 2.0 at d =
// 128, of 64 by 64 3.5 to 4.5 and 2.5 to 3.2 times.
static const Row sm90BackwardRows[] = {
    Row(2, 64, {128, 128, 8, 2, false, 240})
        .plain()
        .mask(false)
        .backward()
        .inAnyOrder()
        .upTo(4096),
    Row(2, 64, {128, 128, 8, 3, false, 240})
        .plain()
        .mask(false)
        .backward()
        .inAnyOrder(),
    Row(2, 64, {128, 128, 8, 2, false, 240})
        .plain()
        .half()
        .backward()
        .inAnyOrder()
        .upTo(4096),
    Row(2, 64, {128, 128, 8, 3, false, 240})
        .plain()
        .half()
        .backward()
        .inAnyOrder(),
    Row(2, 64, {128, 64, 8, 2, false})
        .exactly()
        .backward()
        .inAnyOrder()
        .testAhead(),
    Row(2, 64, {128, 64, 8, 2, false}).backward().inAnyOrder(),
    Row(2, 64, {128, 128, 8, 3, false, 240})
        .plain()
        .mask(false)
        .backward()
        .upTo(3072)
        .sync(),
    Row(2, 64, {128, 128, 8, 2, false, 240})
        .plain()
        .mask(false)
        .backward()
        .sync(),
    Row(2, 64, {128, 64, 8, 3, false})
        .plain()
        .half()
        .backward()
        .upTo(1024)
        .sync(),
    Row(2, 64, {128, 128, 8, 2, false, 240}).plain().half().backward().sync(),
    Row(2, 64, {128, 64, 8, 3, false}).plain().backward(),
    Row(2, 64, {64, 64, 4, 3, false}).backward().blocks(64, 64),
    Row(2, 64, {128, 64, 8, 2, false}).backward(),
    Row(2, 96, {128, 64, 8, 3, false, 240})
        .dropout(false)
        .pullback(false)
        .backward()
        .inAnyOrder()
        .testAhead(),
    Row(2, 128, {128, 32, 8, 2, false}).backward().dropout(true),
    Row(2, 128, {128, 64, 8, 2, false, 240}).backward().softcap(),
    Row(2, 128, {128, 32, 8, 3, false}).backward().pullback(true),
    Row(2, 128, {128, 64, 8, 2, false, 240}).backward().readsPairs(),
    Row(2, 112, {128, 64, 8, 3, false, 240})
        .backward()
        .inAnyOrder()
        .testAhead(),
    Row(2, 112, {128, 64, 8, 3, false, 240}).plain().mask(false).backward(),
    Row(2, 112, {128, 64, 8, 3, false, 240}).plain().half().backward(),
    Row(2, 128, {128, 64, 8, 2, false, 240})
        .backward()
        .score(true)
        .captures(true)
        .withoutTables(),
    Row(2, 128, {128, 32, 8, 2, false}).backward().score(true).captures(true),
    Row(2, 128, {128, 64, 8, 2, false, 240})
        .exactly()
        .plain()
        .backward()
        .inAnyOrder()
        .testAhead(),
    Row(2, 128, {128, 64, 8, 3, false, 240}).backward().inAnyOrder(),
    Row(2, 128, {128, 64, 8, 2, false, 240}).backward().score(true),
    Row(2, 128, {128, 64, 8, 2, false, 240}).backward().blocks(128, 128),
    Row(2, 128, {64, 64, 4, 2, false}).backward().blocks(64, 64),
    Row(2, 128, {128, 64, 8, 2, false, 240}).backward().captures(true),
    Row(2, 128, {128, 64, 8, 2, false}).backward(),
    Row(2, 160, {128, 64, 8, 2, false}).backward(),
    Row(2, 192, {128, 64, 8, 2, false}).maxValue(128).backward(),
    Row(2, 192, {128, 64, 8, 1, false}).backward(),
    Row(2, 256, {128, 64, 8, 1, false}).plain().mask(false).backward(),
    Row(2, 256, {128, 32, 8, 2, false}).backward().dropout(true),
    Row(2, 256, {128, 64, 8, 1, false, 240}).backward().softcap(),
    Row(2, 256, {128, 32, 8, 2, false, 240}).backward().pullback(true),
    Row(2, 256, {128, 64, 8, 1, false, 240}).backward(),
    Row(4, 64, {64, 32, 4, 2, false}).backward(),
    Row(4, 80, {64, 32, 4, 1, false}).backward(),
    Row(4, 128, {64, 64, 8, 1, false}).plain().backward().inAnyOrder(),
    Row(4, 128, {64, 32, 8, 1, false}).backward().inAnyOrder(),
    Row(4, 112, {64, 32, 4, 1, false}).backward(),
    Row(4, 128, {64, 16, 4, 1, false}).backward(),
    Row(4, 256, {64, 32, 8, 1, false}).backward(),
};

// Tangents: chosen to fit. Two accumulators of value_dim columns leave no
// registers for values of more than 160.
static const Row sm80JvpRows[] = {
    Row(2, 64, {64, 32, 4, 2, false}).jvp(),
    Row(2, 128, {64, 32, 4, 2, false}).jvp(),
    Row(2, 160, {64, 16, 4, 1, false}).jvp(),
    Row(4, 64, {64, 32, 4, 1, false}).jvp(),
    Row(4, 160, {64, 16, 4, 1, false}).jvp(),
};
static const Row sm90JvpRows[] = {
    Row(2, 64, {128, 64, 8, 2, false}).jvp(),
    Row(2, 128, {128, 32, 8, 2, false}).jvp(),
    Row(2, 160, {64, 16, 4, 2, false}).jvp(),
    Row(4, 64, {64, 32, 4, 1, false}).jvp(),
    Row(4, 160, {64, 16, 4, 1, false}).jvp(),
};

static const Row cpuRows[] = {
    Row(2, 256, {16, 32}),
    Row(4, 256, {16, 32}),
    Row(2, 256, {16, 32}).backward(),
    Row(4, 256, {16, 32}).backward(),
    Row(2, 256, {16, 32}).jvp(),
    Row(4, 256, {16, 32}).jvp(),
};

static llvm::ArrayRef<Row> rowsOf(const Workload &workload,
                                  const TargetInfo &target) {
  if (target.sm != 0 && workload.isJvp)
    return target.hasWarpgroups ? llvm::ArrayRef<Row>(sm90JvpRows)
                                : sm80JvpRows;
  if (target.hasWarpgroups)
    return workload.isBackward ? llvm::ArrayRef<Row>(sm90BackwardRows)
                               : sm90Rows;
  if (target.sm != 0 && workload.isBackward)
    return sm80BackwardRows;
  return target.sm != 0 ? llvm::ArrayRef<Row>(sm80Rows) : cpuRows;
}

std::optional<Tiles> plan::lookupHeuristic(const Workload &workload,
                                           const TargetInfo &target) {
  const Row *first = nullptr;
  for (const Row &row : rowsOf(workload, target)) {
    if (first && !row.isChosen())
      break;
    if (!row.takes(workload))
      continue;
    if (!row.isChosen())
      return row.tiles;
    if (!first || row.getTime(workload) < first->getTime(workload))
      first = &row;
  }
  if (!first)
    return std::nullopt;
  return first->tiles;
}

bool plan::asksForVisits(const Workload &workload, const TargetInfo &target) {
  for (const Row &row : rowsOf(workload, target)) {
    if (row.isChosen() && row.suits(workload))
      return true;
    if (row.limits == SizeLimits() && row.takes(workload))
      return false;
  }
  return false;
}

SmallVector<SizeLimits> plan::listHeuristicLimits(const Workload &workload,
                                                  const TargetInfo &target) {
  SmallVector<SizeLimits> all;
  for (const Row &row : rowsOf(workload, target)) {
    const SizeLimits &limits = row.limits;
    // What is known is known of every launch.
    if ((limits.maxQueries && workload.queries != 0) ||
        (limits.maxRows && workload.rows != 0))
      continue;
    if (limits == SizeLimits()) {
      if (row.takes(workload))
        break; // whatever the sizes are
      continue;
    }
    if (row.takes(limits.applyTo(workload)) && !llvm::is_contained(all, limits))
      all.push_back(limits);
  }
  llvm::sort(all, [](const SizeLimits &a, const SizeLimits &b) {
    constexpr int64_t any = std::numeric_limits<int64_t>::max();
    return std::pair(a.maxRows.value_or(any), a.maxQueries.value_or(any)) <
           std::pair(b.maxRows.value_or(any), b.maxQueries.value_or(any));
  });
  return all;
}
