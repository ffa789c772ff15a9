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
// keeps the error below that of a plain f32 product (C20).
//
//===----------------------------------------------------------------------===//

#include "../Lowering.h"
#include "LaneAddress.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Columns of k in a step.
static constexpr int64_t depth = 8;

namespace {

/// What a lane multiplies of one row of A or one column of B.
using Line = std::array<Value, depth>;

/// Reads lines that lie along the rows of a slot: eight numbers of a row.
class RowReader {
public:
  /// The lane's row in the 8 rows of a box.
  RowReader(OpBuilder &builder, Location loc, SlotType slot, Value base,
            Value row, Value rowInBox)
      : builder(builder), loc(loc),
        lane(builder, loc, slot, base, row, rowInBox,
             Integers(builder, loc).constant(0)) {}

  Line read(int64_t row, int64_t column);

private:
  OpBuilder &builder;
  Location loc;
  LaneAddress lane;
};

/// Reads two neighbouring lines that lie down the columns of a slot.
class ColumnsReader {
public:
  ColumnsReader(OpBuilder &builder, Location loc, SlotType slot, Value base);
  std::array<Line, 2> read(int64_t row, int64_t column);

private:
  OpBuilder &builder;
  Location loc;
  SmallVector<LaneAddress, depth> rows;
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

Line RowReader::read(int64_t row, int64_t column) {
  Line line;
  for (int64_t first : {0, 4})
    llvm::copy(loadNeighbours<4>(builder, loc, lane.at(row, column + first)),
               line.begin() + first);
  return line;
}

ColumnsReader::ColumnsReader(OpBuilder &builder, Location loc, SlotType slot,
                             Value base)
    : builder(builder), loc(loc) {
  Integers ints(builder, loc);
  Value column = ints.mul(ints.rem(ints.lane(), 4), 2);
  for (int64_t k = 0; k < depth; ++k) {
    Value row = ints.constant(k);
    rows.emplace_back(builder, loc, slot, base, row, row, column);
  }
}

std::array<Line, 2> ColumnsReader::read(int64_t row, int64_t column) {
  std::array<Line, 2> lines;
  for (auto [k, lane] : llvm::enumerate(rows))
    for (auto [line, value] : llvm::zip_equal(
             lines, loadNeighbours<2>(builder, loc, lane.at(row, column))))
      line[k] = value;
  return lines;
}

namespace {

/// The A operand, in registers or in a slot.
class LeftRows {
public:
  LeftRows(OpBuilder &builder, Location loc, MmaOp op, ValueRange values);
  /// The lane's two rows of row step `t` in step `s` of k.
  std::array<Line, 2> read(int64_t t, int64_t s);

private:
  Value fromLane(Value value, Value lane);

  OpBuilder &builder;
  Location loc;
  SmallVector<Value> registers;
  int64_t steps, warps;
  std::optional<RowReader> reader;
  SmallVector<Value, 4> lanes; // those with the lane's rows
};

} // namespace

LeftRows::LeftRows(OpBuilder &builder, Location loc, MmaOp op,
                   ValueRange values)
    : builder(builder), loc(loc) {
  Integers ints(builder, loc);
  warps = op.getAcc().getType().getWarps();
  steps = op.getB().getType().getShape()[op.getTransposeB() ? 1 : 0] / depth;
  Value row = ints.div(ints.lane(), layout::laneColumns);
  if (auto slot = dyn_cast<SlotType>(op.getA().getType())) {
    Value first = ints.mul(ints.warp(), layout::groupRows);
    reader.emplace(builder, loc, slot, values.front(), ints.add(row, first),
                   row);
    return;
  }
  registers = llvm::to_vector(values);
  Value first = ints.mul(row, layout::laneColumns);
  for (int64_t i = 0; i < layout::laneColumns; ++i)
    lanes.push_back(ints.add(first, i));
}

Value LeftRows::fromLane(Value value, Value lane) {
  Integers ints(builder, loc);
  return NVVM::ShflOp::create(builder, loc, value.getType(), ints.constant(-1),
                              value, lane, ints.constant(31),
                              NVVM::ShflKind::idx, UnitAttr());
}

std::array<Line, 2> LeftRows::read(int64_t t, int64_t s) {
  std::array<Line, 2> lines;
  for (auto [half, line] : llvm::enumerate(lines)) {
    if (reader) {
      line = reader->read(t * warps * layout::groupRows + 8 * half, depth * s);
      continue;
    }
    // Register 4 (t steps + s) + half + 2 e is column 2 (lane mod 4) + e.
    for (auto [k, value] : llvm::enumerate(line))
      value = fromLane(registers[(t * steps + s) * 4 + half + 2 * (k % 2)],
                       lanes[k / 2]);
  }
  return lines;
}

/// acc + the sum of the products of two lines.
static Value addStep(OpBuilder &builder, Location loc, Value acc,
                     const Line &left, const Line &right) {
  Value sum = arith::MulFOp::create(builder, loc, left.front(), right.front());
  for (auto [a, b] : llvm::drop_begin(llvm::zip_equal(left, right)))
    sum = LLVM::FMAOp::create(builder, loc, a, b, sum);
  return arith::AddFOp::create(builder, loc, acc, sum);
}

namespace {

struct LowerMmaIeee final : OpConversionPattern<MmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getIeee())
      return rewriter.notifyMatchFailure(op, "left to the tensor cores");
    SlotType right = op.getB().getType();
    FragType accType = op.getAcc().getType();
    Location loc = op.getLoc();
    Integers ints(rewriter, loc);
    bool transposed = op.getTransposeB();
    int64_t steps = right.getShape()[transposed ? 1 : 0] / depth;
    int64_t tiles = accType.getShape()[1] / 8;
    layout::Fragment layout = layoutOf(accType);

    Value base = adaptor.getB().front();
    LeftRows left(rewriter, loc, op, adaptor.getA());
    std::optional<ColumnsReader> columns;
    SmallVector<RowReader, 2> rows; // of the transposed tile, which are columns
    if (!transposed)
      columns.emplace(rewriter, loc, right, base);
    for (int64_t i = 0; transposed && i < 2; ++i) {
      Value row =
          ints.add(ints.mul(ints.rem(ints.lane(), layout::laneColumns), 2), i);
      rows.emplace_back(rewriter, loc, right, base, row, row);
    }

    SmallVector<Value> acc = llvm::to_vector(adaptor.getAcc());
    for (int64_t s = 0; s < steps; ++s) {
      SmallVector<std::array<Line, 2>> lefts;
      for (int64_t t = 0; t < layout.rowSteps(); ++t)
        lefts.push_back(left.read(t, s));
      for (int64_t c = 0; c < tiles; ++c) {
        std::array<Line, 2> lines;
        if (columns)
          lines = columns->read(depth * s, 8 * c);
        else
          for (auto [line, reader] : llvm::zip_equal(lines, rows))
            line = reader.read(8 * c, depth * s);
        for (int64_t t = 0; t < layout.rowSteps(); ++t)
          for (int64_t i = 0; i < 4; ++i) {
            Value &element = acc[(t * tiles + c) * 4 + i];
            element =
                addStep(rewriter, loc, element, lefts[t][i >> 1], lines[i & 1]);
          }
      }
    }
    rewriter.replaceOpWithMultiple(op, {acc});
    return success();
  }
};

} // namespace

void attn::warp::populateFmaF32Patterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<LowerMmaIeee>(converter, patterns.getContext());
}
