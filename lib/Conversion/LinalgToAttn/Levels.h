//===- Levels.h - an operand, and what it was made from -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_LEVELS_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_LEVELS_H

#include "Reader.h"

namespace attn::raise {

/// A tensor and the positions at which attention reads it: query, key or value,
/// at one step back through casts, views and products with a scale.
struct OperandLevel {
  Value tensor;
  SmallVector<ExprRef> indices;
  ExprRef factor; // of the elements, without free variables
};

/// True if some variable is in `expr`.
bool hasVariables(ExprRef expr);

/// `element` and what it was made from by casts that lose nothing, views, and,
/// where wanted, products with something that is the same everywhere.
SmallVector<OperandLevel> levelsOf(Expressions &e, Reader &reader,
                                   ExprRef element, bool takesFactors);

/// The atoms of the indices of a level in order, if it is read everywhere
/// exactly once, dimension by dimension.
std::optional<SmallVector<ExprRef>> atomsOf(const OperandLevel &level,
                                            Extents &extents);

/// A variable other than `fixed` that `levels` read in parts, and the sizes of
/// the parts; null if there is none. With `throughJoins`, it may be a part of
/// what is collapsed and expanded otherwise.
std::pair<ExprRef, SmallVector<Extent>> findSplit(ArrayRef<OperandLevel> levels,
                                                  ArrayRef<ExprRef> fixed,
                                                  bool throughJoins = false);

/// The level that takes the least work to bring into the order `wanted`; of
/// equals the last, which the graph has first.
const OperandLevel *cheapest(ArrayRef<OperandLevel> levels,
                             ArrayRef<ExprRef> wanted, Type element,
                             Extents &extents);

/// True if some level of an operand has its dimensions in an order that no
/// layout of attention has: neither the dimension `last` nor one of the lengths
/// is the last. (Images have channels, which are heads and `last`, in front of
/// their positions.)
bool isPermuted(ArrayRef<OperandLevel> levels, ArrayRef<ExprRef> lengths,
                ExprRef last, Extents &extents);

/// The widest of the narrowest types of the operands and that of the result.
FloatType elementOf(ArrayRef<ArrayRef<OperandLevel>> operands, Value root);

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_LEVELS_H
