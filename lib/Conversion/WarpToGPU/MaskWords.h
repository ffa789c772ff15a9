//===- MaskWords.h - masks of a lane as bits of words -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_MASKWORDS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_MASKWORDS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::warp {

/// Whether columns are those that a lane has of a row, 0, 1, 8, 9, 16, … after
/// the first, as many as a word is worth and has bits.
bool areLaneColumns(ArrayRef<int64_t> columns);
/// Tests of the lowest bits of a word, or of their opposites.
SmallVector<Value> testBits(OpBuilder &builder, Location loc, Value word,
                            size_t count, bool isInverted = false);
/// column < limit, or another comparison with a sign, or column == limit, for
/// the columns that a lane has of a row, as tests of the bits of one word; none
/// if they are not such columns, or too few.
std::optional<SmallVector<Value>> testColumns(OpBuilder &builder, Location loc,
                                              arith::CmpIPredicate predicate,
                                              ArrayRef<int64_t> columns,
                                              Value limit);
/// Tests for the first `count` columns of a lane: whether one is `first` plus a
/// multiple of `period`, or (inverted) is not, where 0 <= first < period, or it
/// is far beyond the columns. None where a comparison of each residue costs
/// less.
std::optional<SmallVector<Value>> testEvery(OpBuilder &builder, Location loc,
                                            size_t count, int64_t period,
                                            Value first, bool isInverted);
/// As before: whether it is one of `length` columns from such a one on.
SmallVector<Value> testIntervals(OpBuilder &builder, Location loc, size_t count,
                                 int64_t period, Value first, int64_t length,
                                 bool isInverted);
/// Whether that costs less than a comparison of each residue.
bool isWorthIntervals(size_t count, int64_t period);
/// Truth values of the columns of a lane as tests of one word, if they are few
/// different ones.
std::optional<SmallVector<Value>> testValues(OpBuilder &builder, Location loc,
                                             ArrayRef<Value> values);
/// The numbers of elements, those of one word after the other.
SmallVector<size_t> orderByWords(ArrayRef<Value> elements);
/// A test of a bit once more, here; what is none stays as it is.
Value repeatTest(OpBuilder &builder, Location loc, Value element);
/// `and`, `or` or `xor` of elements that are tests of the same bits of words,
/// or of few values beside such tests, as tests of one word.
std::optional<SmallVector<Value>> joinTests(Operation *op, ArrayRef<Value> lhs,
                                            ArrayRef<Value> rhs,
                                            OpBuilder &builder);

/// Turns `warp.mask_word`, once all masks are made, into moves of assembly.
void lowerMaskWords(RewriterBase &rewriter, gpu::GPUFuncOp function);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_MASKWORDS_H
