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

using Plans = llvm::StringMap<double>;

namespace {
/// Neighbouring lengths that one plan serves.
struct LengthRange {
  int64_t firstQueries = 0, lastQueries = 0;
  /// How much slower than the fastest they are, over all lengths.
  Plans candidates;
};
} // namespace

/// How much slower than the fastest plan each one is.
static Plans slownessOf(const Measurement &result) {
  Plans slowness;
  for (const MeasuredPlan &measured : result.plans)
    slowness[measured.plan] = measured.seconds / result.plans.front().seconds;
  return slowness;
}

/// The plans of both, by the sum.
static Plans addPlans(const Plans &first, const Plans &second) {
  Plans both;
  for (const auto &entry : first)
    if (auto found = second.find(entry.first()); found != second.end())
      both[entry.first()] = entry.second + found->second;
  return both;
}

static const llvm::StringMapEntry<double> &fastestOf(const Plans &plans) {
  const llvm::StringMapEntry<double> *best = nullptr;
  for (const auto &entry : plans)
    if (!best || std::make_pair(entry.second, entry.first()) <
                     std::make_pair(best->second, best->first()))
      best = &entry;
  return *best;
}

/// The plans that are nearly as fast as the fastest with so many queries: the
/// measurements of `results`, which is not empty.
static Plans findCandidates(ArrayRef<const Measurement *> results) {
  Plans plans = slownessOf(*results.front());
  for (const Measurement *result : results.drop_front())
    if (Plans both = addPlans(plans, slownessOf(*result)); !both.empty())
      plans = std::move(both);
  double limit = fastestOf(plans).second * tolerance;
  Plans candidates;
  for (const auto &entry : plans)
    if (entry.second <= limit)
      candidates[entry.first()] = entry.second;
  return candidates;
}

/// Between two numbers: their geometric mean.
static int64_t between(int64_t low, int64_t high) {
  return static_cast<int64_t>(
      std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
}

/// The plans of those measurements, by the number of queries alone.
static SmallVector<LengthPlan>
planRanges(ArrayRef<const Measurement *> results) {
  std::vector<LengthRange> ranges;
  while (!results.empty()) {
    int64_t queries = results.front()->queries.value_or(0);
    ArrayRef<const Measurement *> same =
        results.take_while([&](const Measurement *r) {
          return r->queries.value_or(0) == queries;
        });
    results = results.drop_front(same.size());
    Plans candidates = findCandidates(same);
    Plans both;
    if (!ranges.empty())
      both = addPlans(ranges.back().candidates, candidates);
    if (both.empty()) {
      ranges.push_back({queries, queries, std::move(candidates)});
      continue;
    }
    ranges.back().lastQueries = queries;
    ranges.back().candidates = std::move(both);
  }
  SmallVector<LengthPlan> plans;
  for (size_t i = 0; i < ranges.size(); ++i) {
    LengthPlan &entry = plans.emplace_back();
    entry.plan = fastestOf(ranges[i].candidates).first().str();
    if (i + 1 < ranges.size())
      entry.maxQueries =
          between(ranges[i].lastQueries, ranges[i + 1].firstQueries);
  }
  return plans;
}

/// How much slower than the fastest plans those are that the rule takes, over
/// all measurements; a plan that was not measured there counts as twice as
/// slow.
static double slownessOf(ArrayRef<LengthPlan> plans,
                         ArrayRef<const Measurement *> results) {
  double sum = 0;
  for (const Measurement *result : results) {
    int64_t queries = result->queries.value_or(0);
    const LengthPlan *taken = llvm::find_if(plans, [&](const LengthPlan &plan) {
      return queries <= plan.maxQueries.value_or(queries) &&
             (!plan.maxRows ||
              (result->rows && *result->rows <= *plan.maxRows));
    });
    Plans slowness = slownessOf(*result);
    auto found = slowness.find(taken->plan);
    sum += found == slowness.end() ? 2 : found->second;
  }
  return sum / static_cast<double>(results.size());
}

SmallVector<LengthPlan>
plan::planLengths(ArrayRef<const Measurement *> results) {
  SmallVector<int64_t> rows;
  for (const Measurement *result : results)
    if (result->rows)
      rows.push_back(*result->rows);
  llvm::sort(rows);
  rows.erase(llvm::unique(rows), rows.end());

  // The limit between few and many blocks that gains most; none, unless one
  // gains as much as is told from noise.
  SmallVector<LengthPlan> best = planRanges(results);
  double least = slownessOf(best, results) / tolerance;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    SmallVector<const Measurement *> few, many;
    for (const Measurement *result : results)
      (result->rows && *result->rows <= rows[i] ? few : many).push_back(result);
    SmallVector<LengthPlan> plans = planRanges(few);
    for (LengthPlan &plan : plans)
      plan.maxRows = between(rows[i], rows[i + 1]);
    llvm::append_range(plans, planRanges(many));
    if (double slowness = slownessOf(plans, results); slowness < least) {
      least = slowness;
      best = std::move(plans);
    }
  }
  return best;
}

LaunchCondition SizeLimits::condition() const {
  LaunchCondition condition;
  if (maxRows) {
    QuantityComparison &few = condition.comparisons.emplace_back();
    few.lhs.quantities = {LaunchQuantity::BatchHeads,
                          LaunchQuantity::QueryLength};
    few.rhs = {*maxRows, {LaunchQuantity::Multiprocessors}};
  }
  if (maxQueries) {
    QuantityComparison &upTo = condition.comparisons.emplace_back();
    upTo.lhs.quantities = {LaunchQuantity::QueryLength};
    upTo.rhs.factor = *maxQueries;
  }
  return condition;
}

std::string plan::printLengthPlans(ArrayRef<LengthPlan> plans) {
  std::string text;
  for (const LengthPlan &entry : plans) {
    std::string condition = entry.condition().print();
    text += (text.empty() ? "" : "; ") + condition +
            (condition.empty() ? "" : " -> ") + entry.plan;
  }
  return text;
}
