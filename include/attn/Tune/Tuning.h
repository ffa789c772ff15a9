//===- Tuning.h - the fastest legal plan, by measurement -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TUNE_TUNING_H
#define ATTN_TUNE_TUNING_H

#include "attn/Plan/Results.h"
#include "attn/Support/LLVM.h"
#include "attn/Tune/Trial.h"

#include <functional>
#include <map>

namespace attn {

struct TuningRequest {
  /// Target (a GPU), function, forward, passes (those of all plans), operands,
  /// repeats, ptxas. With a plan only that one is measured.
  TrialRequest trial;
  /// All legal plans, and not only the one the compiler would take.
  bool tune = false;
  /// Only what would be measured, and what is expected of it.
  bool dryRun = false;
  /// Artifacts by their plans, for other shapes of the same function: those
  /// that are there are not compiled again.
  std::map<std::string, Artifact> *compiled = nullptr;
  /// What is going on, a line at a time: 3 of 40, …
  std::function<void(const std::string &)> progress;
};

/// One plan.
struct Candidate {
  std::string plan;
  /// The plan model's.
  double clocksPerScore = 0;
  bool isPick = false;
  /// Why it was not measured; empty if it was, or nothing is.
  std::string refusal;
  double compileSeconds = 0;
  int64_t registers = -1, spillBytes = -1;
  std::vector<KernelInfo> kernels; // what a call launches, in order
  std::optional<Timing> timing;
};

struct TuningReport {
  TrialStatus status = TrialStatus::Ok;
  std::string message;

  std::string function, device;
  int64_t multiprocessors = 0; // of the device
  plan::ResultKey key;
  std::vector<std::string> shapes;
  Work work;
  std::vector<Candidate> candidates;

  /// The fastest one; null if none was measured.
  const Candidate *best() const;
  /// For the results file.
  plan::Measurement result() const;
};

/// Compiles the candidates one after the other; then calls them in turn, in
/// another random order each round, so that what the device does in the
/// meantime (clocks, heat) meets all of them alike. With `tune`, the three
/// fastest are then measured again, beside the same plans with every scheduler.
TuningReport runTuning(ModuleOp module, const TuningRequest &request);

} // namespace attn

#endif // ATTN_TUNE_TUNING_H
