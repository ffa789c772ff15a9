//===- Work.h - how much a call computes and moves -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TUNE_WORK_H
#define ATTN_TUNE_WORK_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Execute/Operands.h"

namespace attn {

struct Work {
  /// Pairs of a query and a key, per batch and head: all, and those that are
  /// counted.
  int64_t pairs = 0, countedPairs = 0;
  int64_t queries = 0; // of one sequence; 0 where nobody can say
  int64_t batchHeads = 0;
  /// 2 (d_qk + d_v) per counted pair; of gradients 2 (3 d_qk + 2 d_v).
  double flops = 0;
  /// Every tensor once: q, k, v, captures, o, lse and gradients.
  double bytes = 0;
};

/// Counts pairs that causal and window among `variants` (null: none) leave
/// visible; what a mask region hides is counted.
Work countWork(ScoredOp op, ArrayAttr variants, const Artifact &manifest,
               const Operands &operands);

} // namespace attn

#endif // ATTN_TUNE_WORK_H
