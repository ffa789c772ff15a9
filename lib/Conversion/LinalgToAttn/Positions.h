//===- Positions.h - what integers of an expression can be -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_POSITIONS_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_POSITIONS_H

#include "Expression.h"

namespace attn::raise {

/// Sizes of attention, known or not, are at most this; positions are below.
constexpr int64_t kMaxSize = int64_t(1) << 30;

/// Bounds of an integer expression; nothing where 64 bits do not hold them.
std::optional<IntegerRange> interval(ExprRef expr);
/// Of the numbers that an operation computes, before it wraps around.
std::optional<IntegerRange> unwrappedInterval(const Expr &expr);

/// The variables that an index is made of, the slowest first: one variable,
/// or those of a join; none for 0. Nothing for any other index.
std::optional<SmallVector<ExprRef>> atoms(ExprRef index);

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_POSITIONS_H
