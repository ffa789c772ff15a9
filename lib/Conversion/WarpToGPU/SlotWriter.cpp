//===- SlotWriter.cpp - fragments into shared memory ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Addresses of the slot are those of Ldmatrix.cpp: chunk' = chunk xor x with an
// x that a lane's rows share. stmatrix writes four matrices of 8x8 at once;
// without it a lane writes a pair of columns, column 2 (lane mod 4) of the 8
// that a column tile has: in its chunk 0 of 16-bit elements, and in chunk (lane
// mod 4) / 2 of 32-bit ones.
//
//===----------------------------------------------------------------------===//

#include "SlotWriter.h"

#include "Atoms/Ldmatrix.h"
#include "Fragments.h"

#include "attn/Dialect/Warp/IR/Atoms.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

void SlotWriter::write(int64_t firstColumn) {
  if (elements.empty())
    elements = unpack(builder, loc, frag, values);
  if (isReadByWgmma(slotType) && tile.elementBytes == 2)
    writeMatrices(firstColumn);
  else
    writePairs(firstColumn);
}

/// stmatrix: matrices below each other, then beside each other.
void SlotWriter::writeMatrices(int64_t firstColumn) {
  MatrixReader matrices(builder, loc, slotType, slot,
                        MatrixReader::Order::RowsFirst,
                        ints.mul(ints.warp(), layout::groupRows));
  int64_t perStep = columns / 8 * 4;
  auto word = [&](int64_t reg) -> Value {
    return LLVM::BitcastOp::create(
        builder, loc, builder.getI32Type(),
        makePair(builder, loc, elements[reg], elements[reg + 1]));
  };
  for (int64_t t = 0; t < fragment.rowSteps(); ++t)
    for (int64_t column = 0; column < perPart; column += 16) {
      int64_t tiles = std::min<int64_t>(2, (perPart - column) / 8);
      int64_t reg = t * perStep + (firstColumn + column) / 8 * 4;
      SmallVector<Value> words;
      for (int64_t i = 0; i < 2 * tiles; ++i)
        words.push_back(word(reg + 2 * i));
      NVVM::StMatrixOp::create(
          builder, loc, matrices.address(rowOf(t), column), words,
          NVVM::MMALayout::row,
          NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8),
          NVVM::LdStMatrixEltType::B16);
    }
}

Value PairAddresses::at(int64_t row, int64_t column) {
  int64_t perChunk = tile.elementsPerChunk();
  if (!laneAddress) {
    Value lane = ints.lane();
    Value inMatrix = ints.div(lane, 4), pair = ints.mul(ints.rem(lane, 4), 2);
    Value swizzle =
        ints.rem(ints.div(inMatrix, tile.rowsPerXor()), tile.period());
    Value chunk = ints.bitXor(ints.div(pair, perChunk), swizzle);
    if (int64_t groups = fragment.columnGroups(); groups > 1) {
      // The parts of the groups divide the period, or are whole ones.
      assert(tile.splitsInto(groups) && "the verifier of the store");
      int64_t perPart = tile.chunksPerRow() / groups;
      Value group = ints.div(ints.warp(), fragment.rowWarps());
      Value first = ints.mul(group, perPart);
      Value inPeriod = ints.rem(first, tile.period());
      chunk = ints.add(ints.mul(ints.div(first, tile.period()), tile.period()),
                       ints.bitXor(inPeriod, chunk));
    }
    Value row = laneRow(ints, fragment);
    Value offset =
        ints.add(ints.mul(row, tile.chunksPerRow() * layout::chunkBytes),
                 ints.mul(chunk, layout::chunkBytes));
    offset =
        ints.add(offset, ints.mul(ints.rem(pair, perChunk), tile.elementBytes));
    laneAddress = ints.add(slot, offset);
  }
  int64_t perRow = tile.chunksPerRow(), chunk = column / perChunk;
  int64_t panel = tile.panelBytes != 0 ? chunk / perRow : 0;
  int64_t inRow = chunk - panel * perRow, inPeriod = inRow % tile.period();
  int64_t constant = ((panel * tile.rows + row) * perRow + inRow - inPeriod) *
                     layout::chunkBytes;
  Value address = ints.bitXor(laneAddress, inPeriod * layout::chunkBytes);
  return offsetBy(builder, loc, ints.toPointer(address), constant);
}

void SlotWriter::writePairs(int64_t firstColumn) {
  int64_t perStep = columns / 8 * 4;
  for (int64_t t = 0; t < fragment.rowSteps(); ++t)
    for (int64_t column = 0; column < perPart; column += 8)
      for (int64_t half = 0; half < 2; ++half) {
        int64_t reg = t * perStep + (firstColumn + column) / 8 * 4 + 2 * half;
        LLVM::StoreOp::create(
            builder, loc,
            makePair(builder, loc, elements[reg], elements[reg + 1]),
            addresses.at(rowOf(t) + 8 * half, column), 2 * tile.elementBytes);
      }
}
