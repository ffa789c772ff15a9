//===- Fragments.cpp - tiles spread over lanes ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Fragments.h"

#include <cassert>

using namespace attn::layout;

std::string Fragment::check() const {
  if (warps < 1 || warps > maxWarps)
    return "got " + std::to_string(warps) + " warps, expected 1 to " +
           std::to_string(maxWarps);
  if (rows < 1 || columns < 1)
    return "got shape " + std::to_string(rows) + "x" + std::to_string(columns) +
           ", expected positive sizes";
  if (rows > maxTileSize || columns > maxTileSize)
    return "got shape " + std::to_string(rows) + "x" + std::to_string(columns) +
           ", expected sizes of at most " + std::to_string(maxTileSize);
  if (kind == FragmentKind::A && elementBits != 16 && elementBits != 32)
    return "got elements of " + std::to_string(elementBits) +
           " bits, an operand fragment has 16 or 32";
  if (gridColumns != 1)
    if (std::string wrong = checkGrid(); !wrong.empty())
      return wrong;
  bool fixedRows = kind == FragmentKind::A || rows != 1;
  bool sharesColumns = columnGroups() > 1 && warps % rowWarps() == 0 &&
                       columns % (columnsPerStep() * columnGroups()) == 0;
  if (gridColumns == 1 && fixedRows && rows % (groupRows * warps) != 0 &&
      !sharesColumns)
    return "got " + std::to_string(rows) + " rows, expected a multiple of " +
           std::to_string(groupRows) + " rows x " + std::to_string(warps) +
           " warps";
  bool lanePartial = columns == laneColumns && rows != 1;
  bool fixedColumns = kind == FragmentKind::A || (columns != 1 && !lanePartial);
  if (fixedColumns && columns % columnsPerStep() != 0)
    return "got " + std::to_string(columns) +
           " columns, expected a multiple of " +
           std::to_string(columnsPerStep());
  if (numRegisters() > maxRegisters)
    return "got " + std::to_string(numRegisters()) +
           " registers per lane, expected at most " +
           std::to_string(maxRegisters);
  return "";
}

std::string Fragment::checkGrid() const {
  if (kind == FragmentKind::A)
    return "got warps in a grid, those of an operand fragment are stacked";
  if (gridColumns < 1 || warps % gridColumns != 0)
    return "got " + std::to_string(warps) + " warps, expected a multiple of " +
           std::to_string(gridColumns) + " columns of warps";
  if (rows != 1 && rows % (groupRows * rowWarps()) != 0)
    return "got " + std::to_string(rows) + " rows, expected a multiple of " +
           std::to_string(groupRows) + " rows x " + std::to_string(rowWarps()) +
           " rows of warps";
  if (columns != 1 && columns % (columnsPerStep() * gridColumns) != 0)
    return "got " + std::to_string(columns) +
           " columns, expected a multiple of " +
           std::to_string(columnsPerStep()) + " columns x " +
           std::to_string(gridColumns) + " columns of warps";
  return "";
}

int64_t Fragment::rowWarps() const {
  if (gridColumns > 1)
    return warps / gridColumns;
  bool isShort = kind == FragmentKind::Acc && rows < groupRows * warps &&
                 rows % groupRows == 0 && columns > laneColumns;
  return isShort ? rows / groupRows : warps;
}

int64_t Fragment::rowSteps() const {
  return rows == 1 ? 1 : rows / (groupRows * rowWarps());
}

int64_t Fragment::columnsPerStep() const {
  return kind == FragmentKind::A && elementBits == 16 ? 16 : 8;
}

int64_t Fragment::columnSteps() const {
  return columns <= laneColumns ? 1
                                : columns / (columnsPerStep() * columnGroups());
}

int64_t Fragment::numRegisters() const {
  int64_t perStep = (rows == 1 ? 1 : 2) * (columns <= laneColumns ? 1 : 2);
  return rowSteps() * columnSteps() * perStep;
}

int64_t Fragment::elementsPerRegister() const {
  return kind == FragmentKind::A && elementBits == 16 ? 2 : 1;
}

int64_t Fragment::replication() const {
  int64_t lanes = warpSize * warps;
  if (rows != 1)
    lanes /= 8 * rowWarps();
  if (columns != 1)
    lanes /= 4 * columnGroups();
  return lanes;
}

/// The parts of a register number; see the header.
namespace {
struct Parts {
  int64_t rowStep, columnStep, half, pair;
};
} // namespace

static Parts split(const Fragment &fragment, int64_t reg) {
  int64_t steps = fragment.columnSteps();
  if (fragment.rows == 1 && fragment.columns == 1)
    return {0, 0, 0, 0};
  if (fragment.columns <= laneColumns)
    return {reg / 2, 0, reg % 2, 0};
  if (fragment.rows == 1)
    return {0, reg / 2, 0, reg % 2};
  int64_t inner = reg % 4, step = reg / 4;
  if (fragment.kind == FragmentKind::Acc)
    return {step / steps, step % steps, inner >> 1, inner & 1};
  return {step / steps, step % steps, inner & 1, inner >> 1};
}

static int64_t join(const Fragment &fragment, const Parts &parts) {
  if (fragment.rows == 1 && fragment.columns == 1)
    return 0;
  if (fragment.columns <= laneColumns)
    return 2 * parts.rowStep + parts.half;
  if (fragment.rows == 1)
    return 2 * parts.columnStep + parts.pair;
  int64_t step = parts.rowStep * fragment.columnSteps() + parts.columnStep;
  if (fragment.kind == FragmentKind::Acc)
    return 4 * step + 2 * parts.half + parts.pair;
  return 4 * step + parts.half + 2 * parts.pair;
}

Coord Fragment::coordOf(const Position &position) const {
  assert(position.reg >= 0 && position.reg < numRegisters());
  Parts parts = split(*this, position.reg);
  int64_t quad = position.lane / 4, inQuad = position.lane % 4;
  Coord coord;
  if (rows != 1)
    coord.row =
        groupRows * (parts.rowStep * rowWarps() + position.warp % rowWarps()) +
        quad + 8 * parts.half;
  if (columns == 1)
    return coord;
  if (columns == laneColumns) {
    coord.column = inQuad;
    return coord;
  }
  int64_t step = position.warp / rowWarps() * columnSteps() + parts.columnStep;
  coord.column = columnsPerStep() * step + 2 * inQuad;
  if (elementsPerRegister() == 2)
    coord.column += 8 * parts.pair + position.element;
  else
    coord.column += parts.pair;
  return coord;
}

Position Fragment::ownerOf(const Coord &coord) const {
  assert(coord.row < rows && coord.column < columns);
  Position position;
  Parts parts = {0, 0, 0, 0};
  if (rows != 1) {
    int64_t group = coord.row / groupRows, inGroup = coord.row % groupRows;
    position.warp = group % rowWarps();
    position.lane = 4 * (inGroup % 8);
    parts.rowStep = group / rowWarps();
    parts.half = inGroup / 8;
  }
  if (columns == laneColumns) {
    position.lane += coord.column;
  } else if (columns != 1) {
    int64_t inStep = coord.column % columnsPerStep();
    position.lane += (inStep % 8) / 2;
    int64_t step = coord.column / columnsPerStep();
    position.warp += step / columnSteps() * rowWarps();
    parts.columnStep = step % columnSteps();
    if (elementsPerRegister() == 2) {
      parts.pair = inStep / 8;
      position.element = inStep % 2;
    } else {
      parts.pair = inStep % 2;
    }
  }
  position.reg = join(*this, parts);
  return position;
}

int64_t Fragment::rowSliceRegister(int64_t reg) const {
  assert(kind == FragmentKind::Acc && "slices of accumulators only");
  Parts parts = split(*this, reg);
  return rows == 1 ? 0 : 2 * parts.rowStep + parts.half;
}

int64_t Fragment::columnSliceRegister(int64_t reg) const {
  assert(kind == FragmentKind::Acc && "slices of accumulators only");
  Parts parts = split(*this, reg);
  return columns == 1 ? 0 : 2 * parts.columnStep + parts.pair;
}

int64_t Fragment::accRegisterOfA(int64_t reg, int64_t element) const {
  assert(kind == FragmentKind::A && "an operand fragment");
  Fragment acc = *this;
  acc.kind = FragmentKind::Acc;
  Parts parts = split(*this, reg);
  if (elementsPerRegister() == 2) {
    // Two 8-column accumulator tiles make one 16-column step.
    parts.columnStep = 2 * parts.columnStep + parts.pair;
    parts.pair = element;
  }
  return join(acc, parts);
}

int64_t attn::layout::chooseGridColumns(int64_t blockRows, int64_t warps) {
  int64_t rows = groupRows * warps;
  bool isShort = blockRows > 0 && blockRows % groupRows == 0 &&
                 blockRows < rows && rows % blockRows == 0;
  return isShort ? rows / blockRows : 1;
}

int64_t attn::layout::tf32Column(int64_t slot) {
  return slot < 4 ? 2 * slot : 2 * (slot - 4) + 1;
}
