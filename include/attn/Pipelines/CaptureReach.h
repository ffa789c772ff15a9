//===- CaptureReach.h - captures smaller than their use -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_CAPTUREREACH_H
#define ATTN_PIPELINES_CAPTUREREACH_H

#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"

namespace attn {

class ScoredOp;

/// Refuses captured tensors that end before what the regions of `op` read
/// of them: here where types tell, and by checks of `artifact`, which
/// describes the function of `op` and has its query as argument `query`, where
/// a launch tells.
///
/// The regions are evaluated at corners of the range of positions (each of b,
/// h, i and j is the first or the last), as expressions of sizes and captured
/// scalars. An index, of a load or before a search, is wrong where it is
/// known, is past the end, the mask is known to show the position, and the
/// element is known to matter: a select, a conjunction or a factor that drops
/// it excuses it. What depends on data is never known, so nothing is refused
/// that may be right; wrong indices elsewhere, and those below 0, are not
/// found.
LogicalResult checkCaptureReach(ScoredOp op, int64_t query, int64_t key,
                                Artifact &artifact);

} // namespace attn

#endif // ATTN_PIPELINES_CAPTUREREACH_H
