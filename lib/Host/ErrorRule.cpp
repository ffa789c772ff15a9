//===- ErrorRule.cpp - is a result close enough to float64? -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Host/ErrorRule.h"

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace attn;

static bool isSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

namespace {
struct Distance {
  double largest = 0, rmse = 0;
  size_t worst = 0;
};
} // namespace

static Distance distance(const std::vector<double> &values,
                         const std::vector<double> &reference) {
  Distance result;
  double squares = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (isSame(values[i], reference[i]))
      continue;
    double error = std::fabs(values[i] - reference[i]);
    if (std::isnan(error))
      error = INFINITY;
    squares += error * error;
    if (error > result.largest) {
      result.largest = error;
      result.worst = i;
    }
  }
  if (!reference.empty())
    result.rmse = std::sqrt(squares / reference.size());
  return result;
}

/// How far the lse of a row may be off. From 512 on f32 itself is hardly finer
/// than 1e-4.
static double allowedOfLse(double lse, double scoreLoss) {
  double size = std::fabs(lse);
  bool isLarge = size >= 512 && std::isfinite(size);
  return 1e-4 + scoreLoss + (isLarge ? 0x1p-22 * size : 0);
}

static void checkLse(const RunResult &result, const RunResult &float64,
                     double scoreLoss, ErrorReport &report,
                     std::ostringstream &failure) {
  Distance lse = distance(result.lse, float64.lse);
  report.lseError = lse.largest;
  report.lseBound = allowedOfLse(0, scoreLoss);
  for (size_t i = 0; i < float64.lse.size(); ++i) {
    double got = result.lse[i], wanted = float64.lse[i];
    double allowed = allowedOfLse(wanted, scoreLoss);
    if (isSame(got, wanted) || std::fabs(got - wanted) <= allowed)
      continue;
    failure << "error of lse " << std::fabs(got - wanted) << " > " << allowed
            << " at row " << i << ": " << got << ", float64 gives " << wanted
            << "; ";
    return;
  }
}

/// Rows without a visible key: o = 0 and lse = -inf (N4). Needs lse.
static long checkEmptyRows(const RunResult &result, const RunResult &float64,
                           std::ostringstream &failure) {
  long rows = 0;
  size_t columns =
      float64.lse.empty() ? 0 : float64.o.size() / float64.lse.size();
  for (size_t i = 0; i < float64.lse.size(); ++i) {
    if (float64.lse[i] != -INFINITY)
      continue;
    ++rows;
    bool isZero = true;
    for (size_t c = 0; c < columns; ++c)
      isZero &= result.o[i * columns + c] == 0;
    if (!isZero || result.lse[i] != -INFINITY)
      failure << "row " << i << " has no visible key: o must be 0 and lse -inf,"
              << " got lse " << result.lse[i] << (isZero ? "" : ", o not 0")
              << "; ";
  }
  return rows;
}

ErrorReport attn::checkErrorRule(const RunResult &result,
                                 const RunResult &float64,
                                 const RunResult &unfused, double scoreLoss) {
  ErrorReport report;
  std::ostringstream failure;
  if (result.o.size() != float64.o.size() ||
      unfused.o.size() != float64.o.size() ||
      result.lse.size() != float64.lse.size()) {
    report.failure = "results of different sizes";
    return report;
  }
  Distance own = distance(result.o, float64.o);
  Distance reference = distance(unfused.o, float64.o);
  report.error = own.largest;
  report.rmse = own.rmse;
  report.referenceError = reference.largest;
  report.referenceRmse = reference.rmse;
  report.bound = 2 * reference.largest + 1e-5;
  if (!(report.error <= report.bound))
    failure << "error of o " << report.error << " > " << report.bound
            << " at element " << own.worst << ": " << result.o[own.worst]
            << ", float64 gives " << float64.o[own.worst] << "; ";
  if (float64.o.size() >= 4096 && !(own.rmse <= reference.rmse + 1e-6))
    failure << "rmse of o " << own.rmse << " > " << reference.rmse << "; ";
  checkLse(result, float64, scoreLoss, report, failure);
  report.emptyRows = checkEmptyRows(result, float64, failure);
  report.failure = failure.str();
  if (!report.failure.empty())
    report.failure.resize(report.failure.size() - 2);
  return report;
}
