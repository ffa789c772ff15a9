//===- ScoreBound.h - how large scores can be -------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Intervals of f32 values, from what computes them: a softcap keeps scores
// within its cap, whatever the products of queries and keys are.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_SCOREBOUND_H
#define ATTN_DIALECT_ATTN_IR_SCOREBOUND_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace attn {

/// exp(x - m) may be computed as exp2(c x - c m) where x and m are at most
/// this: the product with log2(e) is then rounded by 2^-15 at most, which the
/// weights of a row that another block gave do not share.
constexpr float maxFoldedScore = 512;

/// The same of an lse that gradients read, by their elements: nothing in its
/// row shares what f32 loses of it, and gradients of f32 show an error of
/// 2^-20.
inline float getMaxFoldedLse(Type element) {
  constexpr float ofF32 = 16;
  return element.isF32() ? ofF32 : maxFoldedScore;
}

/// The greatest magnitude that a score can have which a score function yields,
/// if that sets a limit. NaN does not count, nor does the -inf of hidden keys.
std::optional<double> boundMagnitude(Value score);

/// Whether a score function, a region of (x, b, h, i, j), is a softcap and
/// nothing else: a constant times tanh(x), with constant factors of x.
bool isSoftcap(Region &score);

/// True if all elements of `value` are -inf.
bool isMinusInf(Value value);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_SCOREBOUND_H
