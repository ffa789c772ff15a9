//===- DescriptorsTest.cpp - what wgmma reads -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Descriptors.h"
#include "gtest/gtest.h"

using namespace attn::layout;

namespace {

/// The descriptor decoded as the PTX ISA says, and the address that the
/// hardware forms of it.
struct Hardware {
  int64_t start, leading, stride, swizzleBytes;

  Hardware(uint32_t low, uint32_t high)
      : start((low & 0x3FFF) * 16), leading((low >> 16 & 0x3FFF) * 16),
        stride((high & 0x3FFF) * 16) {
    const int64_t bytes[] = {16, 128, 64, 32};
    swizzleBytes = bytes[high >> 30];
  }

  int64_t swizzled(int64_t address) const {
    return address ^ (address >> 7 & (swizzleBytes / 16 - 1)) << 4;
  }
  bool isUnswizzled() const { return swizzleBytes == 16; }
  /// Rows of 8 x swizzle bytes, `stride` apart; without a swizzle 8 of k are
  /// `leading` from the next.
  int64_t kMajor(int64_t row, int64_t k) const {
    int64_t inRow = isUnswizzled() ? k / 8 * leading + k % 8 * 2 : k * 2;
    return swizzled(start + row / 8 * stride + row % 8 * swizzleBytes + inRow);
  }
  /// Columns of swizzle bytes, `leading` apart; 8 rows of k, `stride` apart.
  /// Without a swizzle it is the other way about.
  int64_t mnMajor(int64_t k, int64_t column) const {
    int64_t perPanel = swizzleBytes / 2;
    int64_t toPanel = isUnswizzled() ? stride : leading;
    int64_t toRows = isUnswizzled() ? leading : stride;
    return swizzled(start + column / perPanel * toPanel + k / 8 * toRows +
                    k % 8 * swizzleBytes + column % perPanel * 2);
  }
};

std::vector<SharedTile> allTiles() {
  std::vector<SharedTile> tiles;
  for (int64_t rows : {16, 64, 80, 128, 176, 192, 256})
    for (int64_t columns = 16; columns <= 256; columns += 16)
      for (int64_t panel : {16, 32, 64, 128})
        tiles.push_back({rows, columns, 2, panel});
  return tiles;
}

} // namespace

TEST(Descriptors, KMajorFindsEveryElement) {
  for (SharedTile tile : allTiles()) {
    OperandTile operand{tile, Major::K};
    ASSERT_EQ(operand.check(), "");
    constexpr int64_t base = 5 * 1024;
    for (int64_t first = 0; first < tile.rows; first += 64)
      for (int64_t step = 0; step < operand.numSteps(); ++step) {
        Hardware read(operand.low(base + operand.rowOffset(first) +
                                  operand.stepOffset(step)),
                      operand.high());
        EXPECT_EQ(read.swizzleBytes, tile.panelBytes);
        for (int64_t row = first; row < std::min(first + 64, tile.rows); ++row)
          for (int64_t k = 0; k < 16; ++k)
            ASSERT_EQ(read.kMajor(row - first, k) - base,
                      tile.byteOffset(row, 16 * step + k))
                << tile.rows << "x" << tile.columns << ", panels of "
                << tile.panelBytes << ", row " << row << ", step " << step;
      }
  }
}

TEST(Descriptors, MNMajorFindsEveryElement) {
  for (SharedTile tile : allTiles()) {
    OperandTile operand{tile, Major::MN};
    ASSERT_EQ(operand.check(), "");
    constexpr int64_t base = 3 * 1024;
    for (int64_t step = 0; step < operand.numSteps(); ++step) {
      Hardware read(operand.low(base + operand.stepOffset(step)),
                    operand.high());
      for (int64_t k = 0; k < 16; ++k)
        for (int64_t column = 0; column < tile.columns; ++column)
          ASSERT_EQ(read.mnMajor(k, column) - base,
                    tile.byteOffset(16 * step + k, column));
    }
  }
}

TEST(Descriptors, PartsOfTheColumns) {
  int64_t numParts = 0;
  for (SharedTile tile : allTiles())
    for (int64_t parts : {2, 3, 4}) {
      OperandTile operand{tile, Major::MN};
      int64_t size = tile.columns / parts;
      if (tile.columns % parts != 0 || size % 8 != 0 ||
          !operand.checkParts(parts).empty())
        continue;
      ++numParts;
      constexpr int64_t base = 3 * 1024;
      for (int64_t part = 0; part < parts; ++part) {
        int64_t first = part * operand.rowOffset(size);
        Hardware read(operand.low(base + first), operand.high());
        for (int64_t k = 0; k < 16; ++k)
          for (int64_t column = 0; column < size; ++column)
            ASSERT_EQ(read.mnMajor(k, column) - base,
                      tile.byteOffset(k, part * size + column))
                << tile.columns << " columns, part " << part << " of " << parts;
      }
    }
  EXPECT_GT(numParts, 10);
  EXPECT_EQ((OperandTile{{64, 192, 2, 128}, Major::MN}).checkParts(2),
            "got parts of 96 columns, expected whole panels or parts of one of "
            "64");
  EXPECT_EQ((OperandTile{{192, 64, 2, 128}, Major::K}).checkParts(2), "");
}

TEST(Descriptors, Constants) {
  // 128 x 128 of 16 bits: stride 1024 bytes; panels 16384 bytes apart.
  OperandTile key{{128, 128, 2, 128}, Major::K};
  EXPECT_EQ(key.high(), 0x40000040u);
  EXPECT_EQ(key.low(), 1u << 16);
  EXPECT_EQ(key.stepOffset(1), 32);
  EXPECT_EQ(key.stepOffset(4), 16384);
  OperandTile value{{128, 128, 2, 128}, Major::MN};
  EXPECT_EQ(value.low(), 1024u << 16);
  EXPECT_EQ(value.stepOffset(1), 2048);
  // Panels of 16 bytes, 2048 bytes apart, are no pattern of the swizzle.
  OperandTile narrow{{128, 80, 2, 16}, Major::K};
  EXPECT_EQ(narrow.high(), 8u);
  EXPECT_EQ(narrow.low(), 128u << 16);
  EXPECT_EQ(narrow.stepOffset(1), 4096);
  OperandTile across{{128, 80, 2, 16}, Major::MN};
  EXPECT_EQ(across.high(), 128u);
  EXPECT_EQ(across.low(), 8u << 16);
  EXPECT_EQ(across.stepOffset(1), 256);
  EXPECT_EQ(across.rowOffset(40), 5 * 2048);
  // The address of a block of a cluster has more bits.
  EXPECT_EQ(value.low(0x1000400), 1024u << 16 | 0x40u);
}

TEST(Descriptors, RefusesInWords) {
  EXPECT_EQ((OperandTile{{64, 64, 2, 0}, Major::K}).check(),
            "got a tile without panels");
  EXPECT_EQ((OperandTile{{64, 64, 4, 128}, Major::K}).check(),
            "got elements of 4 bytes, expected 2");
  EXPECT_EQ((OperandTile{{8, 64, 2, 128}, Major::MN}).check(),
            "got a depth of 8, expected a multiple of 16");
  EXPECT_EQ((OperandTile{{4096, 64, 2, 128}, Major::K}).check(),
            "got panels of 524288 bytes, more than a descriptor can hold");
}
