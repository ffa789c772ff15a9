//===- Budget.h - bytes and registers of a plan --------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pure arithmetic on a plan and the sizes it is for; no IR.
//
// Shared memory holds one query tile and two rings, of keys and of values:
//
//   query   block_q x pad(d)  elements
//   keys    stages x block_k x pad(d)
//   values  stages x block_k x pad(dv)
//
// where pad rounds up to the depth of a matrix instruction, 16. On sm_90a tiles
// of 16-bit elements lie in panels of 128, 64 or 32 bytes per row (whole ones)
// at multiples of 1024 bytes, and every slot has two barriers of 8 bytes. These
// bytes are exact: they are what the warp room allocates.
//
// The kernels of gradients hold two tiles, of block_q rows of pad(d) and
// pad(dv), and the same two rings: the one of queries and d_output, with keys
// and values in the rings, and the one of keys and values, with the others in
// them, and two rows of f32 in rings of their own.
//
// The kernel of tangents holds the tile of the queries and that of their
// tangents, and four rings: keys, values and the tangents of both. In registers
// scores, weights and output are there twice.
//
// Registers per thread are an estimate: the two f32 accumulators (scores and
// output), the query fragment if it is kept, three row statistics, and a fixed
// allowance for operand fragments, addresses and loop counters. On sm_90a there
// are also the weights in flight, and a limit per group of four warps: the
// registers of a multiprocessor are shared out when the kernel starts. What
// ptxas allocates is reported by the target room.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLAN_BUDGET_H
#define ATTN_PLAN_BUDGET_H

#include "attn/Support/TargetInfo.h"
#include "attn/Support/VariantRule.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::plan {

/// Keys in the blocks that tiles of a size visit, of each query: in blocks of
/// which the mask shows a part, and in those of which it shows all.
struct TileVisits {
  int64_t blockQ = 0, blockK = 0;
  double partial = 0, full = 0;
};

/// What of an attention the choice of a plan depends on.
struct Workload {
  int64_t headDim = 0;
  int64_t valueHeadDim = 0;
  int64_t elementBytes = 0;
  bool hasScore = false;
  bool isSoftcap = false; // the score function, and no more
  bool hasMask = false;
  /// The mask is one comparison of positions, as the causal one is: about half
  /// of the blocks are full.
  bool isHalf = false;
  /// The mask shows keys here and there: of several intervals, every few, or as
  /// data say that are read by position.
  bool isScattered = false;
  /// By a number of each key, one of each query or none, and positions as they
  /// are.
  bool comparesFew = false;
  /// So many aligned queries, and keys, are alike in the mask, as in a map of
  /// blocks; 0: all are, 1: that is not known.
  int64_t queryGrain = 1, keyGrain = 1;
  /// Whether tiles of such a size lie in one of those blocks each.
  bool hasBlocks(int64_t queries, int64_t keys) const {
    return queryGrain != 1 && keyGrain != 1 && queryGrain % queries == 0 &&
           keyGrain % keys == 0;
  }
  /// What tiles of some sizes visit; empty: that is about the same, or not
  /// known.
  std::vector<TileVisits> visits = {};
  /// So many remainders say which of every few keys the mask shows; 0: it shows
  /// others, or that is not known.
  int64_t periods = 0;
  /// The mask shows keys of the query's document, of which the data are sorted.
  bool isOfDocuments = false;
  /// About so many keys near the query show, and few others, as in a window; 0:
  /// as many as there are, or that is not known.
  int64_t nearKeys = 0;
  /// A query sees so many keys, at most and but for the first queries; 0: more,
  /// or that is not known.
  int64_t seenKeys = 0;
  /// The mask shows one interval of keys, both ends of which move with the
  /// query.
  bool isWindow = false;
  bool hasCaptures = false; // of tensors
  /// The score function reads a captured tensor by the query's or key's number.
  bool readsByPosition = false;
  /// What it reads so is a number or two of each query or of each key, not of a
  /// distance between them or of a place in a table.
  bool readsRows = false;
  /// All that it reads by both is 16-bit floats of the query and the key, in
  /// rows of keys: tiles that come to shared memory as those of keys do.
  bool readsPairs = false;
  bool hasDropout = false;
  bool hasIeeeProducts = false; // f32 without tensor cores
  bool isBackward = false;      // attn.attention_backward
  /// There: the scores' gradient is not that of what they are made into, or
  /// comes with sums of numbers that are read by position.
  bool hasPullback = false;
  /// There: sums may be made in any order, so one program may have all
  /// products.
  bool inAnyOrder = false;
  bool isJvp = false; // attn.attention_jvp
  /// Query heads that share a key head, 0 if it is not known.
  int64_t headsPerKeyHead = 0;
  /// Query length, 0 if it is not known.
  int64_t queries = 0;
  /// At most so many rows of all batch entries and heads for each
  /// multiprocessor, 0 if it is not known.
  int64_t rows = 0;
};

/// Up to so many queries, and up to so many rows of all batch entries and heads
/// for each multiprocessor; none: any number.
struct SizeLimits {
  std::optional<int64_t> maxQueries, maxRows;

  LaunchCondition condition() const;
  /// As many queries and rows as there may be.
  Workload applyTo(Workload workload) const {
    workload.queries = maxQueries.value_or(workload.queries);
    workload.rows = maxRows.value_or(workload.rows);
    return workload;
  }
  bool operator==(const SizeLimits &other) const {
    return maxQueries == other.maxQueries && maxRows == other.maxRows;
  }
  bool operator!=(const SizeLimits &other) const { return !(*this == other); }
};

/// The numbers of a plan.
struct Tiles {
  int64_t blockQ = 0;
  int64_t blockK = 0;
  int64_t warps = 1;
  int64_t stages = 1;
  bool qInRegisters = false;
  int64_t consumerRegisters = 0; // 0: what shareRegisters gives
  int64_t blocksPerSM = 1;       // with roles
  bool onGrid = false;        // a block of threads has one tile: no scheduler
  int64_t splitKeys = 1;      // blocks that share the keys of a query block
  int64_t packedHeads = 1;    // query heads that have rows in a tile
  bool isSync = false;        // products are waited for: no warp-make-async
  bool testsAhead = false;    // every loop does: warp-test-ahead
  bool takesTurns = true;     // where there are groups: warp-insert-turns
  bool endsTakeTurns = false; // those of a tile, too: warp-turn-ends
};

/// A head dimension as tiles hold it.
int64_t padHeadDim(int64_t dim);

/// Tiles of shared memory that a kernel names: one slot, or a ring of several,
/// which each step fills anew.
struct TileBuffer {
  std::string_view name;
  int64_t slotBytes = 0;
  int64_t slots = 1;
  bool isRing = false;
};

/// What a kernel holds of a tile in registers, of each thread.
struct TileRegisters {
  std::string_view name;
  int64_t count = 0;
};

/// What a kernel needs, as its builder states it, and may have.
struct Budget {
  std::vector<TileBuffer> buffers;
  std::vector<TileRegisters> tiles;
  int64_t barrierBytes = 0;
  int64_t allowance = 0;     // registers per thread beside those of tiles
  int64_t registerLimit = 0; // per thread

  /// One that is there.
  const TileBuffer &getBuffer(std::string_view name) const;
  int64_t sharedBytes() const;
  /// What a step copies: a slot of each ring.
  int64_t stepBytes() const;
  int64_t registers() const; // per thread, estimated
  /// "Q tile 16384 B + K ring 2 x 8192 B + V ring 2 x 8192 B = 49152 B"
  std::string describeShared() const;
};

/// That of the forward kernel, of the larger one of its gradients, or of its
/// tangents.
Budget computeBudget(const Workload &workload, const Tiles &tiles,
                     const TargetInfo &target);

/// How many such blocks run on one multiprocessor at a time.
int64_t blocksPerSM(const Budget &budget, const Tiles &tiles,
                    const TargetInfo &target);

/// Why `tiles` cannot be compiled for `target`, in words; empty if it can.
std::string findObstacle(const Workload &workload, const Tiles &tiles,
                         const TargetInfo &target);

} // namespace attn::plan

#endif // ATTN_PLAN_BUDGET_H
