//===- Fragments.h - tiles spread over lanes --------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which lane of which warp holds which element of a tile, and in which of its
// registers. This is the layout half of `!warp.frag` and it knows no IR.
//
// Warps are stacked along the rows of a tile: with W warps, the 16-row group g
// belongs to warp g mod W. A warp therefore holds the row groups t * W + warp,
// for t = 0, 1, …, M / (16 W) - 1; t is the *row step* below.
//
// Accumulator (`acc`), a tile of M x N, as mma.m16n8 leaves it (PTX ISA,
// "Matrix Fragments for mma.m16n8k16"). One element per register. For row step
// t, column tile c = 0 … N/8 - 1 and i = 0 … 3:
//
//   register = (t * (N/8) + c) * 4 + i
//   row      = 16 (t W + warp) + lane / 4 + 8 (i >> 1)
//   column   = 8 c + 2 (lane mod 4) + (i & 1)
//
// An accumulator of fewer than 16 W rows has R = M / 16 warps along the rows
// and W / R groups of warps along the columns: warp w stands for warp w mod R
// above, and holds the columns of group w / R, N R / W of them, only. It has no
// slices.
//
// Warps may also stand in a grid of R rows and C columns, whatever the tile has
// of them: then W / C is R in the lines above. A slice of it has the rows or
// the columns that a warp of the grid has. Per warp tile of 32x32 instead of
// 16x64, operands are read from shared memory less often.
//
// The slices are what is left of it when a dimension has size 1. They are
// replicated: several lanes hold the same element.
//
//   M x 1   register = 2 t + half          row    = 16 (t W + warp) + lane / 4
//                                                   + 8 half
//   1 x N   register = 2 c + e             column = 8 c + 2 (lane mod 4) + e
//   1 x 1   register 0
//   M x 4   as M x 1, but the four lanes of a row differ: column = lane mod 4.
//           Column q stands for the tile's columns j with (j mod 8) / 2 = q,
//           those that lane holds (partial sums).
//
// So the register of an accumulator element (t, c, i) meets its row statistic
// in register 2 t + (i >> 1) of an M x 1 slice and its column value in register
// 2 c + (i & 1) of a 1 x N slice, in the same lane.
//
// A operand (`a`), a tile of M x K. Elements of 16 bits go two to a register;
// for row step t, k-step s = 0 … K/16 - 1 (16 columns), r = 0 … 3, e = 0, 1:
//
//   register = (t * (K/16) + s) * 4 + r    (element e in bits 16 e … 16 e + 15)
//   row      = 16 (t W + warp) + lane / 4 + 8 (r & 1)
//   column   = 16 s + 8 (r >> 1) + 2 (lane mod 4) + e
//
// Elements of 32 bits (tf32 mma.m16n8k8) go one to a register, k-step s has 8
// columns:
//
//   register = (t * (K/8) + s) * 4 + r
//   row      = 16 (t W + warp) + lane / 4 + 8 (r & 1)
//   column   = 8 s + 2 (lane mod 4) + (r >> 1)
//
// The instruction calls the two columns of a lane `lane mod 4` and
// `lane mod 4 + 4`; here they are neighbours. A sum over k may be taken in any
// order, so this is the same product as long as the B operand uses the same
// order: k-slot q < 4 is column 2 q, k-slot q + 4 is column 2 q + 1 of the
// step (`tf32Column`).
//
// With these choices an accumulator becomes an A operand without moving data
// between lanes: register r of k-step s takes the accumulator registers that
// `accRegisterOfA` names.
//
// Worked example: acc of 64x16, W = 2 warps, lane 13 of warp 1. M/(16 W) = 2
// row steps, N/8 = 2 column tiles, 2 * 2 * 4 = 16 registers. lane / 4 = 3,
// lane mod 4 = 1. Row step 1 is group 1 * 2 + 1 = 3, rows 48 … 63. Register
// 13 = (1 * 2 + 1) * 4 + 1 is t = 1, c = 1, i = 1: row 48 + 3 + 0 = 51, column
// 8 + 2 + 1 = 11. Its row statistic is in register 2 of a 64x1 slice. As the
// `a` operand of 64x16 (one k-step) the same element is the upper half of
// register (1 * 1 + 0) * 4 + 2 = 6, packed from accumulator registers 12, 13.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_FRAGMENTS_H
#define ATTN_LAYOUT_FRAGMENTS_H

#include <cstdint>
#include <string>

namespace attn::layout {

/// Lanes of a warp.
inline constexpr int64_t warpSize = 32;
/// Rows of the mma instructions: the row group of a warp.
inline constexpr int64_t groupRows = 16;
/// Warps of a block on every CUDA device.
inline constexpr int64_t maxWarps = 32;
/// Bounds that keep the arithmetic of layouts small: far beyond any kernel (a
/// lane has 255 registers), but a program may ask for anything.
inline constexpr int64_t maxTileSize = 65536;
inline constexpr int64_t maxRegisters = 4096;
/// Lanes that share a row of an accumulator: the columns of an Mx4 slice.
inline constexpr int64_t laneColumns = 4;

enum class FragmentKind { Acc, A };

/// An element of a tile.
struct Coord {
  int64_t row = 0, column = 0;
  bool operator==(const Coord &other) const {
    return row == other.row && column == other.column;
  }
};

/// Where an element lives. `element` counts inside a register (packed `a`).
struct Position {
  int64_t warp = 0, lane = 0, reg = 0, element = 0;
  bool operator==(const Position &other) const {
    return warp == other.warp && lane == other.lane && reg == other.reg &&
           element == other.element;
  }
};

/// A tile of rows x columns spread over the lanes of `warps` warps.
struct Fragment {
  FragmentKind kind = FragmentKind::Acc;
  int64_t rows = 1, columns = 1, warps = 1;
  /// Bits of an element as it is packed; `acc` never packs.
  int64_t elementBits = 32;
  /// acc: the groups of warps that have columns of their own. 1: one, or as
  /// many as it takes where the rows are fewer than the warps.
  int64_t gridColumns = 1;

  /// What is wrong with the shape, in words; empty if it is a fragment.
  std::string check() const;

  /// Warps that share the rows, and how many such groups share the columns.
  int64_t rowWarps() const;
  int64_t columnGroups() const { return warps / rowWarps(); }
  /// Row groups per warp (1 if there are no rows to share out).
  int64_t rowSteps() const;
  /// acc: 8-column tiles of one warp. a: k-steps.
  int64_t columnSteps() const;
  /// Columns of one k-step of an `a` operand: 16 or 8.
  int64_t columnsPerStep() const;
  /// Registers of one lane.
  int64_t numRegisters() const;
  /// Elements in one register: 2 for `a` of 16 bits, otherwise 1.
  int64_t elementsPerRegister() const;

  /// The element in a register of a lane. In the size-1 dimension of a slice
  /// the coordinate is 0.
  Coord coordOf(const Position &position) const;
  /// The first (lowest warp, lane) holder of an element. Only slices have more
  /// than one.
  Position ownerOf(const Coord &coord) const;
  /// How many lanes of the block hold each element.
  int64_t replication() const;

  /// A full tile register's register in a slice: of the Mx1 slice with the same
  /// rows, and of the 1xN slice with the same columns (acc only).
  int64_t rowSliceRegister(int64_t reg) const;
  int64_t columnSliceRegister(int64_t reg) const;

  /// `a` only: the register of the accumulator of the same tile that goes to
  /// `element` of `reg`.
  int64_t accRegisterOfA(int64_t reg, int64_t element) const;

private:
  std::string checkGrid() const;
};

/// The groups of warps that share columns where a block has fewer rows than 16
/// for each warp, which its warps then share: 2 for 64 rows and 8 warps.
/// Else 1.
int64_t chooseGridColumns(int64_t blockRows, int64_t warps);

/// The column, within its step of 8, that the tf32 instruction's k-slot means.
int64_t tf32Column(int64_t slot);

} // namespace attn::layout

#endif // ATTN_LAYOUT_FRAGMENTS_H
