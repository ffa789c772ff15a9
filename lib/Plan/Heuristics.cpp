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

using namespace attn;
using namespace attn::plan;

namespace {
enum class Regions { Any, None };

/// The first row whose conditions hold is taken.
struct Row {
  int64_t elementBytes;
  int64_t maxHeadDim; // of query and value, padded
  Regions regions;    // None: neither score nor mask
  Tiles tiles;        // block_q, block_k, warps, stages, q_in_registers
};
} // namespace

// Measured with sm_80 code on an H200, s = 2048 to 16384.
static const Row sm80Rows[] = {
    {2, 64, Regions::None, {128, 128, 4, 2, false}},
    {2, 64, Regions::Any, {128, 64, 4, 2, true}},
    {2, 128, Regions::Any, {128, 64, 4, 2, false}},
    {2, 256, Regions::Any, {64, 64, 4, 1, false}},
    {4, 64, Regions::Any, {64, 64, 4, 2, false}},
    {4, 128, Regions::Any, {64, 64, 4, 1, false}},
    {4, 256, Regions::Any, {64, 32, 4, 1, false}},
};

static const Row cpuRows[] = {
    {2, 256, Regions::Any, {16, 32}},
    {4, 256, Regions::Any, {16, 32}},
};

std::optional<Tiles> plan::lookupHeuristic(const Workload &workload,
                                           TargetKind target) {
  int64_t dim =
      std::max(padHeadDim(workload.headDim), padHeadDim(workload.valueHeadDim));
  bool plain = !workload.hasScore && !workload.hasMask;
  for (const Row &row : target == TargetKind::CPU
                            ? llvm::ArrayRef<Row>(cpuRows)
                            : llvm::ArrayRef<Row>(sm80Rows))
    if (row.elementBytes == workload.elementBytes && dim <= row.maxHeadDim &&
        (row.regions == Regions::Any || plain))
      return row.tiles;
  return std::nullopt;
}
