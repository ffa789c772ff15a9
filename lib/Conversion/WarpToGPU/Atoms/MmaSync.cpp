//===- MmaSync.cpp - mma.sync m16n8k16 -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Order: k-steps outside, then pairs of column tiles, then the row groups of
// the warp, so that a B operand is read once and used by every row group, and
// neighbouring instructions write different accumulators.
//
//===----------------------------------------------------------------------===//

#include "MmaSync.h"

#include "../Fragments.h"
#include "../Integers.h"
#include "Ldmatrix.h"

#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// One instruction; `acc` is updated in place.
static void emitMma(OpBuilder &builder, Location loc, Type element,
                    ValueRange a, ValueRange b, MutableArrayRef<Value> acc) {
  NVVM::MMATypes kind =
      element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  Type f32 = builder.getF32Type();
  Type type = LLVM::LLVMStructType::getLiteral(builder.getContext(),
                                               {f32, f32, f32, f32});
  Value result = NVVM::MmaOp::create(
      builder, loc, type, a, b, ValueRange(ArrayRef<Value>(acc)),
      ArrayRef<int64_t>{16, 8, 16}, /*b1Op=*/std::nullopt,
      /*intOverflow=*/std::nullopt, std::array{kind, kind},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  for (auto [i, value] : llvm::enumerate(acc))
    value = LLVM::ExtractValueOp::create(builder, loc, f32, result, i);
}

/// Operands as the instruction's op takes them: i32 for bf16, pairs for f16.
static Value asOperand(OpBuilder &builder, Location loc, Type element,
                       Value value) {
  Type type = element.isBF16() ? Type(builder.getI32Type())
                               : Type(VectorType::get(2, element));
  if (value.getType() == type)
    return value;
  return LLVM::BitcastOp::create(builder, loc, type, value);
}

/// The first row of the running warp.
static Value firstRow(Integers &ints, const layout::Fragment &acc) {
  Value warp = ints.warp();
  if (acc.columnGroups() > 1)
    warp = ints.rem(warp, acc.rowWarps());
  return ints.mul(warp, layout::groupRows);
}

/// The first column of the running warp; none where all have every column.
static Value firstColumn(Integers &ints, const layout::Fragment &acc) {
  if (acc.columnGroups() == 1)
    return Value();
  return ints.mul(ints.div(ints.warp(), acc.rowWarps()), 8 * acc.columnSteps());
}

/// Rows between two row steps of a warp.
static int64_t rowsPerStep(FragType acc) {
  return layoutOf(acc).rowWarps() * layout::groupRows;
}

namespace {

/// The A operand, in registers or in a slot.
class LeftOperand {
public:
  LeftOperand(OpBuilder &builder, Location loc, Product product)
      : builder(builder), loc(loc),
        element(product.rightType().getElementType()),
        stepRows(rowsPerStep(product.accType())) {
    SlotType slot = product.leftSlot();
    if (!slot) {
      registers = llvm::to_vector(product.a);
      return;
    }
    Integers ints(builder, loc);
    Value first = firstRow(ints, layoutOf(product.accType()));
    if (!product.op.getTransposeA()) {
      readers.emplace_back(builder, loc, slot, product.a.front(),
                           MatrixReader::Order::RowsFirst, first);
      return;
    }
    // The swizzle depends on the column, which that of the warp is part of.
    isTransposed = true;
    for (int64_t t = 0, e = layoutOf(product.accType()).rowSteps(); t < e; ++t)
      readers.emplace_back(builder, loc, slot, product.a.front(),
                           MatrixReader::Order::ColumnsFirstTransposed, Value(),
                           ints.add(first, t * stepRows));
  }

  /// The four registers of row step `t` and k-step `s` of `steps`.
  SmallVector<Value> get(int64_t t, int64_t s, int64_t steps) {
    SmallVector<Value> result;
    if (isTransposed)
      result = readers[t].read(16 * s, 0);
    else if (!readers.empty())
      result = readers.front().read(t * stepRows, 16 * s);
    else
      result = llvm::to_vector(
          ArrayRef<Value>(registers).slice((t * steps + s) * 4, 4));
    for (Value &value : result)
      value = asOperand(builder, loc, element, value);
    return result;
  }

private:
  OpBuilder &builder;
  Location loc;
  Type element;
  int64_t stepRows;
  SmallVector<Value> registers;
  bool isTransposed = false;
  std::vector<MatrixReader> readers;
};

} // namespace

SmallVector<Value> attn::warp::emitMmaSync(OpBuilder &builder,
                                           Product product) {
  SlotType right = product.rightType();
  Type element = right.getElementType();
  FragType accType = product.accType();
  Location loc = product.op.getLoc();
  bool transposed = product.op.getTransposeB();
  int64_t depth = right.getShape()[transposed ? 1 : 0];
  layout::Fragment layout = layoutOf(accType);
  int64_t tiles = layout.columnSteps();
  LeftOperand a(builder, loc, product);
  Integers ints(builder, loc);
  Value first = firstColumn(ints, layout);
  MatrixReader b(builder, loc, right, product.b,
                 transposed ? MatrixReader::Order::ColumnsFirst
                            : MatrixReader::Order::Transposed,
                 transposed ? first : Value(), transposed ? Value() : first);
  SmallVector<Value> acc = llvm::to_vector(product.acc);
  auto tile = [&](int64_t t, int64_t c) {
    return MutableArrayRef<Value>(acc).slice((t * tiles + c) * 4, 4);
  };

  for (int64_t s = 0, steps = depth / 16; s < steps; ++s) {
    SmallVector<SmallVector<Value>> left;
    for (int64_t t = 0; t < layout.rowSteps(); ++t)
      left.push_back(a.get(t, s, steps));
    for (int64_t c = 0; c < tiles; c += 2) {
      int64_t row = transposed ? 8 * c : 16 * s;
      int64_t column = transposed ? 16 * s : 8 * c;
      bool isPair = c + 1 < tiles;
      SmallVector<Value> matrices =
          isPair ? b.read(row, column) : b.readHalf(row, column);
      for (Value &matrix : matrices)
        matrix = asOperand(builder, loc, element, matrix);
      ValueRange right = matrices;
      for (int64_t t = 0; t < layout.rowSteps(); ++t) {
        emitMma(builder, loc, element, left[t], right.take_front(2),
                tile(t, c));
        if (isPair)
          emitMma(builder, loc, element, left[t], right.drop_front(2),
                  tile(t, c + 1));
      }
    }
  }
  return acc;
}

SmallVector<Value> attn::warp::loadFrag16(OpBuilder &builder, LoadFragOp op,
                                          Value slot) {
  FragType type = op.getResult().getType();
  Location loc = op.getLoc();
  Integers ints(builder, loc);
  MatrixReader reader(builder, loc, op.getSlot().getType(), slot,
                      MatrixReader::Order::RowsFirst,
                      ints.mul(ints.warp(), layout::groupRows));
  layout::Fragment layout = layoutOf(type);
  Type pair = VectorType::get(2, type.getElementType());
  SmallVector<Value> result;
  for (int64_t t = 0; t < layout.rowSteps(); ++t)
    for (int64_t s = 0; s < layout.columnSteps(); ++s)
      for (Value matrix :
           reader.read(t * type.getWarps() * layout::groupRows, 16 * s))
        result.push_back(LLVM::BitcastOp::create(builder, loc, pair, matrix));
  return result;
}
