//===- ScoreLoss.h - what f32 sums of products may lose ------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_SCORELOSS_H
#define ATTN_HOST_SCORELOSS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Host/Operands.h"

namespace attn {

/// What tensor cores may cut off of the scores of a call (N9): they keep f32 of
/// a sum after every 16 products (of f32 operands: three times every 8) and
/// drop the rest, half a unit in the last place each. No score is above |scale|
/// |q[i]| |k[j]|. 0 where the operands hold infinities or NaN.
double boundScoreLoss(AttentionOp op, const Artifact &manifest,
                      const Operands &operands);

} // namespace attn

#endif // ATTN_HOST_SCORELOSS_H
