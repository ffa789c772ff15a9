//===- Timing.h - measured times of a call -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXECUTE_TIMING_H
#define ATTN_EXECUTE_TIMING_H

#include <algorithm>
#include <vector>

namespace attn {

/// Seconds per call, over `samples` samples of `callsPerSample` calls.
struct Timing {
  double median = 0, best = 0;
  int samples = 0, callsPerSample = 1;
};

inline Timing summarize(std::vector<double> seconds, int callsPerSample) {
  std::sort(seconds.begin(), seconds.end());
  Timing timing;
  timing.samples = static_cast<int>(seconds.size());
  timing.callsPerSample = callsPerSample;
  if (!seconds.empty()) {
    timing.best = seconds.front();
    timing.median = seconds[seconds.size() / 2];
  }
  return timing;
}

} // namespace attn

#endif // ATTN_EXECUTE_TIMING_H
