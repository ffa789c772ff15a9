//===- LengthPlans.cpp - measured plans for ranges of lengths -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Plan/Results.h"

#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace attn;
using namespace attn::plan;

/// Less is not told from noise, and no reason to compile another plan.
static constexpr double tolerance = 1.01;

namespace {
/// Neighbouring lengths that one plan serves.
struct LengthRange {
  int64_t firstQueries = 0, lastQueries = 0;
  /// How much slower than the fastest they are, over all lengths.
  llvm::StringMap<double> candidates;
};
} // namespace

/// The plans that are nearly as fast as the fastest.
static llvm::StringMap<double> findCandidates(const Result &result) {
  double fastest = result.plans.front().seconds;
  llvm::StringMap<double> candidates;
  for (const MeasuredPlan &measured : result.plans)
    if (measured.seconds <= fastest * tolerance)
      candidates[measured.plan] = measured.seconds / fastest;
  return candidates;
}

/// Adds the length to the range, if a plan serves both.
static bool extend(LengthRange &range, int64_t queries,
                   const llvm::StringMap<double> &candidates) {
  llvm::StringMap<double> both;
  for (const auto &entry : range.candidates)
    if (auto found = candidates.find(entry.first()); found != candidates.end())
      both[entry.first()] = entry.second + found->second;
  if (both.empty())
    return false;
  range.lastQueries = queries;
  range.candidates = std::move(both);
  return true;
}

static std::string fastestOf(const LengthRange &range) {
  const llvm::StringMapEntry<double> *best = nullptr;
  for (const auto &entry : range.candidates)
    if (!best || std::make_pair(entry.second, entry.first()) <
                     std::make_pair(best->second, best->first()))
      best = &entry;
  return best->first().str();
}

SmallVector<LengthPlan> plan::planLengths(ArrayRef<const Result *> results) {
  std::vector<LengthRange> ranges;
  for (const Result *result : results) {
    int64_t queries = result->queries.value_or(0);
    llvm::StringMap<double> candidates = findCandidates(*result);
    if (ranges.empty() || !extend(ranges.back(), queries, candidates))
      ranges.push_back({queries, queries, std::move(candidates)});
  }
  SmallVector<LengthPlan> plans;
  for (size_t i = 0; i < ranges.size(); ++i) {
    LengthPlan &entry = plans.emplace_back();
    entry.plan = fastestOf(ranges[i]);
    if (i + 1 < ranges.size())
      entry.maxQueries = static_cast<int64_t>(
          std::sqrt(static_cast<double>(ranges[i].lastQueries) *
                    static_cast<double>(ranges[i + 1].firstQueries)));
  }
  return plans;
}

std::string plan::printLengthPlans(ArrayRef<LengthPlan> plans) {
  std::string text;
  for (const LengthPlan &entry : plans) {
    text += text.empty() ? "" : "; ";
    if (entry.maxQueries)
      text += "query_length <= " + std::to_string(*entry.maxQueries) + " -> ";
    text += entry.plan;
  }
  return text;
}
