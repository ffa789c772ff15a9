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
// is given. One such file comes with the compiler: share/attn/plans.json.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLAN_RESULTS_H
#define ATTN_PLAN_RESULTS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Plan/Budget.h"
#include "attn/Support/LLVM.h"
#include "attn/Support/VariantRule.h"

#include <optional>
#include <string>
#include <vector>

namespace attn::plan {

/// What a measurement stands for: any attention, or gradients or tangents of
/// one, that agree in this.
struct ResultKey {
  std::string target;  // "sm_90a"
  std::string element; // "bf16"
  int64_t headDim = 0, valueHeadDim = 0;
  bool hasMask = false, hasScore = false;       // as regions or variants
  bool hasCaptures = false, hasDropout = false; // captures: of tensors
  bool isBackward = false;                      // attn.attention_backward
  bool isJvp = false;                           // attn.attention_jvp

  bool operator==(const ResultKey &other) const;
  /// "sm_90a bf16 128/128 masked scored", "sm_80 f16 64/64 backward".
  std::string describe() const;
};

ResultKey getResultKey(ScoredOp op, StringRef target);

struct MeasuredPlan {
  std::string plan; // as in IR
  double seconds = 0;
};

struct Measurement {
  ResultKey key;
  std::string device, shapes;     // where and on what it was measured
  std::optional<int64_t> queries; // the number it was measured with
  /// Of all batch entries and heads, for each multiprocessor: how many blocks
  /// there were to hand out. None: as many as one likes.
  std::optional<int64_t> rows;
  std::vector<MeasuredPlan> plans; // the fastest first
};

/// A results file.
class Results {
public:
  /// From a file's text, or from the file; failure with the reason in `error`.
  static FailureOr<Results> parse(StringRef text, std::string &error);
  static FailureOr<Results> read(StringRef path, std::string &error);
  std::string print() const;

  /// What is known of such a kernel, the newest measurement; null if nothing.
  const Measurement *find(const ResultKey &key) const;
  /// The same of one device, where it stands for so many queries (0: nobody
  /// knows how many): a measurement that says with how many stands for those.
  /// Of several the one with the most blocks.
  const Measurement *find(const ResultKey &key, StringRef device,
                          int64_t queries) const;
  /// Those of one device that say with how many queries, from the fewest on,
  /// and from the fewest blocks on.
  SmallVector<const Measurement *> findLengths(const ResultKey &key,
                                               StringRef device) const;
  bool hasDevice(StringRef device) const;
  /// Replaces what was known of such a kernel on this device with so many
  /// queries and blocks. The plans may be in any order.
  void insert(Measurement result);

  const std::vector<Measurement> &entries() const { return results; }

private:
  std::vector<Measurement> results;
};

/// A plan for such sizes.
struct LengthPlan : SizeLimits {
  std::string plan;
};

/// As few plans as possible for measurements of one kernel with growing numbers
/// of queries, each of them at most 1 % slower than the fastest where it was
/// measured. Between two numbers the limit is their geometric mean. Where
/// measurements with few and with many blocks want other plans, and lose more
/// than 1 % on average without them, the first plans are those for few.
SmallVector<LengthPlan> planLengths(ArrayRef<const Measurement *> results);
/// "query_length <= 1448 -> #attn.plan<…>; #attn.plan<…>".
std::string printLengthPlans(ArrayRef<LengthPlan> plans);

/// The file that comes with the compiler: share/attn/plans.json in a folder
/// above the program or library that this code is in; empty if there is none.
std::string findShippedResults();

/// Are there plans in that file that were measured on `device`? Also where it
/// cannot be read, so that whoever compiles for the device hears of it.
bool isMeasuredDevice(StringRef device);

} // namespace attn::plan

#endif // ATTN_PLAN_RESULTS_H
