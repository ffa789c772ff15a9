//===- Descriptors.cpp - tiles as wgmma finds them --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Descriptors.h"

using namespace attn::layout;

/// Descriptors count in these bytes.
static constexpr int64_t unit = 16;
/// Bits of an address or offset in a descriptor.
static constexpr uint32_t fieldMask = 0x3FFF;

std::string OperandTile::check() const {
  if (std::string wrong = tile.check(); !wrong.empty())
    return wrong;
  if (tile.panelBytes == 0)
    return "got a tile without panels";
  if (tile.elementBytes != 2)
    return "got elements of " + std::to_string(tile.elementBytes) +
           " bytes, expected 2";
  int64_t k = major == Major::K ? tile.columns : tile.rows;
  if (k % wgmmaDepth != 0)
    return "got a depth of " + std::to_string(k) + ", expected a multiple of " +
           std::to_string(wgmmaDepth);
  if (tile.rows * tile.panelBytes / unit > fieldMask)
    return "got panels of " + std::to_string(tile.rows * tile.panelBytes) +
           " bytes, more than a descriptor can hold";
  return "";
}

std::string OperandTile::checkParts(int64_t parts) const {
  int64_t size = (major == Major::K ? tile.rows : tile.columns) / parts;
  int64_t perPanel = tile.panelColumns();
  bool isWhole = size % perPanel == 0 || size * parts <= perPanel;
  if (parts == 1 || major == Major::K || isWhole)
    return "";
  return "got parts of " + std::to_string(size) +
         " columns, expected whole panels or parts of one of " +
         std::to_string(perPanel);
}

/// Whether a panel has one chunk of a row.
static bool isUnswizzled(const SharedTile &tile) {
  return tile.panelBytes == chunkBytes;
}

uint32_t OperandTile::high() const {
  uint32_t mode = tile.panelBytes == 128  ? 1
                  : tile.panelBytes == 64 ? 2
                  : tile.panelBytes == 32 ? 3
                                          : 0;
  bool isToPanel = isUnswizzled(tile) && major == Major::MN;
  int64_t rows = isToPanel ? tile.rows : rowsOfSwizzle;
  return static_cast<uint32_t>(rows * tile.panelBytes / unit) | mode << 30;
}

uint32_t OperandTile::low() const {
  bool isToPanel = isUnswizzled(tile) == (major == Major::K);
  int64_t rows = isToPanel ? tile.rows : rowsOfSwizzle;
  bool isUnused = !isUnswizzled(tile) && major == Major::K;
  int64_t leading = isUnused ? 1 : rows * tile.panelBytes / unit;
  return static_cast<uint32_t>(leading) << 16;
}

uint32_t OperandTile::low(int64_t address) const {
  return low() | (static_cast<uint32_t>(address / unit) & fieldMask);
}

int64_t OperandTile::numSteps() const {
  return (major == Major::K ? tile.columns : tile.rows) / wgmmaDepth;
}

int64_t OperandTile::stepOffset(int64_t step) const {
  if (major == Major::MN)
    return step * wgmmaDepth * tile.panelBytes;
  int64_t stepBytes = wgmmaDepth * tile.elementBytes;
  if (stepBytes > tile.panelBytes)
    return step * stepBytes * tile.rows;
  int64_t perPanel = tile.panelBytes / stepBytes;
  return step / perPanel * tile.rows * tile.panelBytes +
         step % perPanel * stepBytes;
}

int64_t OperandTile::rowOffset(int64_t row) const {
  if (major == Major::MN)
    return row / tile.panelColumns() * tile.rows * tile.panelBytes +
           row % tile.panelColumns() * tile.elementBytes;
  return row * tile.panelBytes;
}
