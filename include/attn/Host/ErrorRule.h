//===- ErrorRule.h - is a result close enough to float64? -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_ERRORRULE_H
#define ATTN_HOST_ERRORRULE_H

#include <string>
#include <vector>

namespace attn {

/// What one run gave, row-major: o[rows][columns], lse[rows] (may be empty).
struct RunResult {
  std::vector<double> o, lse;
};

/// The error rule of the numerics contract (N9) and its rule for rows without
/// a visible key (N4). With r the same expression in float64, e(t) the largest
/// |t - r|, and t0 the unfused evaluation in the input type:
/// ```
/// e(o) <= 2 e(t0) + 1e-5,   |lse - r| <= 1e-4 + scoreLoss,
/// rmse(o) <= rmse(t0) + 1e-6   (judged from 4096 elements on)
/// ```
/// with what tensor cores may cut off of large scores (ScoreLoss.h); and one
/// unit in the last place of f32 more for an lse from 512 on. Infinities and
/// NaN of r must be met exactly.
struct ErrorReport {
  double error = 0, referenceError = 0, bound = 0;
  double rmse = 0, referenceRmse = 0;
  double lseError = 0, lseBound = 0;
  long emptyRows = 0;
  /// What is wrong; empty if nothing is.
  std::string failure;

  bool passes() const { return failure.empty(); }
};

ErrorReport checkErrorRule(const RunResult &result, const RunResult &float64,
                           const RunResult &unfused, double scoreLoss = 0);

} // namespace attn

#endif // ATTN_HOST_ERRORRULE_H
