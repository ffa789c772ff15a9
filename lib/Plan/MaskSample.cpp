//===- MaskSample.cpp - how much of a mask tiles visit -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which keys quotients, remainders and alternatives show is not told from their
// form: that all queries see the last 16 keys of each 128 leaves half of all
// blocks of 64 keys empty, and none of 128. So the mask is run, for every
// fourth query of a sequence of 4608, and the shown pairs of each cell of 64
// queries and 32 keys are counted, of which tiles consist.
//
//===----------------------------------------------------------------------===//

#include "MaskSample.h"

#include "attn/Dialect/Attn/IR/MaskRunner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace mlir;
using namespace attn;

namespace {
/// Of the sequence; sizes of tiles divide it.
constexpr int64_t length = 4608;
constexpr int64_t cellQueries = 64, cellKeys = 32;
/// Queries of a cell that are looked at: the first and the last one, and some
/// in between, of every remainder by small numbers.
constexpr int64_t queriesInCell[] = {0,  4,  8,  12, 16, 21, 25, 29,
                                     33, 37, 42, 46, 50, 54, 58, 63};
/// One after the other of so many queries.
constexpr int64_t heads[] = {0, 5}, queriesOfHead = 768;
/// Queries and keys of tiles.
constexpr std::pair<int64_t, int64_t> tileSizes[] = {
    {256, 64}, {192, 96}, {192, 64}, {128, 128}, {128, 64}};

/// How many pairs of each cell the mask shows.
class Cells {
public:
  Cells() : counts(rowCells * length / cellQueries) {}

  void add(int64_t query, ArrayRef<int32_t> shown);
  plan::TileVisits measure(int64_t queries, int64_t keys) const;

private:
  static constexpr int64_t rowCells = length / cellKeys;
  std::vector<int64_t> counts;
};
} // namespace

void Cells::add(int64_t query, ArrayRef<int32_t> shown) {
  int64_t *cells = &counts[query / cellQueries * rowCells];
  for (int64_t cell = 0; cell < rowCells; ++cell) {
    if (shown.size() == 1) {
      cells[cell] += shown[0] * cellKeys;
      continue;
    }
    const int32_t *keys = shown.data() + cell * cellKeys;
    cells[cell] += std::accumulate(keys, keys + cellKeys, int32_t(0));
  }
}

plan::TileVisits Cells::measure(int64_t queries, int64_t keys) const {
  plan::TileVisits visits{queries, keys, 0, 0};
  int64_t rows = queries / cellQueries, columns = keys / cellKeys;
  int64_t pairs = rows * std::size(queriesInCell) * keys;
  for (int64_t row = 0; row < length / cellQueries; row += rows)
    for (int64_t column = 0; column < rowCells; column += columns) {
      int64_t shown = 0;
      for (int64_t i = row; i < row + rows; ++i)
        for (int64_t j = column; j < column + columns; ++j)
          shown += counts[i * rowCells + j];
      if (shown != 0)
        (shown == pairs ? visits.full : visits.partial) +=
            double(queries * keys) / length;
    }
  return visits;
}

/// Of other masks blocks of all sizes are about as full.
static bool hasPattern(Block &mask) {
  return llvm::any_of(mask, [](Operation &op) {
    bool isOfNumbers =
        op.getNumResults() == 1 && !op.getResult(0).getType().isInteger(1);
    if (isa<arith::AndIOp>(op))
      return isOfNumbers;
    return isa<arith::OrIOp, arith::XOrIOp, arith::SelectOp, arith::DivSIOp,
               arith::DivUIOp, arith::FloorDivSIOp, arith::RemSIOp,
               arith::RemUIOp, arith::ShRSIOp, arith::ShRUIOp>(op);
  });
}

std::vector<plan::TileVisits> plan::sampleMask(Region &mask) {
  Block &block = mask.front();
  if (!hasPattern(block))
    return {};
  MaskRunner runner(block, length, /*isAlongQueries=*/false,
                    /*scalar=*/length * 5 / 8);
  Cells cells;
  for (int64_t first = 0; first < length; first += cellQueries) {
    size_t number = first / queriesOfHead;
    if (first % queriesOfHead == 0 &&
        !runner.start(heads[number % std::size(heads)]))
      return {};
    for (int64_t query : queriesInCell)
      cells.add(first + query, runner.run(first + query));
  }
  std::vector<TileVisits> visits;
  for (auto [queries, keys] : tileSizes)
    visits.push_back(cells.measure(queries, keys));
  return visits;
}
