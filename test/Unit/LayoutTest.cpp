//===- LayoutTest.cpp - fragments and swizzles, by brute force ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"

#include "gtest/gtest.h"

#include <map>
#include <set>
#include <vector>

using namespace attn::layout;

static Fragment makeAcc(int64_t rows, int64_t columns, int64_t warps) {
  return {FragmentKind::Acc, rows, columns, warps, 32};
}

static Fragment makeA(int64_t rows, int64_t columns, int64_t warps,
                      int64_t bits) {
  return {FragmentKind::A, rows, columns, warps, bits};
}

/// Every element is held by exactly `replication` lanes, in one place each, and
/// ownerOf names one of them.
static void checkCover(const Fragment &fragment) {
  ASSERT_EQ(fragment.check(), "");
  std::map<std::pair<int64_t, int64_t>, int64_t> holders;
  for (int64_t warp = 0; warp < fragment.warps; ++warp)
    for (int64_t lane = 0; lane < warpSize; ++lane) {
      std::set<std::pair<int64_t, int64_t>> seen;
      for (int64_t reg = 0; reg < fragment.numRegisters(); ++reg)
        for (int64_t e = 0; e < fragment.elementsPerRegister(); ++e) {
          Coord coord = fragment.coordOf({warp, lane, reg, e});
          ASSERT_TRUE(coord.row >= 0 && coord.row < fragment.rows);
          ASSERT_TRUE(coord.column >= 0 && coord.column < fragment.columns);
          EXPECT_TRUE(seen.insert({coord.row, coord.column}).second);
          ++holders[{coord.row, coord.column}];
          Position owner = fragment.ownerOf(coord);
          EXPECT_EQ(fragment.coordOf(owner), coord);
          if (fragment.replication() == 1) {
            EXPECT_TRUE(owner == (Position{warp, lane, reg, e}));
          }
        }
    }
  EXPECT_EQ(int64_t(holders.size()), fragment.rows * fragment.columns);
  for (auto &[coord, count] : holders)
    EXPECT_EQ(count, fragment.replication());
}

TEST(Fragments, EveryElementHasItsPlace) {
  for (int64_t warps : {1, 2, 4, 8})
    for (int64_t steps : {1, 2}) {
      int64_t rows = 16 * warps * steps;
      for (int64_t columns : {8, 16, 40, 64, 80, 128})
        checkCover(makeAcc(rows, columns, warps));
      for (int64_t columns : {16, 48, 64, 80, 128, 256})
        checkCover(makeA(rows, columns, warps, 16));
      for (int64_t columns : {8, 40, 64})
        checkCover(makeA(rows, columns, warps, 32));
      checkCover(makeAcc(rows, 1, warps));
      checkCover(makeAcc(rows, 4, warps));
      checkCover(makeAcc(1, 64, warps));
      checkCover(makeAcc(1, 1, warps));
    }
}

// Fewer rows than the warps need: the others have further columns.
TEST(Fragments, WarpsShareColumns) {
  for (int64_t warps : {2, 4, 8, 12, 16})
    for (int64_t rowWarps : {1, 2, 4})
      if (warps % rowWarps == 0 && warps != rowWarps)
        for (int64_t perWarp : {8, 24, 64}) {
          int64_t groups = warps / rowWarps;
          Fragment acc = makeAcc(16 * rowWarps, groups * perWarp, warps);
          checkCover(acc);
          EXPECT_EQ(acc.rowWarps(), rowWarps);
          EXPECT_EQ(acc.columnGroups(), groups);
          EXPECT_EQ(acc.numRegisters(), perWarp / 2);
        }
  EXPECT_EQ(makeAcc(128, 64, 8).columnGroups(), 1);
  // Row 17 is that of warp 1, columns 32 and on are those of warps 4 to 7.
  EXPECT_TRUE(makeAcc(64, 64, 8).ownerOf({17, 33}) == (Position{5, 4, 1, 0}));
}

// Warps along the rows, and groups of them along the columns.
TEST(Fragments, WarpsInAGrid) {
  for (int64_t warps : {2, 4, 8})
    for (int64_t groups : {2, 4, 8})
      for (int64_t steps : {1, 2}) {
        if (warps % groups != 0)
          continue;
        int64_t rows = 16 * steps * (warps / groups);
        for (auto [m, n] : {std::pair<int64_t, int64_t>(rows, 16 * groups),
                            {rows, 1},
                            {1, 24 * groups},
                            {1, 1}}) {
          Fragment acc = makeAcc(m, n, warps);
          acc.gridColumns = groups;
          checkCover(acc);
        }
      }
  // Row 17 is that of warp 1, columns 32 and on are those of warps 2 and 3.
  Fragment acc = makeAcc(64, 64, 4);
  acc.gridColumns = 2;
  EXPECT_TRUE(acc.ownerOf({17, 33}) == (Position{3, 4, 1, 0}));
  EXPECT_EQ(acc.numRegisters(), 32);
  acc.columns = 24;
  EXPECT_EQ(acc.check(), "got 24 columns, expected a multiple of 8 columns x 2 "
                         "columns of warps");
}

TEST(Fragments, RegisterCounts) {
  EXPECT_EQ(makeAcc(128, 64, 4).numRegisters(), 64);
  EXPECT_EQ(makeAcc(128, 1, 4).numRegisters(), 4);
  EXPECT_EQ(makeAcc(1, 64, 4).numRegisters(), 16);
  EXPECT_EQ(makeAcc(1, 1, 4).numRegisters(), 1);
  EXPECT_EQ(makeA(128, 64, 4, 16).numRegisters(), 32);
  EXPECT_EQ(makeA(128, 64, 4, 32).numRegisters(), 64);
}

// The example of the header.
TEST(Fragments, WorkedExample) {
  Fragment acc = makeAcc(64, 16, 2);
  EXPECT_EQ(acc.coordOf({1, 13, 13, 0}), (Coord{51, 11}));
  EXPECT_EQ(acc.rowSliceRegister(13), 2);
  EXPECT_EQ(acc.columnSliceRegister(13), 3);
  Fragment a = makeA(64, 16, 2, 16);
  EXPECT_TRUE(a.ownerOf({51, 11}) == (Position{1, 13, 6, 1}));
  EXPECT_EQ(a.accRegisterOfA(6, 0), 12);
  EXPECT_EQ(a.accRegisterOfA(6, 1), 13);
}

// mma.m16n8k16 of the PTX ISA, one warp: c0, c1 on row lane / 4, c2, c3 eight
// rows below; a0 … a3 in the order (row, row + 8) x (k, k + 8).
TEST(Fragments, AgreesWithPTX) {
  Fragment acc = makeAcc(16, 8, 1), a = makeA(16, 16, 1, 16);
  for (int64_t lane = 0; lane < warpSize; ++lane) {
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(
          acc.coordOf({0, lane, i, 0}),
          (Coord{i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)}));
    for (int64_t i = 0; i < 8; ++i) {
      bool lowRow = i < 2 || (i >= 4 && i < 6);
      EXPECT_EQ(a.coordOf({0, lane, i / 2, i % 2}),
                (Coord{lowRow ? lane / 4 : lane / 4 + 8,
                       lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)}));
    }
  }
}

// Turning an accumulator into an A operand moves nothing between lanes.
TEST(Fragments, AccumulatorIsOperand) {
  for (int64_t bits : {16, 32})
    for (int64_t warps : {1, 4}) {
      Fragment a = makeA(32 * warps, 80, warps, bits);
      Fragment acc = makeAcc(32 * warps, 80, warps);
      std::set<int64_t> used;
      for (int64_t warp = 0; warp < warps; ++warp)
        for (int64_t lane = 0; lane < warpSize; ++lane)
          for (int64_t reg = 0; reg < a.numRegisters(); ++reg)
            for (int64_t e = 0; e < a.elementsPerRegister(); ++e) {
              int64_t from = a.accRegisterOfA(reg, e);
              used.insert(from);
              EXPECT_EQ(acc.coordOf({warp, lane, from, 0}),
                        a.coordOf({warp, lane, reg, e}));
            }
      EXPECT_EQ(int64_t(used.size()), acc.numRegisters());
    }
}

// The A operand of tf32 in the order of the header against the instruction's:
// a0 … a3 are (row, k), (row + 8, k), (row, k + 4), (row + 8, k + 4), k = lane
// mod 4, and k-slots mean the columns of tf32Column.
TEST(Fragments, Tf32ColumnOrder) {
  Fragment a = makeA(16, 8, 1, 32);
  for (int64_t lane = 0; lane < warpSize; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg) {
      int64_t slot = lane % 4 + (reg >= 2 ? 4 : 0);
      EXPECT_EQ(a.coordOf({0, lane, reg, 0}),
                (Coord{lane / 4 + (reg & 1 ? 8 : 0), tf32Column(slot)}));
    }
  std::set<int64_t> columns;
  for (int64_t slot = 0; slot < 8; ++slot)
    columns.insert(tf32Column(slot));
  EXPECT_EQ(columns.size(), 8u);
}

TEST(Fragments, WarpsShareRowsOfShortBlocks) {
  EXPECT_EQ(chooseGridColumns(64, 4), 1);
  EXPECT_EQ(chooseGridColumns(64, 8), 2);
  EXPECT_EQ(chooseGridColumns(32, 8), 4);
  EXPECT_EQ(chooseGridColumns(128, 4), 1);
  EXPECT_EQ(chooseGridColumns(48, 8), 1); // 128 rows are no multiple
  EXPECT_EQ(chooseGridColumns(8, 4), 1);
  EXPECT_EQ(chooseGridColumns(0, 4), 1);
}

TEST(Fragments, SlicesMeetTheirTile) {
  Fragment acc = makeAcc(64, 40, 2), rows = makeAcc(64, 1, 2),
           columns = makeAcc(1, 40, 2);
  for (int64_t warp = 0; warp < 2; ++warp)
    for (int64_t lane = 0; lane < warpSize; ++lane)
      for (int64_t reg = 0; reg < acc.numRegisters(); ++reg) {
        Coord coord = acc.coordOf({warp, lane, reg, 0});
        EXPECT_EQ(rows.coordOf({warp, lane, acc.rowSliceRegister(reg), 0}).row,
                  coord.row);
        EXPECT_EQ(columns.coordOf({warp, lane, acc.columnSliceRegister(reg), 0})
                      .column,
                  coord.column);
      }
}

// Column q of an Mx4 slice belongs to the lane that holds the tile's columns j
// with (j mod 8) / 2 = q.
TEST(Fragments, LaneColumns) {
  Fragment acc = makeAcc(64, 40, 2), lanes = makeAcc(64, 4, 2);
  EXPECT_EQ(lanes.numRegisters(), makeAcc(64, 1, 2).numRegisters());
  for (int64_t warp = 0; warp < 2; ++warp)
    for (int64_t lane = 0; lane < warpSize; ++lane)
      for (int64_t reg = 0; reg < acc.numRegisters(); ++reg) {
        Coord coord = acc.coordOf({warp, lane, reg, 0});
        EXPECT_EQ(lanes.coordOf({warp, lane, acc.rowSliceRegister(reg), 0}),
                  (Coord{coord.row, coord.column % 8 / 2}));
      }
}

TEST(Fragments, RefusesInWords) {
  EXPECT_EQ(makeA(64, 64, 8, 16).check(),
            "got 64 rows, expected a multiple of 16 rows x 8 warps");
  for (Fragment acc : {makeAcc(64, 8, 8), makeAcc(64, 1, 8), makeAcc(64, 4, 8),
                       makeAcc(48, 64, 8), makeAcc(72, 64, 8)})
    EXPECT_EQ(acc.check(), "got " + std::to_string(acc.rows) +
                               " rows, expected a multiple of 16 rows x 8 "
                               "warps");
  EXPECT_EQ(makeAcc(64, 20, 4).check(),
            "got 20 columns, expected a multiple of 8");
  EXPECT_EQ(makeA(64, 24, 4, 16).check(),
            "got 24 columns, expected a multiple of 16");
  EXPECT_EQ(makeA(1, 16, 1, 16).check(),
            "got 1 rows, expected a multiple of 16 rows x 1 warps");
  EXPECT_EQ(makeA(64, 16, 4, 8).check(),
            "got elements of 8 bits, an operand fragment has 16 or 32");
  EXPECT_EQ(makeAcc(0, 8, 1).check(), "got shape 0x8, expected positive sizes");
  EXPECT_EQ(makeAcc(16, 8, 0).check(), "got 0 warps, expected 1 to 32");
  EXPECT_EQ(makeAcc(int64_t(1) << 32, 8, 4).check(),
            "got shape 4294967296x8, expected sizes of at most 65536");
  EXPECT_EQ(makeAcc(1024, 1024, 1).check(),
            "got 32768 registers per lane, expected at most 4096");
}

//===----------------------------------------------------------------------===//
// Swizzle
//===----------------------------------------------------------------------===//

/// Tiles of every head dimension, and of both element sizes.
static std::vector<SharedTile> allTiles() {
  std::vector<SharedTile> tiles;
  for (int64_t bytes : {2, 4})
    for (int64_t d = 8; d <= 256; d += 8)
      tiles.push_back({64, (d + 15) / 16 * 16, bytes});
  return tiles;
}

/// Whether 8 accesses of 16 bytes touch all 32 banks once.
static bool isConflictFree(const std::vector<int64_t> &offsets) {
  std::set<int64_t> chunks;
  for (int64_t offset : offsets)
    chunks.insert(offset / chunkBytes % 8);
  return chunks.size() == offsets.size();
}

TEST(Swizzle, IsAPermutation) {
  for (SharedTile tile : allTiles()) {
    ASSERT_EQ(tile.check(), "");
    std::set<int64_t> bytes;
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t column = 0; column < tile.columns; ++column) {
        int64_t offset = tile.byteOffset(row, column);
        EXPECT_EQ(offset % tile.elementBytes, 0);
        EXPECT_TRUE(offset >= 0 && offset < tile.bytes());
        EXPECT_TRUE(bytes.insert(offset).second);
        // A chunk stays whole.
        EXPECT_EQ(offset % chunkBytes,
                  column % tile.elementsPerChunk() * tile.elementBytes);
      }
  }
}

TEST(Swizzle, LdmatrixHasNoConflicts) {
  for (SharedTile tile : allTiles())
    for (int64_t row0 = 0; row0 < tile.rows; row0 += 8)
      for (int64_t chunk = 0; chunk < tile.chunksPerRow(); ++chunk) {
        std::vector<int64_t> offsets;
        for (int64_t row = row0; row < row0 + 8; ++row)
          offsets.push_back(tile.chunkOffset(row, chunk));
        EXPECT_TRUE(isConflictFree(offsets))
            << tile.columns << " columns of " << tile.elementBytes
            << " bytes, row " << row0 << ", chunk " << chunk;
      }
}

TEST(Swizzle, CopiesHaveNoConflicts) {
  for (SharedTile tile : allTiles()) {
    int64_t chunks = tile.rows * tile.chunksPerRow();
    for (int64_t first = 0; first < chunks; first += 8) {
      std::vector<int64_t> offsets;
      for (int64_t i = first; i < first + 8; ++i)
        offsets.push_back(
            tile.chunkOffset(i / tile.chunksPerRow(), i % tile.chunksPerRow()));
      EXPECT_TRUE(isConflictFree(offsets))
          << tile.columns << " columns of " << tile.elementBytes
          << " bytes, chunk " << first;
    }
  }
}

/// The same tiles in panels of every kind.
static std::vector<SharedTile> allPanels() {
  std::vector<SharedTile> tiles;
  for (SharedTile tile : allTiles())
    for (int64_t panelBytes : {32, 64, 128})
      tiles.push_back({tile.rows, tile.columns, tile.elementBytes, panelBytes});
  return tiles;
}

TEST(Panels, AreWhatTMAWrites) {
  for (SharedTile tile : allPanels()) {
    ASSERT_EQ(tile.check(), "");
    int64_t b = tile.panelBytes;
    std::set<int64_t> bytes;
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t column = 0; column < tile.columns; ++column) {
        int64_t inRow = column * tile.elementBytes;
        // PTX ISA, swizzling modes of cp.async.bulk.tensor.
        int64_t linear = row * b + inRow % b;
        int64_t expected = inRow / b * tile.rows * b +
                           (linear ^ (((linear >> 7) & (b / 16 - 1)) << 4));
        EXPECT_EQ(tile.byteOffset(row, column), expected);
        EXPECT_LT(expected, tile.bytes());
        EXPECT_TRUE(bytes.insert(expected).second);
      }
  }
}

TEST(Panels, LdmatrixHasNoConflicts) {
  for (SharedTile tile : allPanels())
    for (int64_t row0 = 0; row0 < tile.rows; row0 += 8)
      for (int64_t chunk = 0; chunk < tile.columns / tile.elementsPerChunk();
           ++chunk) {
        std::vector<int64_t> offsets;
        for (int64_t row = row0; row < row0 + 8; ++row)
          offsets.push_back(tile.chunkOffset(row, chunk));
        EXPECT_TRUE(isConflictFree(offsets));
      }
}

TEST(Panels, AreChosenByTheRow) {
  EXPECT_EQ(choosePanelBytes(128), 128);
  EXPECT_EQ(choosePanelBytes(512), 128);
  EXPECT_EQ(choosePanelBytes(160), 64); // 80 columns: 96 are stored
  // Two parts of whole panels, or of one that has all columns.
  EXPECT_EQ(choosePanelBytes(160, 2), 16);
  EXPECT_EQ(choosePanelBytes(192, 2), 32);
  EXPECT_EQ(choosePanelBytes(256, 2), 128);
  EXPECT_EQ(choosePanelBytes(64, 2), 64);
  EXPECT_EQ((SharedTile{64, 80, 2, 64}).bytes(), 64 * 96 * 2);
  EXPECT_EQ((SharedTile{64, 80, 2, 64}).numPanels(), 3);
  EXPECT_EQ((SharedTile{64, 80, 2, 64}).panelColumns(), 32);
  EXPECT_EQ(choosePanelBytes(32), 32);
  EXPECT_EQ((SharedTile{64, 64, 2, 48}).check(),
            "got panels of 48 bytes, expected 128, 64, 32 or 16");
}

// In the parts, a chunk's place is that of the first one with a xor.
TEST(Swizzle, SplitsIntoWholePatterns) {
  for (const SharedTile &tile : allTiles())
    for (int64_t parts : {2, 4, 8}) {
      int64_t perPart = tile.chunksPerRow() / parts;
      bool isWhole = tile.chunksPerRow() % parts == 0;
      for (int64_t first = 0; isWhole && first < tile.chunksPerRow();
           first += perPart)
        for (int64_t chunk = 0; chunk < perPart; ++chunk) {
          int64_t inPeriod = chunk % tile.period();
          int64_t byXor = (tile.chunkOffset(1, first) ^ inPeriod * chunkBytes) +
                          (chunk - inPeriod) * chunkBytes;
          isWhole &= byXor == tile.chunkOffset(1, first + chunk);
        }
      if (tile.splitsInto(parts))
        EXPECT_TRUE(isWhole) << tile.columns << " in " << parts;
    }
  EXPECT_TRUE((SharedTile{64, 128}).splitsInto(2));
  EXPECT_TRUE((SharedTile{64, 64}).splitsInto(4));
  EXPECT_FALSE((SharedTile{64, 96}).splitsInto(2));
}

TEST(Swizzle, RefusesInWords) {
  EXPECT_EQ((SharedTile{64, 40, 2}).check(),
            "got 40 columns, expected a multiple of 16");
  EXPECT_EQ((SharedTile{60, 64, 2}).check(),
            "got 60 rows, expected 1 or a multiple of 8");
  EXPECT_EQ((SharedTile{64, 64, 1}).check(),
            "got elements of 1 bytes, expected 2 or 4");
  EXPECT_EQ((SharedTile{0, 64, 2}).check(),
            "got shape 0x64, expected positive sizes");
  EXPECT_EQ((SharedTile{int64_t(1) << 40, 64, 2}).check(),
            "got shape 1099511627776x64, expected sizes of at most 65536");
}
