//===- PullbackSlope.h - pullbacks that are a factor -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_PULLBACKSLOPE_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_PULLBACKSLOPE_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/LLVM.h"

namespace attn {

/// Whether the pullback multiplies dy by the slope of a score that is no linear
/// function of x: what it gives for a dy of 1 depends on x, and that times dy
/// is what it gives. Pullbacks are linear in dy (attn.attention_backward); here
/// that is seen from their operations, such as dy (1 - tanh(x)^2).
bool multipliesBySlope(AttentionBackwardOp op);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_PULLBACKSLOPE_H
