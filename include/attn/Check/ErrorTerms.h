//===- ErrorTerms.h - what the error rule asks of a call --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CHECK_ERRORTERMS_H
#define ATTN_CHECK_ERRORTERMS_H

#include "attn/Check/ErrorRule.h"
#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

/// The terms of one call. `cutOff` is what tensor cores may cut off of its
/// scores: they keep f32 of a sum after every 16 products (of f32 operands:
/// three times every 8) and drop the rest, half a unit in the last place each.
/// No score is above |scale| |q[i]| |k[j]|; the loss is 0 where the operands
/// hold infinities or NaN.
ErrorTerms findErrorTerms(ScoredOp op, const Artifact &manifest,
                          const Operands &operands);

} // namespace attn

#endif // ATTN_CHECK_ERRORTERMS_H
