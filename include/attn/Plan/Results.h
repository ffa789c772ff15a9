//===- Results.h - measured plans, and the best of them -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file that attn-bench writes and the compiler reads: which plans were
// measured for which kernels, on which device. A kernel stays a function of the
// operation, the plan and the compiler; the file only picks the plan where none
// is given.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLAN_RESULTS_H
#define ATTN_PLAN_RESULTS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/LLVM.h"

#include <string>
#include <vector>

namespace attn::plan {

/// What a measurement stands for: any attention that agrees in this.
struct ResultKey {
  std::string target;  // "sm_90a"
  std::string element; // "bf16"
  int64_t headDim = 0, valueHeadDim = 0;
  bool hasMask = false, hasScore = false; // as regions or variants

  bool operator==(const ResultKey &other) const;
  /// "sm_90a bf16 128/128 masked scored".
  std::string describe() const;
};

ResultKey getResultKey(AttentionOp op, StringRef target);

struct MeasuredPlan {
  std::string plan; // as in IR
  double seconds = 0;
};

struct Result {
  ResultKey key;
  std::string device, shapes;      // where and on what it was measured
  std::vector<MeasuredPlan> plans; // the fastest first
};

/// A results file.
class Results {
public:
  /// From a file's text, or from the file; failure with the reason in `error`.
  static FailureOr<Results> parse(StringRef text, std::string &error);
  static FailureOr<Results> read(StringRef path, std::string &error);
  std::string print() const;

  /// What is known of such a kernel; null if nothing.
  const Result *find(const ResultKey &key) const;
  /// Replaces what was known of such a kernel. The plans may be in any order.
  void insert(Result result);

  const std::vector<Result> &entries() const { return results; }

private:
  std::vector<Result> results;
};

} // namespace attn::plan

#endif // ATTN_PLAN_RESULTS_H
