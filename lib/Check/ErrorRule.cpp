//===- ErrorRule.cpp - is a result close enough to float64? -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Check/ErrorRule.h"

#include "attn/Execute/HostTensor.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <sstream>

using namespace attn;
using llvm::ArrayRef;

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

/// One unit in the last place of `element` at `size`.
static double lastPlace(ElementKind element, double size) {
  int digits = element == ElementKind::BF16  ? 8
               : element == ElementKind::F16 ? 11
                                             : 24;
  if (size == 0 || !std::isfinite(size))
    return 0;
  return std::ldexp(1.0, std::ilogb(size) + 1 - digits);
}

static double allowedOfLse(double lse, double scoreLoss) {
  return 1e-4 + scoreLoss + lastPlace(ElementKind::F32, std::fabs(lse));
}

/// The finite element of the largest magnitude.
static double largestOf(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  return largest;
}

static double boundRmse(const RunResult &float64, double unfusedRmse,
                        const ErrorTerms &terms) {
  if (terms.isSplit)
    return 2 * unfusedRmse + 0x1p-22 * terms.largestValue;
  // Weights lose more to what is cut off of scores than to their rounding.
  if (terms.cutOff > lastPlace(terms.element, 0.5))
    unfusedRmse *= 2;
  std::vector<double> rounded;
  for (double value : float64.o)
    rounded.push_back(
        decodeElement(terms.element, encodeElement(terms.element, value)));
  return 1.001 * std::max(unfusedRmse, distance(rounded, float64.o).rmse);
}

static void checkLse(const RunResult &result, const RunResult &float64,
                     double scoreLoss, ErrorReport &report,
                     std::ostringstream &failure) {
  Distance lse = distance(result.lse, float64.lse);
  report.lseError = lse.largest;
  report.lseBound =
      allowedOfLse(float64.lse.empty() ? 0 : float64.lse[lse.worst], scoreLoss);
  for (size_t i = 0; i < float64.lse.size(); ++i) {
    double got = result.lse[i], wanted = float64.lse[i];
    double allowed = allowedOfLse(wanted, scoreLoss);
    if (isSame(got, wanted) || std::fabs(got - wanted) <= allowed)
      continue;
    report.missesLse = true;
    failure << "error of lse " << std::fabs(got - wanted) << " > " << allowed
            << " at row " << i << ": " << got << ", float64 gives " << wanted
            << "; ";
    return;
  }
}

double attn::measureScoreLoss(const RunResult &float64,
                              const RunResult &narrowScore) {
  double largest = 0;
  for (auto [wide, narrow] : llvm::zip_equal(float64.lse, narrowScore.lse))
    if (std::isfinite(wide) && std::isfinite(narrow))
      largest = std::max(largest, std::fabs(wide - narrow));
  return 2 * largest;
}

/// Rows without a visible key: o = 0 and lse = -inf (C17). Needs lse.
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

/// d_query of rows without a visible key, which is exactly 0 (C10).
static long checkEmptyRows(const Gradient &dQuery, ArrayRef<double> lse,
                           std::ostringstream &failure) {
  long rows = 0;
  size_t columns = lse.empty() ? 0 : dQuery.values.size() / lse.size();
  for (auto [i, sum] : llvm::enumerate(lse)) {
    if (sum != -INFINITY)
      continue;
    ++rows;
    auto row = ArrayRef(dQuery.values).slice(i * columns, columns);
    if (!llvm::all_of(row, [](double value) { return value == 0; }))
      failure << "row " << i << " has no visible key: " << dQuery.name
              << " must be 0; ";
  }
  return rows;
}

static GradientReport measureGradient(const Gradient &got,
                                      const Gradient &exact,
                                      const Gradient &unfused,
                                      ElementKind element) {
  GradientReport report;
  report.name = got.name;
  report.error = distance(got.values, exact.values).largest;
  report.referenceError = distance(unfused.values, exact.values).largest;
  double largest = largestOf(exact.values);
  double unit =
      std::max(lastPlace(element, largest), lastPlace(got.element, largest));
  report.bound = std::max(3 * report.referenceError, unit) + 1e-4;
  return report;
}

static void describeError(const GradientReport &report, const Gradient &got,
                          const Gradient &exact, std::ostringstream &failure) {
  size_t worst = distance(got.values, exact.values).worst;
  failure << "error of " << got.name << " " << report.error << " > "
          << report.bound << " at element " << worst << ": "
          << got.values[worst] << ", float64 gives " << exact.values[worst]
          << "; ";
}

static void checkGradients(const RunResult &result, const RunResult &float64,
                           const RunResult &unfused, const RunResult *saved,
                           const ErrorTerms &terms, ErrorReport &report,
                           std::ostringstream &failure) {
  for (auto [i, got] : llvm::enumerate(result.gradients)) {
    const Gradient *exact = &float64.gradients[i];
    const Gradient &plain = unfused.gradients[i];
    if (got.values.size() != exact->values.size() ||
        plain.values.size() != exact->values.size() ||
        (saved && saved->gradients[i].values.size() != exact->values.size())) {
      failure << got.name << " has different sizes; ";
      continue;
    }
    GradientReport measured =
        measureGradient(got, *exact, plain, terms.element);
    bool isSum = got.role == ArgumentRole::CaptureGradient ||
                 got.role == ArgumentRole::SinkGradient;
    if (isSum && !measured.passes()) {
      report.missesSum = true;
      if (saved) {
        exact = &saved->gradients[i];
        measured.error = distance(got.values, exact->values).largest;
        measured.isFromSaved = true;
      }
    }
    if (!measured.passes())
      describeError(measured, got, *exact, failure);
    report.gradients.push_back(measured);
    if (got.role == ArgumentRole::QueryGradient)
      report.emptyRows = checkEmptyRows(got, terms.lse, failure);
  }
}

ErrorReport attn::checkErrorRule(const RunResult &result,
                                 const RunResult &float64,
                                 const RunResult &unfused,
                                 const ErrorTerms &terms,
                                 const RunResult *saved) {
  ErrorReport report;
  std::ostringstream failure;
  if (result.o.size() != float64.o.size() ||
      unfused.o.size() != float64.o.size() ||
      result.lse.size() != float64.lse.size() ||
      result.gradients.size() != float64.gradients.size() ||
      unfused.gradients.size() != float64.gradients.size() ||
      (saved && saved->gradients.size() != float64.gradients.size())) {
    report.failure = "results of different sizes";
    return report;
  }
  report.hasOutput = result.gradients.empty() || !result.o.empty();
  Distance own = distance(result.o, float64.o);
  Distance reference = distance(unfused.o, float64.o);
  report.error = own.largest;
  report.rmse = own.rmse;
  report.referenceError = reference.largest;
  report.referenceRmse = reference.rmse;
  report.bound = std::max(2 * reference.largest,
                          lastPlace(terms.element, largestOf(float64.o))) +
                 1e-5;
  report.rmseBound = boundRmse(float64, reference.rmse, terms);
  if (!(report.error <= report.bound))
    failure << "error of o " << report.error << " > " << report.bound
            << " at element " << own.worst << ": " << result.o[own.worst]
            << ", float64 gives " << float64.o[own.worst] << "; ";
  if (float64.o.size() >= 4096 && !(own.rmse <= report.rmseBound))
    failure << "rmse of o " << own.rmse << " > " << report.rmseBound << "; ";
  checkLse(result, float64, terms.cutOff + terms.scoreLoss, report, failure);
  report.emptyRows = checkEmptyRows(result, float64, failure);
  checkGradients(result, float64, unfused, saved, terms, report, failure);
  report.failure = failure.str();
  if (!report.failure.empty())
    report.failure.resize(report.failure.size() - 2);
  return report;
}
