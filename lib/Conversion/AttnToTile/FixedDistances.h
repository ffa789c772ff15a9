//===- FixedDistances.h - reads along a diagonal -------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop along a diagonal goes on by as many queries as keys: each place of its
// blocks keeps its distance. What is read from memory by that alone, the bias
// table[h, clamp(i - j)] of a score, is the same in each turn. So is a bias by
// distance in an image, where it goes on by whole rows of the image.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_FIXEDDISTANCES_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_FIXEDDISTANCES_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {

/// The coordinates of a block.
struct BlockPositions {
  Value queries, keys;
};

/// Reads before `loop` what its body, code on vectors, gathers by the distance
/// of `now`, coordinates in it that grow by `step` from turn to turn; `first`,
/// before it, have the same distances, and are no negative ones where the code
/// divides them. Returns the number of gathers: more than `maxGathers` stay
/// where they are.
int64_t readFixedDistances(RewriterBase &rewriter, scf::ForOp loop,
                           const BlockPositions &now,
                           const BlockPositions &first, int64_t step,
                           int64_t maxGathers = 2);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_FIXEDDISTANCES_H
