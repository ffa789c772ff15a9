//===- ErrorRule.h - is a result close enough to float64? -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CHECK_ERRORRULE_H
#define ATTN_CHECK_ERRORRULE_H

#include "attn/Execute/Operands.h"
#include <string>

namespace attn {

/// What the error rule asks of a call, beside its results.
struct ErrorTerms {
  /// Of query, key, value and output.
  ElementKind element = ElementKind::F32;
  /// What gradients are computed from; empty without gradients.
  std::vector<double> lse = {};
  /// Each f32 product is three of TF32.
  bool isSplit = false;
  /// The largest magnitude in value.
  double largestValue = 0;
  /// What a score, and so the lse, may lose: to tensor cores (ErrorTerms.h),
  /// and in a score function (measureScoreLoss).
  double cutOff = 0, scoreLoss = 0;
};

/// Gradients and tangents have the rule (C16) of attn.attention_backward:
/// ```
/// e(g) <= max(3 e(g0), u) + 1e-4
/// ```
/// with u at the largest |r| of this gradient, in the input type or its own,
/// the coarser one; and d_query is exactly 0 where lse is -inf (C10).
///
/// Where that fails for the gradient of a capture or of the sink, e(g) is
/// measured once more, from r with delta from output as it was saved. Such a
/// gradient may sum thousands of terms that nearly cancel: the rounding of
/// output is then most of e(g), and 3 e(g0) is below it when other roundings of
/// g0 happen to offset it.
struct GradientReport {
  std::string name;
  double error = 0, referenceError = 0, bound = 0;
  /// The error is that from r with the saved output.
  bool isFromSaved = false;

  bool passes() const { return error <= bound; }
};

/// The error rule of the numerics contract (C20) and its rule for rows without
/// a visible key (C17). With r the same expression in float64, e(t) the largest
/// |t - r|, t0 the unfused evaluation in the input type, and u one unit in the
/// last place of that type at the largest |r|:
/// ```
/// e(o) <= max(2 e(t0), u) + 1e-5
/// |lse - r| <= 1e-4 + c + scoreLoss + one unit in the last place of f32 at |r|
/// rmse(o) <= 1.001 max(rmse(t0), rmse(r rounded to the input type))
/// rmse(o) <= 1.001 max(2 rmse(t0), rmse(r rounded to the input type))
///                                                where c is large
/// rmse(o) <= 2 rmse(t0) + 2^-22 largestValue     where products are split
/// ```
/// with c what tensor cores may cut off of a score; it is large where weights
/// lose more to it than to being rounded to the input type.
/// The root mean square error is judged from 4096 elements on: that of fewer
/// scatters. Infinities and NaN of r must be met exactly.
struct ErrorReport {
  double error = 0, referenceError = 0, bound = 0;
  double rmse = 0, referenceRmse = 0, rmseBound = 0;
  double lseError = 0, lseBound = 0;
  /// Some lse is too far off.
  bool missesLse = false;
  /// Some gradient of a capture or sink is too far off from r: `saved` may say
  /// why.
  bool missesSum = false;
  long emptyRows = 0;
  /// Gradients, and tangents, in the order of the outputs; beside gradients
  /// there are no o and lse.
  std::vector<GradientReport> gradients = {};
  bool hasOutput = true; // there are o and lse
  /// What is wrong; empty if nothing is.
  std::string failure;

  bool passes() const { return failure.empty(); }
};

/// What the score function may lose in f32: 2 e(s) of lse, with s evaluated in
/// f64 but for that function (C20).
double measureScoreLoss(const RunResult &float64, const RunResult &narrowScore);

/// `saved`: of gradients, float64 with delta from output as it was saved. It is
/// asked for where a gradient of a capture fails without it.
ErrorReport checkErrorRule(const RunResult &result, const RunResult &float64,
                           const RunResult &unfused, const ErrorTerms &terms,
                           const RunResult *saved = nullptr);

} // namespace attn

#endif // ATTN_CHECK_ERRORRULE_H
