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
// Half of the instructions of a split see to that. Where a product starts at
// zero they are spared: its numbers are split as if all were finite, any other
// makes its whole row or column NaN, and what is not finite is computed once
// more, with infinities, in a loop. (A product that adds to what was there has
// nothing left to start from.)
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
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>
#include <vector>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

/// Where the numbers of one k lie in a slot: along its rows or its columns.
enum class Depth { AlongRows, AlongColumns };

/// What a lane has of an operand: of each line (a row of A, a column of B) the
/// two numbers that its place in a k-step wants.
class LineReader {
public:
  /// The warp's lines begin with `firstLine`, a multiple of 8; null is 0.
  /// `parts`: of how many equal parts of the lines it is the beginning of one.
  LineReader(OpBuilder &builder, Location loc, SlotType slot, Value base,
             Depth depth, Value firstLine, int64_t parts = 1);
  /// The same from step `k` on, a multiple of 8.
  LineReader moved(OpBuilder &inner, Value k) const;
  std::array<Value, 2> read(int64_t line, int64_t k);

private:
  LineReader(OpBuilder &builder, Location loc, Depth depth,
             std::vector<LaneAddress> lanes, Value mixedLine)
      : builder(builder), loc(loc), depth(depth), lanes(std::move(lanes)),
        mixedLine(mixedLine) {}

  OpBuilder &builder;
  Location loc;
  Depth depth;
  /// Along the rows one for both numbers, along the columns one for each.
  std::vector<LaneAddress> lanes;
  /// The first line, if the swizzle mixes the lines of two parts; else null.
  Value mixedLine;
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

LineReader::LineReader(OpBuilder &builder, Location loc, SlotType slot,
                       Value base, Depth depth, Value firstLine, int64_t parts)
    : builder(builder), loc(loc), depth(depth) {
  Integers ints(builder, loc);
  Value line = ints.div(ints.lane(), 4);
  Value k = ints.mul(ints.rem(ints.lane(), 4), 2);
  if (depth == Depth::AlongRows) {
    Value row = firstLine ? ints.add(line, firstLine) : line;
    lanes.emplace_back(builder, loc, slot, base, row, line, k);
    return;
  }
  if (firstLine && !layoutOf(slot).splitsInto(parts))
    mixedLine = firstLine;
  for (int64_t i : {0, 1}) {
    Value row = ints.add(k, i);
    LaneAddress lane(builder, loc, slot, base, row, row, line);
    bool isMoved = firstLine && !mixedLine;
    lanes.push_back(isMoved ? lane.moved(builder, Value(), firstLine) : lane);
  }
}

LineReader LineReader::moved(OpBuilder &inner, Value k) const {
  std::vector<LaneAddress> result;
  for (const LaneAddress &lane : lanes)
    result.push_back(depth == Depth::AlongRows ? lane.moved(inner, Value(), k)
                                               : lane.moved(inner, k, Value()));
  return {inner, loc, depth, std::move(result), mixedLine};
}

std::array<Value, 2> LineReader::read(int64_t line, int64_t k) {
  Type f32 = builder.getF32Type();
  if (depth == Depth::AlongColumns) {
    auto load = [&](LaneAddress &lane) -> Value {
      auto loadAt = [&](Value address) {
        return LLVM::LoadOp::create(builder, loc, f32, address,
                                    /*alignment=*/4);
      };
      if (!mixedLine)
        return loadAt(lane.at(k, line));
      Value column = Integers(builder, loc).add(mixedLine, line);
      return loadAt(lane.moved(builder, Value(), column).at(k, 0));
    };
    return {load(lanes[0]), load(lanes[1])};
  }
  Value pair = LLVM::LoadOp::create(builder, loc, VectorType::get(2, f32),
                                    lanes[0].at(line, k), /*alignment=*/8);
  auto extract = [&](int32_t i) -> Value {
    Value at = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                        builder.getI32IntegerAttr(i));
    return LLVM::ExtractElementOp::create(builder, loc, pair, at);
  };
  return {extract(0), extract(1)};
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

/// Of a finite number; of others the small part is NaN.
static Split splitFinite(OpBuilder &builder, Location loc, Value x) {
  Value big = roundToTf32(builder, loc, x);
  Value rest = arith::SubFOp::create(
      builder, loc, x,
      arith::BitcastOp::create(builder, loc, builder.getF32Type(), big));
  return {big, big,
          arith::BitcastOp::create(builder, loc, builder.getI32Type(), rest)};
}

/// |x| < inf.
static Value isFinite(OpBuilder &builder, Location loc, Value x) {
  Type f32 = builder.getF32Type();
  Value magnitude =
      LLVM::CallIntrinsicOp::create(builder, loc, f32,
                                    builder.getStringAttr("llvm.fabs"), x)
          .getResult(0);
  Value infinity = arith::ConstantOp::create(
      builder, loc,
      builder.getF32FloatAttr(std::numeric_limits<float>::infinity()));
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT,
                               magnitude, infinity);
}

static Split splitAny(OpBuilder &builder, Location loc, Value x) {
  Value finite = isFinite(builder, loc, x);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  Split parts = splitFinite(
      builder, loc, arith::SelectOp::create(builder, loc, finite, x, zero));
  parts.big = arith::SelectOp::create(
      builder, loc, finite, parts.big,
      arith::BitcastOp::create(builder, loc, builder.getI32Type(), x));
  return parts;
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

namespace {
/// One tile of an accumulator, and for each step of k what it adds.
struct TileProduct {
  ArrayRef<Operand> left, right;
  MutableArrayRef<Value> acc;
};
} // namespace

/// Steps of k on several tiles: acc += their products, summed by themselves,
/// the small ones of all steps first. An instruction waits for the one before
/// on its tile, so the tiles take turns.
static void emitSteps(OpBuilder &builder, Location loc,
                      ArrayRef<TileProduct> tiles) {
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0));
  SmallVector<SmallVector<Value, 4>> sums(tiles.size(),
                                          {zero, zero, zero, zero});
  using Part = SmallVector<Value, 4> Operand::*;
  auto multiply = [&](size_t step, Part ofLeft, Part ofRight) {
    for (auto [tile, sum] : llvm::zip_equal(tiles, sums))
      emitMma(builder, loc, tile.left[step].*ofLeft, tile.right[step].*ofRight,
              sum);
  };
  size_t steps = tiles.front().left.size();
  for (size_t step : llvm::seq(steps)) {
    multiply(step, &Operand::small, &Operand::finite);
    multiply(step, &Operand::finite, &Operand::small);
  }
  for (size_t step : llvm::seq(steps))
    multiply(step, &Operand::big, &Operand::big);
  for (auto [tile, sum] : llvm::zip_equal(tiles, sums))
    for (auto [value, part] : llvm::zip_equal(tile.acc, sum))
      value =
          matchPattern(value, m_AnyZeroFloat())
              ? part
              : arith::AddFOp::create(builder, loc, value, part).getResult();
}

/// The four registers of an A operand at a row group and k-step of a slot.
static SmallVector<Value> readLeft(LineReader &reader, int64_t row, int64_t k) {
  std::array<Value, 2> upper = reader.read(row, k);
  std::array<Value, 2> lower = reader.read(row + 8, k);
  return {upper[0], lower[0], upper[1], lower[1]};
}

/// How many steps are summed from zero before they join the accumulator: two
/// save additions, and take registers that a large accumulator does not leave
/// (ptxas 13.0).
static int64_t countStepsAtOnce(size_t accRegisters) {
  return accRegisters <= 64 ? 2 : 1;
}

/// How many tiles of 8 columns take turns: as many as hide what an instruction
/// takes, of a large accumulator as many as it leaves registers for. Of an H200
/// 64 x 64 at d = 64 take 0.70 of the time of one tile after the other where
/// each has a multiprocessor, 0.91 where there are many, 64 x 32 at d = 128
/// 0.77 then.
static int64_t countColumnsAtOnce(size_t accRegisters, int64_t rowSteps) {
  int64_t tiles = rowSteps == 1 && accRegisters <= 32   ? 8
                  : rowSteps == 1 || accRegisters <= 64 ? 4
                                                        : 2;
  return std::max<int64_t>(1, tiles / rowSteps);
}

using Splitter = function_ref<Split(OpBuilder &, Location, Value)>;

namespace {

/// Steps of k of one product.
class DepthSteps {
public:
  DepthSteps(OpBuilder &builder, Product product);

  /// The accumulator with all of them.
  SmallVector<Value> addAll(OpBuilder &builder, Splitter split) {
    return add(builder, product.acc, Value(), numSteps, split);
  }
  /// The same in a loop, which is little code.
  SmallVector<Value> addInLoop(OpBuilder &builder, Splitter split);

private:
  /// `accumulator` with `number` steps from column `first` of k on; null is 0.
  SmallVector<Value> add(OpBuilder &builder, ValueRange accumulator,
                         Value first, int64_t number, Splitter split);

  Product product;
  int64_t numSteps;
  std::optional<LineReader> left, right;
};

} // namespace

DepthSteps::DepthSteps(OpBuilder &builder, Product product) : product(product) {
  Location loc = product.op.getLoc();
  Integers ints(builder, loc);
  SlotType rightType = product.rightType();
  layout::Fragment acc = layoutOf(product.accType());
  bool transposed = product.op.getTransposeB();
  numSteps = rightType.getShape()[transposed ? 1 : 0] / 8;
  Value firstRow = ints.warp(), firstColumn;
  if (acc.columnGroups() > 1) {
    firstColumn =
        ints.mul(ints.div(firstRow, acc.rowWarps()), 8 * acc.columnSteps());
    firstRow = ints.rem(firstRow, acc.rowWarps());
  }
  right.emplace(builder, loc, rightType, product.b,
                transposed ? Depth::AlongRows : Depth::AlongColumns,
                firstColumn, acc.columnGroups());
  if (SlotType slot = product.leftSlot())
    left.emplace(builder, loc, slot, product.a.front(),
                 product.op.getTransposeA() ? Depth::AlongColumns
                                            : Depth::AlongRows,
                 ints.mul(firstRow, layout::groupRows));
}

SmallVector<Value> DepthSteps::add(OpBuilder &builder, ValueRange accumulator,
                                   Value first, int64_t number,
                                   Splitter split) {
  Location loc = product.op.getLoc();
  FragType accType = product.accType();
  layout::Fragment layout = layoutOf(accType);
  int64_t tiles = layout.columnSteps();
  std::optional<LineReader> left = this->left, right = this->right;
  if (first) {
    assert(left && "registers are at constant places");
    left.emplace(this->left->moved(builder, first));
    right.emplace(this->right->moved(builder, first));
  }
  auto splitAll = [&](ValueRange values) {
    Operand operand;
    for (Value value : values)
      operand.append(split(builder, loc, value));
    return operand;
  };
  auto readRows = [&](int64_t t, int64_t s) {
    int64_t row = t * layout.rowWarps() * layout::groupRows;
    return left ? readLeft(*left, row, 8 * s)
                : llvm::to_vector(product.a.slice((t * numSteps + s) * 4, 4));
  };
  SmallVector<Value> acc = llvm::to_vector(accumulator);
  int64_t stepsAtOnce = countStepsAtOnce(acc.size());
  int64_t columnsAtOnce = countColumnsAtOnce(acc.size(), layout.rowSteps());
  for (int64_t next = 0; next < number; next += stepsAtOnce) {
    auto chunk = llvm::seq(next, std::min(next + stepsAtOnce, number));
    SmallVector<SmallVector<Operand>> lefts(layout.rowSteps());
    for (auto [t, operands] : llvm::enumerate(lefts))
      for (int64_t s : chunk)
        operands.push_back(splitAll(readRows(t, s)));
    for (int64_t begin = 0; begin < tiles; begin += columnsAtOnce) {
      auto columnTiles =
          llvm::seq(begin, std::min(begin + columnsAtOnce, tiles));
      SmallVector<SmallVector<Operand>> rights(columnTiles.size());
      SmallVector<TileProduct> products;
      for (auto [c, operands] : llvm::zip_equal(columnTiles, rights)) {
        for (int64_t s : chunk)
          operands.push_back(splitAll(right->read(8 * c, 8 * s)));
        for (int64_t t = 0; t < layout.rowSteps(); ++t)
          products.push_back(
              {lefts[t], operands,
               MutableArrayRef<Value>(acc).slice((t * tiles + c) * 4, 4)});
      }
      emitSteps(builder, loc, products);
    }
  }
  return acc;
}

SmallVector<Value> DepthSteps::addInLoop(OpBuilder &builder, Splitter split) {
  Location loc = product.op.getLoc();
  Integers ints(builder, loc);
  auto loop = scf::ForOp::create(
      builder, loc, ints.constant(0), ints.constant(numSteps * 8),
      ints.constant(8), product.acc,
      [&](OpBuilder &inner, Location loc, Value first, ValueRange acc) {
        scf::YieldOp::create(inner, loc,
                             add(inner, acc, first, /*number=*/1, split));
      });
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// Whether a lane of the warp has a number that is not finite. A sum that is
/// too large says so, too.
static Value isAnyNotFinite(OpBuilder &builder, Location loc,
                            ValueRange values) {
  Integers ints(builder, loc);
  SmallVector<Value> sums = llvm::to_vector(values);
  while (sums.size() > 1) {
    SmallVector<Value> halves;
    for (size_t i = 0; i + 1 < sums.size(); i += 2)
      halves.push_back(
          arith::AddFOp::create(builder, loc, sums[i], sums[i + 1]));
    if (sums.size() % 2 != 0)
      halves.push_back(sums.back());
    sums = halves;
  }
  Value isNot = arith::XOrIOp::create(
      builder, loc, isFinite(builder, loc, sums.front()),
      arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true)));
  return NVVM::VoteSyncOp::create(builder, loc, builder.getI1Type(),
                                  ints.constant(-1), isNot,
                                  NVVM::VoteSyncKind::any);
}

SmallVector<Value> attn::warp::emitMmaTF32(OpBuilder &builder,
                                           Product product) {
  DepthSteps steps(builder, product);
  if (!product.startsAtZero || !product.leftSlot())
    return steps.addAll(builder, splitAny);
  Location loc = product.op.getLoc();
  SmallVector<Value> fast = steps.addAll(builder, splitFinite);
  auto chosen = scf::IfOp::create(
      builder, loc, isAnyNotFinite(builder, loc, fast),
      [&](OpBuilder &inner, Location loc) {
        scf::YieldOp::create(inner, loc, steps.addInLoop(inner, splitAny));
      },
      [&](OpBuilder &inner, Location loc) {
        scf::YieldOp::create(inner, loc, fast);
      });
  return llvm::to_vector_of<Value>(chosen.getResults());
}

SmallVector<Value> attn::warp::loadFragF32(OpBuilder &builder, LoadFragOp op,
                                           Value slot) {
  FragType type = op.getResult().getType();
  Location loc = op.getLoc();
  Integers ints(builder, loc);
  LineReader reader(builder, loc, op.getSlot().getType(), slot,
                    Depth::AlongRows, ints.mul(ints.warp(), layout::groupRows));
  layout::Fragment layout = layoutOf(type);
  SmallVector<Value> result;
  for (int64_t t = 0; t < layout.rowSteps(); ++t)
    for (int64_t s = 0; s < layout.columnSteps(); ++s)
      llvm::append_range(
          result,
          readLeft(reader, t * type.getWarps() * layout::groupRows, 8 * s));
  return result;
}
