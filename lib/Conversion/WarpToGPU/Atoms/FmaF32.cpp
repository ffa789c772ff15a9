//===- FmaF32.cpp - f32 products by multiply-adds -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of `ieee`: every lane computes the elements of the accumulator that
// it holds, as mma.m16n8k8 leaves them, so that all around the product stays as
// it is. For a step of 8 columns of k it wants its two rows of A, which it
// reads in shared memory or gets from the three lanes that hold the rest of
// them, and its two columns of B.
//
// A step is summed from zero by fused multiply-adds and then joins the
// accumulator: sums of hundreds of terms lose fewer bits than one by one, which
// keeps the error below that of a plain f32 product (N9).
//
// The steps are a loop: unrolled, they are ten thousand instructions and more,
// and half a minute for the compiler. Registers have no index, so those of A
// move on by a step in each turn.
//
//===----------------------------------------------------------------------===//

#include "FmaF32.h"

#include "../Fragments.h"
#include "../Integers.h"
#include "LaneAddress.h"

#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Columns of k in a step.
static constexpr int64_t depth = 8;

namespace {

/// What a lane multiplies of one row of A or one column of B.
using Line = std::array<Value, depth>;

/// The lines of one step of k that lie along the rows of a slot: eight numbers
/// of a row.
class RowReader {
public:
  /// The lane's row in the 8 rows of a box.
  RowReader(OpBuilder &builder, Location loc, SlotType slot, Value base,
            Value row, Value rowInBox)
      : lane(builder, loc, slot, base, row, rowInBox,
             Integers(builder, loc).constant(0)) {}

  /// From `column` on.
  void moveTo(OpBuilder &builder, Value column) {
    inStep.emplace(lane.moved(builder, Value(), column));
  }
  Line read(OpBuilder &builder, Location loc, int64_t row);

private:
  LaneAddress lane;
  std::optional<LaneAddress> inStep;
};

/// Pairs of neighbouring lines of one step that lie down the columns of a slot.
class ColumnsReader {
public:
  ColumnsReader(OpBuilder &builder, Location loc, SlotType slot, Value base);

  /// From `row` on.
  void moveTo(OpBuilder &builder, Value row) {
    inStep.clear();
    for (LaneAddress &lane : rows)
      inStep.push_back(lane.moved(builder, row, Value()));
  }
  std::array<Line, 2> read(OpBuilder &builder, Location loc, int64_t column);

private:
  SmallVector<LaneAddress, depth> rows, inStep;
};

} // namespace

/// Neighbours in shared memory, in one load.
template <size_t count>
static std::array<Value, count> loadNeighbours(OpBuilder &builder, Location loc,
                                               Value pointer) {
  Type type = VectorType::get(count, builder.getF32Type());
  Value vector = LLVM::LoadOp::create(builder, loc, type, pointer,
                                      /*alignment=*/4 * count);
  std::array<Value, count> values;
  for (auto [i, value] : llvm::enumerate(values)) {
    Value at = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                        builder.getI32IntegerAttr(i));
    value = LLVM::ExtractElementOp::create(builder, loc, vector, at);
  }
  return values;
}

Line RowReader::read(OpBuilder &builder, Location loc, int64_t row) {
  Line line;
  for (int64_t first : {0, 4})
    llvm::copy(loadNeighbours<4>(builder, loc, inStep->at(row, first)),
               line.begin() + first);
  return line;
}

ColumnsReader::ColumnsReader(OpBuilder &builder, Location loc, SlotType slot,
                             Value base) {
  Integers ints(builder, loc);
  Value column = ints.mul(ints.rem(ints.lane(), 4), 2);
  for (int64_t k = 0; k < depth; ++k) {
    Value row = ints.constant(k);
    rows.emplace_back(builder, loc, slot, base, row, row, column);
  }
}

std::array<Line, 2> ColumnsReader::read(OpBuilder &builder, Location loc,
                                        int64_t column) {
  std::array<Line, 2> lines;
  for (auto [k, lane] : llvm::enumerate(inStep))
    for (auto [line, value] : llvm::zip_equal(
             lines, loadNeighbours<2>(builder, loc, lane.at(0, column))))
      line[k] = value;
  return lines;
}

namespace {

/// The A operand, in registers or in a slot.
class LeftRows {
public:
  LeftRows(OpBuilder &builder, Product product);

  /// The step of k from `column` on; its registers come first in each row step
  /// of `registers`.
  void moveTo(OpBuilder &builder, Value column, ValueRange registers);
  /// The lane's two rows of row step `t`.
  std::array<Line, 2> read(OpBuilder &builder, Location loc, int64_t t);
  /// The registers, those of the next step first.
  SmallVector<Value> next() const;

  SmallVector<Value> registers; // none in a slot

private:
  Value fromLane(OpBuilder &builder, Location loc, Value value, Value lane);

  int64_t steps, warps;
  std::optional<RowReader> reader;
  SmallVector<Value, 4> lanes; // those with the lane's rows
};

/// The B operand in its slot, as the columns that it is.
class RightColumns {
public:
  RightColumns(OpBuilder &builder, Product product);
  /// The step of k from number `k` on.
  void moveTo(OpBuilder &builder, Value k);
  /// The lane's two columns of tile `c`.
  std::array<Line, 2> read(OpBuilder &builder, Location loc, int64_t c);

private:
  std::optional<ColumnsReader> columns;
  SmallVector<RowReader, 2> rows; // of the transposed tile
};

} // namespace

/// Steps of k in a product.
static int64_t numSteps(Product product) {
  return product.rightType().getShape()[product.op.getTransposeB() ? 1 : 0] /
         depth;
}

LeftRows::LeftRows(OpBuilder &builder, Product product)
    : steps(numSteps(product)), warps(product.accType().getWarps()) {
  Location loc = product.op.getLoc();
  Integers ints(builder, loc);
  Value row = ints.div(ints.lane(), layout::laneColumns);
  if (SlotType slot = product.leftSlot()) {
    Value first = ints.mul(ints.warp(), layout::groupRows);
    reader.emplace(builder, loc, slot, product.a.front(), ints.add(row, first),
                   row);
    return;
  }
  registers = llvm::to_vector(product.a);
  Value first = ints.mul(row, layout::laneColumns);
  for (int64_t i = 0; i < layout::laneColumns; ++i)
    lanes.push_back(ints.add(first, i));
}

void LeftRows::moveTo(OpBuilder &builder, Value column, ValueRange registers) {
  if (reader)
    reader->moveTo(builder, column);
  this->registers = llvm::to_vector(registers);
}

Value LeftRows::fromLane(OpBuilder &builder, Location loc, Value value,
                         Value lane) {
  Integers ints(builder, loc);
  return NVVM::ShflOp::create(builder, loc, value.getType(), ints.constant(-1),
                              value, lane, ints.constant(31),
                              NVVM::ShflKind::idx, UnitAttr());
}

std::array<Line, 2> LeftRows::read(OpBuilder &builder, Location loc,
                                   int64_t t) {
  std::array<Line, 2> lines;
  for (auto [half, line] : llvm::enumerate(lines)) {
    if (reader) {
      line =
          reader->read(builder, loc, t * warps * layout::groupRows + 8 * half);
      continue;
    }
    // Register 4 t steps + half + 2 e is column 2 (lane mod 4) + e.
    for (auto [k, value] : llvm::enumerate(line))
      value =
          fromLane(builder, loc, registers[t * steps * 4 + half + 2 * (k % 2)],
                   lanes[k / 2]);
  }
  return lines;
}

SmallVector<Value> LeftRows::next() const {
  SmallVector<Value> moved(registers);
  for (size_t t = 0; t < moved.size(); t += steps * 4)
    std::rotate(moved.begin() + t, moved.begin() + t + 4,
                moved.begin() + t + steps * 4);
  return moved;
}

RightColumns::RightColumns(OpBuilder &builder, Product product) {
  Location loc = product.op.getLoc();
  SlotType slot = product.rightType();
  if (!product.op.getTransposeB()) {
    columns.emplace(builder, loc, slot, product.b);
    return;
  }
  Integers ints(builder, loc);
  for (int64_t i = 0; i < 2; ++i) {
    Value row =
        ints.add(ints.mul(ints.rem(ints.lane(), layout::laneColumns), 2), i);
    rows.emplace_back(builder, loc, slot, product.b, row, row);
  }
}

void RightColumns::moveTo(OpBuilder &builder, Value k) {
  if (columns)
    columns->moveTo(builder, k);
  for (RowReader &reader : rows)
    reader.moveTo(builder, k);
}

std::array<Line, 2> RightColumns::read(OpBuilder &builder, Location loc,
                                       int64_t c) {
  if (columns)
    return columns->read(builder, loc, 8 * c);
  return {rows[0].read(builder, loc, 8 * c), rows[1].read(builder, loc, 8 * c)};
}

/// acc + the sum of the products of two lines.
static Value addProducts(OpBuilder &builder, Location loc, Value acc,
                         const Line &left, const Line &right) {
  Value sum = arith::MulFOp::create(builder, loc, left.front(), right.front());
  for (auto [a, b] : llvm::drop_begin(llvm::zip_equal(left, right)))
    sum = LLVM::FMAOp::create(builder, loc, a, b, sum);
  return arith::AddFOp::create(builder, loc, acc, sum);
}

/// The accumulator with the products of one step of k.
static SmallVector<Value> addStep(OpBuilder &builder, Location loc,
                                  FragType type, LeftRows &left,
                                  RightColumns &right, ValueRange accumulator) {
  int64_t tiles = type.getShape()[1] / 8, rowSteps = layoutOf(type).rowSteps();
  SmallVector<Value> acc = llvm::to_vector(accumulator);
  SmallVector<std::array<Line, 2>> lefts;
  for (int64_t t = 0; t < rowSteps; ++t)
    lefts.push_back(left.read(builder, loc, t));
  for (int64_t c = 0; c < tiles; ++c) {
    std::array<Line, 2> lines = right.read(builder, loc, c);
    for (int64_t t = 0; t < rowSteps; ++t)
      for (int64_t i = 0; i < 4; ++i) {
        Value &element = acc[(t * tiles + c) * 4 + i];
        element =
            addProducts(builder, loc, element, lefts[t][i >> 1], lines[i & 1]);
      }
  }
  return acc;
}

SmallVector<Value> attn::warp::emitFmaF32(OpBuilder &builder, Product product) {
  Location loc = product.op.getLoc();
  Integers ints(builder, loc);
  LeftRows left(builder, product);
  RightColumns right(builder, product);
  SmallVector<Value> carried = llvm::to_vector(product.acc);
  size_t numElements = carried.size();
  llvm::append_range(carried, left.registers);
  auto loop = scf::ForOp::create(
      builder, loc, ints.constant(0), ints.constant(numSteps(product) * depth),
      ints.constant(depth), carried,
      [&](OpBuilder &b, Location loc, Value k, ValueRange values) {
        left.moveTo(b, k, values.drop_front(numElements));
        right.moveTo(b, k);
        SmallVector<Value> next =
            addStep(b, loc, product.accType(), left, right,
                    values.take_front(numElements));
        llvm::append_range(next, left.next());
        scf::YieldOp::create(b, loc, next);
      });
  return llvm::to_vector_of<Value>(loop.getResults().take_front(numElements));
}
