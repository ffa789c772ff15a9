//===- Heuristics.cpp - measured choices ----------------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Plan.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>

using namespace attn;
using namespace attn::plan;

namespace {
/// The first row whose conditions hold is taken.
struct Row {
  int64_t elementBytes;
  int64_t maxHeadDim; // of query and value, padded
  Tiles tiles;        // block_q, block_k, warps, stages, q_in_registers
  int64_t maxValueHeadDim = 256;
  /// Query lengths from here on, known, of which blocks of block_q add little.
  int64_t minQueries = 0;
  std::optional<bool> hasMask = std::nullopt;

  bool takes(const Workload &workload) const {
    int64_t valueDim = padHeadDim(workload.valueHeadDim);
    int64_t dim = std::max(padHeadDim(workload.headDim), valueDim);
    if (elementBytes != workload.elementBytes || dim > maxHeadDim ||
        valueDim > maxValueHeadDim || (hasMask && *hasMask != workload.hasMask))
      return false;
    if (minQueries == 0)
      return true;
    // At most one row in twenty is padding.
    int64_t rows = llvm::alignTo(workload.queries, tiles.blockQ);
    return workload.queries >= minQueries &&
           (rows - workload.queries) * 20 <= workload.queries;
  }
};
} // namespace

// 16-bit: from timings of a hand-made kernel of the same structure at d = 64,
// 128 and 256, sm_80 code on an H200, s = 2048 and 8192. For d <= 64 without a
// mask block_k = 128 was 8 % faster than this row, but the compiler's kernel
// spills registers with it. f32: not measured, chosen to fit.
static const Row sm80Rows[] = {
    {2, 64, {128, 64, 4, 2, true}},  {2, 128, {128, 64, 4, 2, false}},
    {2, 256, {64, 64, 4, 1, false}}, {4, 64, {64, 64, 4, 2, false}},
    {4, 128, {64, 64, 4, 1, false}}, {4, 256, {64, 32, 4, 1, false}},
};

// 16-bit: the fastest tile sizes of about two hundred hand-made kernels on an
// H200, which for d = 128 depend on the length; the compiler's own have not
// been timed. f32: chosen to fit.
static const Row sm90Rows[] = {
    {2, 64, {256, 64, 16, 2, false}},
    {2, 96, {192, 96, 12, 2, false}},
    {2, 112, {192, 80, 12, 2, false}},
    {2, 128, {192, 64, 12, 2, false}, 256, 4096, false},
    {2, 128, {192, 80, 12, 2, false}, 256, 4096, true},
    {2, 128, {128, 128, 8, 2, false}},
    {2, 160, {128, 96, 8, 2, false}},
    {2, 192, {128, 128, 8, 2, false}, 128},
    {2, 256, {128, 64, 8, 2, false}},
    {4, 64, {64, 64, 4, 2, false}},
    {4, 128, {64, 64, 4, 1, false}},
    {4, 256, {64, 32, 4, 1, false}},
};

static const Row cpuRows[] = {
    {2, 256, {16, 32}},
    {4, 256, {16, 32}},
};

static llvm::ArrayRef<Row> rowsOf(const TargetInfo &target) {
  if (target.sm >= 90)
    return sm90Rows;
  if (target.sm >= 80)
    return sm80Rows;
  return cpuRows;
}

std::optional<Tiles> plan::lookupHeuristic(const Workload &workload,
                                           const TargetInfo &target) {
  for (const Row &row : rowsOf(target))
    if (row.takes(workload))
      return row.tiles;
  return std::nullopt;
}
