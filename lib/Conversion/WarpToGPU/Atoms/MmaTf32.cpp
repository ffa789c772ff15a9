//===- MmaTf32.cpp - f32 products by mma.sync m16n8k8 tf32 -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tf32 keeps 10 bits of the mantissa. An f32 number x is split into big, x
// rounded to tf32, and small, the rest, of which the instruction cuts off the
// last bit or two; then
//
//   a b = big(a) big(b) + big(a) small(b) + small(a) big(b)
//
// with a relative error below 2^-21 (3xTF32; Ootomo and Yokota, "Recovering
// single precision accuracy from Tensor Cores"). An infinity takes part in the
// product of the big parts only: in the others it would meet the small part of
// a number, of either sign or 0, and give NaN where f32 gives an infinity.
//
// Tensor cores cut their sums off instead of rounding them, each product at the
// last bit of the largest term: on one accumulator for all steps of k these
// errors, all towards zero, add up to several times that of f32. So one or two
// steps of 8 start from zero, the small terms first, and their sum joins the
// accumulator by an ordinary addition, which rounds to nearest.
//
// The operands are read by ordinary loads, two neighbouring columns at a time:
// k-slot q < 4 of the instruction is column 2 q of a step, k-slot q + 4 column
// 2 q + 1 (attn/Layout/Fragments.h), for A and B alike.
//
//===----------------------------------------------------------------------===//

#include "MmaTf32.h"

#include "../Fragments.h"
#include "../Integers.h"
#include "LaneAddress.h"

#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

/// The two columns of each row that a lane has in a k-step.
class PairReader {
public:
  PairReader(OpBuilder &builder, Location loc, SlotType slot, Value base,
             Value firstRow = {});
  std::array<Value, 2> read(int64_t row, int64_t column);

private:
  OpBuilder &builder;
  Location loc;
  std::optional<LaneAddress> lane;
};

/// The same of a tile that lies with k along its rows: two rows of a column.
class ColumnReader {
public:
  ColumnReader(OpBuilder &builder, Location loc, SlotType slot, Value base);
  std::array<Value, 2> read(int64_t row, int64_t column);

private:
  OpBuilder &builder;
  Location loc;
  std::optional<LaneAddress> lanes[2];
};

/// Low bits of a register that the instruction does not read.
constexpr int unreadBits = 13;

/// A number as two of tf32, in i32; an infinite or NaN one has no finite part.
struct Split {
  Value big, finite, small;
};

/// The registers of an operand of one instruction.
struct Operand {
  SmallVector<Value, 4> big, finite, small;

  void append(Split split) {
    big.push_back(split.big);
    finite.push_back(split.finite);
    small.push_back(split.small);
  }
};

} // namespace

PairReader::PairReader(OpBuilder &builder, Location loc, SlotType slot,
                       Value base, Value firstRow)
    : builder(builder), loc(loc) {
  Integers ints(builder, loc);
  Value row = ints.div(ints.lane(), 4);
  Value column = ints.mul(ints.rem(ints.lane(), 4), 2);
  lane.emplace(builder, loc, slot, base,
               firstRow ? ints.add(row, firstRow) : row, row, column);
}

std::array<Value, 2> PairReader::read(int64_t row, int64_t column) {
  Type f32 = builder.getF32Type();
  Value pair = LLVM::LoadOp::create(builder, loc, VectorType::get(2, f32),
                                    lane->at(row, column), /*alignment=*/8);
  std::array<Value, 2> result;
  for (auto [i, value] : llvm::enumerate(result)) {
    Value at = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                        builder.getI32IntegerAttr(i));
    value = LLVM::ExtractElementOp::create(builder, loc, pair, at);
  }
  return result;
}

ColumnReader::ColumnReader(OpBuilder &builder, Location loc, SlotType slot,
                           Value base)
    : builder(builder), loc(loc) {
  Integers ints(builder, loc);
  Value column = ints.div(ints.lane(), 4);
  Value row = ints.mul(ints.rem(ints.lane(), 4), 2);
  for (auto [i, lane] : llvm::enumerate(lanes)) {
    Value at = ints.add(row, static_cast<int64_t>(i));
    lane.emplace(builder, loc, slot, base, at, at, column);
  }
}

std::array<Value, 2> ColumnReader::read(int64_t row, int64_t column) {
  std::array<Value, 2> result;
  for (auto [lane, value] : llvm::zip_equal(lanes, result))
    value = LLVM::LoadOp::create(builder, loc, builder.getF32Type(),
                                 lane->at(row, column), /*alignment=*/4);
  return result;
}

/// x rounded to tf32, ties away from zero as cvt.rna.tf32 has them. That
/// instruction is four on the chip, which also look for infinities and NaNs:
/// there are none here.
static Value roundToTf32(OpBuilder &builder, Location loc, Value x) {
  Integers ints(builder, loc);
  Value bits = arith::BitcastOp::create(builder, loc, builder.getI32Type(), x);
  Value half = ints.add(bits, 1 << (unreadBits - 1));
  return arith::AndIOp::create(builder, loc, half,
                               ints.constant(-1 << unreadBits));
}

static Split split(OpBuilder &builder, Location loc, Value x) {
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  auto constant = [&](float value) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getF32FloatAttr(value));
  };
  Value magnitude =
      LLVM::CallIntrinsicOp::create(builder, loc, f32,
                                    builder.getStringAttr("llvm.fabs"), x)
          .getResult(0);
  Value isFinite =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, magnitude,
                            constant(std::numeric_limits<float>::infinity()));
  Value number =
      arith::SelectOp::create(builder, loc, isFinite, x, constant(0));
  Value finite = roundToTf32(builder, loc, number);
  Value rest = arith::SubFOp::create(
      builder, loc, number,
      arith::BitcastOp::create(builder, loc, f32, finite));
  Value big =
      arith::SelectOp::create(builder, loc, isFinite, finite,
                              arith::BitcastOp::create(builder, loc, i32, x));
  return {big, finite, arith::BitcastOp::create(builder, loc, i32, rest)};
}

/// One instruction; `acc` is updated in place.
static void emitMma(OpBuilder &builder, Location loc, ValueRange a,
                    ValueRange b, MutableArrayRef<Value> acc) {
  Type f32 = builder.getF32Type();
  Type type = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                               {f32, f32, f32, f32});
  Value result = NVVM::MmaOp::create(
      builder, loc, type, a, b, ValueRange(ArrayRef<Value>(acc)),
      ArrayRef<int64_t>{16, 8, 8}, /*b1Op=*/std::nullopt,
      /*intOverflow=*/std::nullopt,
      std::array{NVVM::MMATypes::tf32, NVVM::MMATypes::tf32},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, value] : llvm::enumerate(acc))
    value = LLVM::ExtractValueOp::create(builder, loc, f32, result, i);
}

/// Steps of k on one tile: acc += their products, summed by themselves, the
/// small ones of all steps first.
static void emitSteps(OpBuilder &builder, Location loc, ArrayRef<Operand> left,
                      ArrayRef<Operand> right, MutableArrayRef<Value> acc) {
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  SmallVector<Value, 4> sum(acc.size(), zero);
  for (auto [a, b] : llvm::zip_equal(left, right)) {
    emitMma(builder, loc, a.small, b.finite, sum);
    emitMma(builder, loc, a.finite, b.small, sum);
  }
  for (auto [a, b] : llvm::zip_equal(left, right))
    emitMma(builder, loc, a.big, b.big, sum);
  for (auto [value, part] : llvm::zip_equal(acc, sum))
    value = matchPattern(value, m_AnyZeroFloat())
                ? part
                : arith::AddFOp::create(builder, loc, value, part).getResult();
}

/// The four registers of an A operand at a row group and k-step of a slot.
static SmallVector<Value> readLeft(PairReader &reader, int64_t row,
                                   int64_t column) {
  std::array<Value, 2> upper = reader.read(row, column);
  std::array<Value, 2> lower = reader.read(row + 8, column);
  return {upper[0], lower[0], upper[1], lower[1]};
}

/// How many steps are summed from zero before they join the accumulator: two
/// save additions, and take registers that a large accumulator, or a deep
/// product, which has much to load ahead, does not leave (ptxas 13.0).
static int64_t countStepsAtOnce(size_t accRegisters, int64_t steps) {
  return accRegisters <= 64 && steps <= 8 ? 2 : 1;
}

SmallVector<Value> attn::warp::emitMmaTF32(OpBuilder &builder,
                                           Product product) {
  SlotType right = product.rightType();
  FragType accType = product.accType();
  Location loc = product.op.getLoc();
  Integers ints(builder, loc);
  bool transposed = product.op.getTransposeB();
  int64_t steps = right.getShape()[transposed ? 1 : 0] / 8;
  int64_t tiles = accType.getShape()[1] / 8;
  layout::Fragment layout = layoutOf(accType);

  std::optional<PairReader> pairs, left;
  std::optional<ColumnReader> columns;
  if (transposed)
    pairs.emplace(builder, loc, right, product.b);
  else
    columns.emplace(builder, loc, right, product.b);
  if (SlotType slot = product.leftSlot())
    left.emplace(builder, loc, slot, product.a.front(),
                 ints.mul(ints.warp(), layout::groupRows));

  SmallVector<Value> acc = llvm::to_vector(product.acc);
  auto splitAll = [&](ValueRange values) {
    Operand operand;
    for (Value value : values)
      operand.append(split(builder, loc, value));
    return operand;
  };
  auto readRows = [&](int64_t t, int64_t s) {
    int64_t row = t * accType.getWarps() * layout::groupRows;
    return left ? readLeft(*left, row, 8 * s)
                : llvm::to_vector(product.a.slice((t * steps + s) * 4, 4));
  };
  int64_t atOnce = countStepsAtOnce(acc.size(), steps);
  for (int64_t first = 0; first < steps; first += atOnce) {
    auto chunk = llvm::seq(first, std::min(first + atOnce, steps));
    SmallVector<SmallVector<Operand>> lefts(layout.rowSteps());
    for (auto [t, operands] : llvm::enumerate(lefts))
      for (int64_t s : chunk)
        operands.push_back(splitAll(readRows(t, s)));
    for (int64_t c = 0; c < tiles; ++c) {
      SmallVector<Operand> right;
      for (int64_t s : chunk)
        right.push_back(splitAll(transposed ? pairs->read(8 * c, 8 * s)
                                            : columns->read(8 * s, 8 * c)));
      for (int64_t t = 0; t < layout.rowSteps(); ++t)
        emitSteps(builder, loc, lefts[t], right,
                  MutableArrayRef<Value>(acc).slice((t * tiles + c) * 4, 4));
    }
  }
  return acc;
}

SmallVector<Value> attn::warp::loadFragF32(OpBuilder &builder, LoadFragOp op,
                                           Value slot) {
  FragType type = op.getResult().getType();
  Location loc = op.getLoc();
  Integers ints(builder, loc);
  PairReader reader(builder, loc, op.getSlot().getType(), slot,
                    ints.mul(ints.warp(), layout::groupRows));
  layout::Fragment layout = layoutOf(type);
  SmallVector<Value> result;
  for (int64_t t = 0; t < layout.rowSteps(); ++t)
    for (int64_t s = 0; s < layout.columnSteps(); ++s)
      llvm::append_range(
          result,
          readLeft(reader, t * type.getWarps() * layout::groupRows, 8 * s));
  return result;
}
