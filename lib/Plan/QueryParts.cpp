//===- QueryParts.cpp - blocks that share the keys of few queries ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of two programs of gradients that of d_query has a block for some queries of
// a head, which goes through all keys: few and long ones where queries are few
// and keys are many. With `split_keys` several blocks share these keys, and a
// kernel adds up their sums, in their order (Flash-Decoding does so with the
// forward: Dao et al., 2023). The other program has tiles enough: one for some
// keys. On an H200, of the time before: one head, 77 x 5000, d = 256 0.2; 8
// heads, 64 x 8192, d = 128 0.4, d = 64 0.5; 300 x 2000 0.65 and 0.73. With 32
// heads of 64 x 4096 it is 1.1 times, with 64 of 77 x 1024 1.2 to 1.25 times.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/Analysis/GradientPrograms.h"
#include "attn/Plan/ChoosePlans.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;

using Quantity = LaunchQuantity;
using Kind = QuantityComparison::Kind;

/// Keys of a part, at least, and how many times as many keys as queries.
static constexpr int64_t fewestKeys = 256, keysPerQuery = 4;
/// Rows of a tile of queries, about; and heads are few, one in so many
/// multiprocessors.
static constexpr int64_t rowsOfTile = 128, perHead = 6;
static constexpr int64_t numbersOfParts[] = {16, 8, 4, 2};

/// Whether so many parts of each tile have a multiprocessor each.
static LaunchCondition haveAllParts(int64_t parts) {
  std::vector<Quantity> device = {Quantity::Multiprocessors};
  return {{{{1, {Quantity::KeyLength}},
            {parts * fewestKeys, {}},
            Kind::GreaterEqual},
           {{1, {Quantity::KeyLength}},
            {keysPerQuery, {Quantity::QueryLength}},
            Kind::GreaterEqual},
           {{std::max(parts, perHead), {Quantity::BatchHeads}},
            {1, device},
            Kind::LessEqual},
           {{parts, {Quantity::BatchHeads, Quantity::QueryLength}},
            {rowsOfTile, device},
            Kind::LessEqual}}};
}

SmallVector<PlanCase> plan::addQueryParts(ScoredOp op,
                                          SmallVector<PlanCase> cases) {
  auto backward = dyn_cast<AttentionBackwardOp>(op.getOperation());
  if (!backward || !cases.back().plan ||
      cases.back().plan.getTarget() == TargetKind::CPU)
    return cases;
  // Where one program is possible, it is for few queries, too.
  if (llvm::any_of(cases, [&](const PlanCase &entry) {
        return computesOnce(backward, entry.plan);
      }))
    return cases;
  SmallVector<PlanCase> all;
  for (PlanCase &entry : cases) {
    for (int64_t parts : numbersOfParts) {
      LaunchCondition both = haveAllParts(parts);
      llvm::append_range(both.comparisons, entry.condition.comparisons);
      all.push_back({std::move(both), entry.plan.withSplitKeys(parts)});
    }
    all.push_back(std::move(entry));
  }
  return all;
}
