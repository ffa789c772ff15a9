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
  if (rows % 8 != 0)
    return "got " + std::to_string(rows) + " rows, expected a multiple of 8";
  if (columns % 16 != 0)
    return "got " + std::to_string(columns) +
           " columns, expected a multiple of 16";
  return "";
}

int64_t SharedTile::chunksPerRow() const {
  return columns * elementBytes / chunkBytes;
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
  return (row * chunksPerRow() + (chunk ^ xorOf(row))) * chunkBytes;
}

int64_t SharedTile::byteOffset(int64_t row, int64_t column) const {
  return chunkOffset(row, column / elementsPerChunk()) +
         column % elementsPerChunk() * elementBytes;
}

int64_t SharedTile::bytes() const { return rows * columns * elementBytes; }
