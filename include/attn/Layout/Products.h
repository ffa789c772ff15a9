//===- Products.h - what the instructions of products are -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a product costs and accepts, for whoever chooses tiles (Plan) and for
// those who have chosen the instruction (Warp/IR/Atoms.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_PRODUCTS_H
#define ATTN_LAYOUT_PRODUCTS_H

#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"

namespace attn::layout {

struct ProductTraits {
  /// Of the elements that it multiplies.
  int64_t elementBits = 16;
  /// Of the accumulator, for all warps that execute it together.
  int64_t rows = groupRows;
  /// What k is a multiple of.
  int64_t depth = 16;
  /// Its slots have panels; or none.
  bool readsPanels = false;
  /// A slot of `a` may be KxM.
  bool transposesA = true;
  /// Warps that execute it together.
  int64_t warpsAtOnce = 1;
  /// The most columns of the accumulator; 0: as many as there are.
  int64_t maxColumns = 0;
  /// It can be issued, and waited for later (`warp.mma_async`).
  bool isAsync = false;
  /// Groups of warps may have different columns of the accumulator.
  bool sharesColumns = false;
  /// What a lane needs beside accumulators, weights and statistics: operand
  /// fragments, addresses, loop counters. From the reports of ptxas on the
  /// kernels in the heuristics' table.
  int64_t registers = 48;
};

inline constexpr ProductTraits mmaSync = [] {
  ProductTraits traits;
  traits.sharesColumns = true;
  return traits;
}();

inline constexpr ProductTraits mmaTF32 = [] {
  ProductTraits traits;
  traits.elementBits = 32;
  traits.depth = 8;
  traits.sharesColumns = true;
  return traits;
}();

inline constexpr ProductTraits fmaF32 = [] {
  ProductTraits traits = mmaTF32;
  traits.transposesA = traits.sharesColumns = false;
  // Eight columns of two rows, and of two columns, besides.
  traits.registers += 32;
  return traits;
}();

inline constexpr ProductTraits wgmma = [] {
  ProductTraits traits;
  traits.rows = groupOfWarpsRows;
  traits.depth = wgmmaDepth;
  traits.readsPanels = traits.isAsync = traits.sharesColumns = true;
  traits.warpsAtOnce = warpsPerGroup;
  traits.maxColumns = maxWgmmaColumns;
  // Operands stay in shared memory: of 240 registers scans of kernels found
  // 212 to compile without spills.
  traits.registers = 28;
  return traits;
}();

/// Columns of gradients that one kernel adds up for a row of keys, on every
/// target: of d_key and d_value together, or of one of them in a kernel of its
/// own. A warp has 16 rows of them.
inline constexpr int64_t maxSummedColumns = 256;

/// The same where several warps may share such rows.
inline int64_t countMostSummedColumns(int64_t blockRows, int64_t warps) {
  return maxSummedColumns * chooseGridColumns(blockRows, warps);
}

/// What is wrong with the columns that a group of warps has of an accumulator
/// of mma.sync, in words; empty if matrices of 16 bits are read two at a time
/// and lie in a row of operand b as the swizzle wants it. Lanes read f32
/// anywhere.
inline std::string checkColumnParts(const Fragment &acc,
                                    const ProductTraits &product) {
  int64_t groups = acc.columnGroups(), columns = acc.columns / groups;
  bool is16Bit = product.elementBits == 16;
  int64_t atOnce = is16Bit ? 16 : 8;
  if (groups == 1)
    return "";
  if (columns % atOnce != 0)
    return "a group of warps has " + std::to_string(columns) +
           " columns, expected a multiple of " + std::to_string(atOnce);
  if (!is16Bit || SharedTile{16, acc.columns}.splitsInto(groups))
    return "";
  return "a group of warps has " + std::to_string(columns) + " of " +
         std::to_string(acc.columns) + " columns, which the swizzle mixes";
}

} // namespace attn::layout

#endif // ATTN_LAYOUT_PRODUCTS_H
