//===- Descriptors.h - tiles as wgmma finds them ----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma reads an operand in shared memory through a 64-bit matrix descriptor
// (PTX ISA, "Matrix Descriptor Format"):
//
//   bits  0 … 13   start address / 16
//   bits 16 … 29   leading dimension byte offset / 16
//   bits 32 … 45   stride dimension byte offset / 16
//   bits 62, 63    swizzle: 1 = 128 bytes, 2 = 64, 3 = 32, 0 = none
//
// Only the start address is not known at compile time; it stays in the low
// half. A tile in panels of b bytes (Swizzle.h), rows r, serves as
//
// - a K-major operand (the query, and the key tile as the transposed B): rows
//   are M or N, columns are k. 8 rows are 8 b bytes, which is the stride; the
//   leading offset is not used. A step of 16 k is 32 bytes inside a panel, b /
//   32 steps per panel; the next panel is r b bytes further.
// - an MN-major operand (the value tile as B): rows are k, columns are M or N.
// 8
//   rows of k are 8 b bytes, the stride; the leading offset goes from panel to
//   panel, r b bytes. A step of 16 k is 16 b bytes.
//
// Panels of 16 bytes are not swizzled, and the offsets change roles. K-major: a
// step has two panels, and the leading offset goes from one to the other.
// MN-major: the stride goes from panel to panel, the leading offset to the next
// 8 rows of k.
//
// Rows start at multiples of 8 b bytes, so that the swizzle, which takes its
// row from the address, starts at row 0 of its pattern.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_DESCRIPTORS_H
#define ATTN_LAYOUT_DESCRIPTORS_H

#include "attn/Layout/Swizzle.h"

namespace attn::layout {

/// Rows of one wgmma, shared by the four warps of a warpgroup.
inline constexpr int64_t groupOfWarpsRows = 64;
/// Warps of a warpgroup.
inline constexpr int64_t warpsPerGroup = 4;
/// Columns of k of one wgmma of 16-bit operands.
inline constexpr int64_t wgmmaDepth = 16;
/// The most columns of one wgmma.
inline constexpr int64_t maxWgmmaColumns = 256;

/// Which dimension of the product the columns of the tile are.
enum class Major { K, MN };

/// How wgmma reads a tile of 16-bit elements that lies in panels.
struct OperandTile {
  SharedTile tile;
  Major major = Major::K;

  /// What is wrong with the tile, in words; empty if nothing is.
  std::string check() const;

  /// Upper half of every descriptor of the tile.
  uint32_t high() const;
  /// Lower half without the start address.
  uint32_t low() const;
  /// Lower half with a start address.
  uint32_t low(int64_t address) const;

  /// Steps of 16 k.
  int64_t numSteps() const;
  /// What a step of k adds to the start address, in bytes.
  int64_t stepOffset(int64_t step) const;
  /// What rows of M or N add to the start address, in bytes. K-major: a
  /// multiple of 8; MN-major, where they are columns of the tile: whole panels,
  /// or a multiple of 8 inside of one.
  int64_t rowOffset(int64_t row) const;
  /// What is wrong with `parts` equal parts of M or N that products read one
  /// each; empty if part i starts at i times the offset of the first row of
  /// part 1, and lies as a product reads it.
  std::string checkParts(int64_t parts) const;
};

} // namespace attn::layout

#endif // ATTN_LAYOUT_DESCRIPTORS_H
