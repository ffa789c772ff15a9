//===- Swizzle.h - tiles in shared memory -----------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the elements of a `!warp.slot` lie. A row of C elements is p = C es /
// 16 chunks of 16 bytes (es: bytes of an element). Rows follow each other
// without padding; inside a row the chunks are permuted:
//
//   g      = gcd(p, 8)
//   chunk' = chunk xor ((row / (8 / g)) mod g)
//   byte   = (row p + chunk') 16 + byte within the chunk
//
// Why it has no bank conflicts. Shared memory serves 8 chunks (128 bytes) at a
// time, so 8 accesses of 16 bytes collide unless their chunk numbers differ
// mod 8.
//
// - ldmatrix reads one chunk column of 8 consecutive rows r0 … r0 + 7, r0 a
//   multiple of 8. Rows start at r p mod 8, a multiple of g that repeats after
//   8 / g rows. Rows with different starts land in different blocks of g
//   chunks (the xor stays inside a block, as it is below g). Rows with the same
//   start are 8 / g apart and get different xors, all g of them.
// - A copy writes 8 consecutive chunks of the tile in row-major order, aligned
//   to 8. That is a union of whole blocks of g chunks, and the xor permutes
//   each block.
//
// Example: 64x128 bf16, p = 16, g = 8: chunk' = chunk xor (row mod 8), the
// usual 128-byte swizzle. 64x80 bf16: p = 10, g = 2: chunk' = chunk xor ((row /
// 4) mod 2). An odd p needs nothing: g = 1.
//
// Panels. What TMA writes and wgmma reads is the same inside a *panel*: a tile
// cut into columns of b = 128, 64, 32 or 16 bytes, one after the other, each
// rows x b bytes and swizzled as a tile of p = b / 16 chunks per row:
//
//   panel  = chunk / p, k = chunk mod p
//   byte   = panel rows b + (row p + (k xor ((row / (8 / p)) mod p))) 16 + …
//
// which is (row b + c) xor ((((row b) >> 7) & (b / 16 - 1)) << 4), the pattern
// of the modes SWIZZLE_128B, _64B and _32B, and nothing of panels of one chunk.
// The last panel may be wider than what is left of the tile; those bytes belong
// to the tile's memory but not to the tile. A panel starts at a multiple of
// 1024 bytes of shared memory.
//
// One row of f32 lies there as in memory. It has a multiple of 32 columns, so
// that the next one starts where TMA may write.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_SWIZZLE_H
#define ATTN_LAYOUT_SWIZZLE_H

#include <cstdint>
#include <string>

namespace attn::layout {

/// Bytes of one chunk: what ldmatrix reads per row and cp.async copies.
inline constexpr int64_t chunkBytes = 16;
/// Rows after which its pattern begins again.
inline constexpr int64_t rowsOfSwizzle = 8;

/// The panels of a tile whose rows have this many bytes: 128 if the rows are
/// whole panels then, else 64 (or 32 for a row that is no longer), which fill
/// up less. Where products read equal parts of the columns, so narrow ones that
/// a part is whole panels, or all are within one.
int64_t choosePanelBytes(int64_t rowBytes, int64_t parts = 1);

/// A tile of rows x columns elements in shared memory.
struct SharedTile {
  int64_t rows = 1, columns = 1, elementBytes = 2;
  /// Bytes of a row of a panel: 128, 64, 32 or 16; 0: the tile has no panels.
  int64_t panelBytes = 0;

  /// What is wrong with the tile, in words; empty if nothing is.
  std::string check() const;

  /// Chunks of one row, of the tile or of a panel: p.
  int64_t chunksPerRow() const;
  /// Elements of one chunk.
  int64_t elementsPerChunk() const;
  /// g: the xor runs over 0 … g - 1.
  int64_t period() const;
  /// 8 / g: rows that share one xor.
  int64_t rowsPerXor() const;
  /// What is xored to the chunk numbers of a row.
  int64_t xorOf(int64_t row) const;
  /// The byte where chunk `chunk` of row `row` lies.
  int64_t chunkOffset(int64_t row, int64_t chunk) const;
  /// The byte where an element lies.
  int64_t byteOffset(int64_t row, int64_t column) const;
  /// Whether the columns can be split into so many parts that each begins at a
  /// multiple of the parts, or of the period: xors of chunks within a part are
  /// sums then.
  bool splitsInto(int64_t parts) const;
  /// Bytes of the tile; without panels nothing is padded.
  int64_t bytes() const;
  /// It starts at a multiple of this many bytes of shared memory, so that the
  /// xor may be applied to the whole address; TMA and wgmma count the rows of
  /// panels from there.
  int64_t alignment() const { return panelBytes != 0 ? 1024 : 128; }

  /// With panels: their number, and the columns of one.
  int64_t numPanels() const;
  int64_t panelColumns() const;
};

} // namespace attn::layout

#endif // ATTN_LAYOUT_SWIZZLE_H
