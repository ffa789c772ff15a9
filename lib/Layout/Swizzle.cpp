//===- Swizzle.cpp - tiles in shared memory ---------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Swizzle.h"

#include "attn/Layout/Fragments.h"

#include <numeric>

using namespace attn::layout;

int64_t attn::layout::choosePanelBytes(int64_t rowBytes, int64_t parts) {
  int64_t panelBytes = rowBytes % 128 == 0 ? 128 : rowBytes <= 32 ? 32 : 64;
  while (rowBytes > panelBytes && rowBytes % (parts * panelBytes) != 0 &&
         parts > 1 && panelBytes > chunkBytes)
    panelBytes /= 2;
  return panelBytes;
}

/// Copies of a row begin at a multiple of 128 bytes.
static std::string checkRow(const SharedTile &tile) {
  if (tile.elementBytes != 4)
    return "got a row of elements of " + std::to_string(tile.elementBytes) +
           " bytes, expected 4";
  if (tile.columns % 32 != 0)
    return "got a row of " + std::to_string(tile.columns) +
           " columns, expected a multiple of 32";
  if (tile.panelBytes != 0)
    return "got a row in panels, expected none";
  return "";
}

std::string SharedTile::check() const {
  if (rows < 1 || columns < 1)
    return "got shape " + std::to_string(rows) + "x" + std::to_string(columns) +
           ", expected positive sizes";
  if (rows > maxTileSize || columns > maxTileSize)
    return "got shape " + std::to_string(rows) + "x" + std::to_string(columns) +
           ", expected sizes of at most " + std::to_string(maxTileSize);
  if (elementBytes != 2 && elementBytes != 4)
    return "got elements of " + std::to_string(elementBytes) +
           " bytes, expected 2 or 4";
  if (rows == 1)
    return checkRow(*this);
  if (rows % 8 != 0)
    return "got " + std::to_string(rows) +
           " rows, expected 1 or a multiple of 8";
  if (columns % 16 != 0)
    return "got " + std::to_string(columns) +
           " columns, expected a multiple of 16";
  if (panelBytes != 0 && panelBytes != 16 && panelBytes != 32 &&
      panelBytes != 64 && panelBytes != 128)
    return "got panels of " + std::to_string(panelBytes) +
           " bytes, expected 128, 64, 32 or 16";
  return "";
}

int64_t SharedTile::chunksPerRow() const {
  return (panelBytes != 0 ? panelBytes : columns * elementBytes) / chunkBytes;
}

int64_t SharedTile::elementsPerChunk() const {
  return chunkBytes / elementBytes;
}

int64_t SharedTile::period() const {
  return std::gcd(chunksPerRow(), int64_t(8));
}

int64_t SharedTile::rowsPerXor() const { return 8 / period(); }

int64_t SharedTile::xorOf(int64_t row) const {
  return (row / rowsPerXor()) & (period() - 1);
}

int64_t SharedTile::chunkOffset(int64_t row, int64_t chunk) const {
  int64_t perRow = chunksPerRow();
  int64_t panel = panelBytes != 0 ? chunk / perRow : 0;
  int64_t inPanel = (chunk - panel * perRow) ^ xorOf(row);
  return ((panel * rows + row) * perRow + inPanel) * chunkBytes;
}

int64_t SharedTile::byteOffset(int64_t row, int64_t column) const {
  return chunkOffset(row, column / elementsPerChunk()) +
         column % elementsPerChunk() * elementBytes;
}

bool SharedTile::splitsInto(int64_t parts) const {
  int64_t perRow = columns * elementBytes / chunkBytes;
  if (perRow % parts != 0)
    return false;
  int64_t perPart = perRow / parts;
  return perPart % period() == 0 || period() % perPart == 0;
}

int64_t SharedTile::bytes() const {
  if (panelBytes != 0)
    return numPanels() * rows * panelBytes;
  return rows * columns * elementBytes;
}

int64_t SharedTile::numPanels() const {
  return (columns * elementBytes + panelBytes - 1) / panelBytes;
}

int64_t SharedTile::panelColumns() const { return panelBytes / elementBytes; }
