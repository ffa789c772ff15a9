//===- Stores.cpp - fragments to and from global memory -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stores.h"

#include "Fragments.h"
#include "Integers.h"
#include "PackedTiles.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// A branch without else, with the builder inside it.
static void enterIf(OpBuilder &builder, Location loc, Value condition) {
  auto branch = scf::IfOp::create(builder, loc, condition,
                                  /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
}

static Value isLeft(OpBuilder &builder, Location loc, Value left,
                    int64_t number) {
  Value bound = arith::ConstantIntOp::create(builder, loc, number, 32);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, left,
                               bound);
}

namespace {

/// The MxN part of a store: each lane writes its own columns of its own rows,
/// two at a time.
class TileStorer {
public:
  TileStorer(OpBuilder &builder, Location loc, View view, FragType type,
             bool accumulates)
      : builder(builder), loc(loc), view(std::move(view)), type(type),
        accumulates(accumulates) {}

  void run(ValueRange indices, ValueRange values);

private:
  void storeRow(Value address, int64_t firstRegister, ArrayRef<Value> elements);
  void store(Value address, int64_t column, Value value);

  OpBuilder &builder;
  Location loc;
  View view;
  FragType type;
  bool accumulates;
  int64_t columns = 0; // of one warp
  Value columnsLeft;
  std::optional<int64_t> knownColumns;
};

} // namespace

void TileStorer::run(ValueRange indices, ValueRange values) {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  layout::Fragment layout = layoutOf(type);
  unsigned rank = view.type.getRank();
  SmallVector<Value> at;
  for (Value index : indices)
    at.push_back(addresses.fromIndex(index));
  at[rank - 2] =
      addresses.add(at[rank - 2], addresses.fromInt(laneRow(ints, layout)));
  at[rank - 1] =
      addresses.add(at[rank - 1], addresses.fromInt(laneColumn(ints, layout)));
  Value rowsLeft = view.left(builder, loc, rank - 2, at[rank - 2]);
  columnsLeft = view.left(builder, loc, rank - 1, at[rank - 1]);
  knownColumns = view.knownLeft(rank - 1, indices[rank - 1]);
  if (knownColumns && layout.columnGroups() > 1 &&
      *knownColumns < layout.columns)
    knownColumns = std::nullopt; // they differ from group to group
  Value first = view.addressOf(builder, loc, at);
  Value rowBytes = addresses.mul(view.strides[rank - 2], view.elementBytes);

  SmallVector<Value> elements = unpack(builder, loc, type, values);
  columns = 8 * layout.columnSteps();
  for (int64_t t = 0; t < layout.rowSteps(); ++t)
    for (int64_t half = 0; half < 2; ++half) {
      int64_t reg = t * columns / 2 + 2 * half;
      int64_t row = layout.coordOf({0, 0, reg, 0}).row;
      OpBuilder::InsertionGuard guard(builder);
      enterIf(builder, loc, isLeft(builder, loc, rowsLeft, row));
      Value address = addresses.add(
          first, addresses.mul(rowBytes, addresses.constant(row)));
      storeRow(addresses.toPointer(address), reg, elements);
    }
}

/// All columns of one row; the registers of column tile c are firstRegister +
/// 4 c and the next.
void TileStorer::storeRow(Value pointer, int64_t firstRegister,
                          ArrayRef<Value> elements) {
  for (int64_t column = 0; column < columns; column += 8) {
    int64_t reg = firstRegister + column / 8 * 4;
    if (knownColumns && column >= *knownColumns)
      return;
    if (knownColumns && column + 8 <= *knownColumns && accumulates) {
      for (int64_t i = 0; i < 2; ++i)
        store(pointer, column + i, elements[reg + i]);
      continue;
    }
    if (knownColumns && column + 8 <= *knownColumns && view.isContiguous()) {
      Value pair = makePair(builder, loc, elements[reg], elements[reg + 1]);
      store(pointer, column, pair);
      continue;
    }
    for (int64_t i = 0; i < 2; ++i) {
      OpBuilder::InsertionGuard guard(builder);
      enterIf(builder, loc, isLeft(builder, loc, columnsLeft, column + i));
      store(pointer, column + i, elements[reg + i]);
    }
  }
}

void TileStorer::store(Value pointer, int64_t column, Value value) {
  // Base, row stride and the lane's first column are multiples of a pair.
  bool isPair = isa<VectorType>(value.getType());
  int64_t alignment = view.elementBytes * (isPair ? 2 : 1);
  Value address;
  if (view.isContiguous()) {
    address = LLVM::GEPOp::create(builder, loc, pointer.getType(),
                                  builder.getI8Type(), pointer,
                                  ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                                      column * view.elementBytes)});
  } else {
    Addresses addresses(builder, loc);
    Value bytes =
        addresses.mul(view.strides.back(), column * view.elementBytes);
    address = LLVM::GEPOp::create(builder, loc, pointer.getType(),
                                  builder.getI8Type(), pointer,
                                  ArrayRef<LLVM::GEPArg>{bytes});
  }
  if (!accumulates) {
    LLVM::StoreOp::create(builder, loc, value, address, alignment);
    return;
  }
  emitAdd(builder, loc, address, value);
}

/// Mx1 to a memref whose innermost dimension is the row: one of the four lanes
/// of a row writes it.
static void storeRows(OpBuilder &builder, Location loc, const View &view,
                      FragType type, ValueRange indices, ValueRange values) {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  layout::Fragment layout = layoutOf(type);
  SmallVector<Value> at;
  for (Value index : indices)
    at.push_back(addresses.fromIndex(index));
  at.back() =
      addresses.add(at.back(), addresses.fromInt(laneRow(ints, layout)));
  Value left = view.left(builder, loc, view.type.getRank() - 1, at.back());
  Value first = view.addressOf(builder, loc, at);
  OpBuilder::InsertionGuard guard(builder);
  enterIf(builder, loc, ints.lessThan(ints.rem(ints.lane(), 4), 1));
  for (auto [reg, value] : llvm::enumerate(values)) {
    int64_t row = layout.coordOf({0, 0, static_cast<int64_t>(reg), 0}).row;
    OpBuilder::InsertionGuard guard(builder);
    enterIf(builder, loc, isLeft(builder, loc, left, row));
    Value address = addresses.add(
        first, addresses.mul(view.strides.back(), row * view.elementBytes));
    LLVM::StoreOp::create(builder, loc, value, addresses.toPointer(address),
                          view.elementBytes);
  }
}

namespace {

struct LowerStore final : OpConversionPattern<StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FragType type = op.getValue().getType();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    if (op.getRows())
      storeRows(rewriter, loc, *view, type, op.getIndices(),
                adaptor.getValue());
    else if (type.getShape()[1] > 1 && type.getShape()[0] > 1)
      TileStorer(rewriter, loc, std::move(*view), type, op.getAccumulate())
          .run(op.getIndices(), adaptor.getValue());
    else
      return op.emitOpError("expected a tile, or the rows of one; got ")
             << type;
    rewriter.eraseOp(op);
    return success();
  }
};

/// One load per element. The address of an element outside is replaced by that
/// of element 0, its value by zero; an empty memref is not read at all.
struct LowerGather final : OpConversionPattern<GatherOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(GatherOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    FragType type = op.getResult().getType();
    layout::Fragment layout = layoutOf(type);
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
    SmallVector<Value> result(layout.numRegisters(), zero);
    SmallVector<Type> types(result.size(), type.getElementType());
    Value nonEmpty;
    for (Value size : view->sizes) {
      if (getConstantIntValue(size).value_or(0) > 0)
        continue;
      Value positive = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::sgt, size,
          arith::ConstantIntOp::create(rewriter, loc, 0, 64));
      nonEmpty = nonEmpty
                     ? arith::AndIOp::create(rewriter, loc, nonEmpty, positive)
                           .getResult()
                     : positive;
    }
    if (!nonEmpty) {
      result = loadAll(op, adaptor, *view, zero, rewriter);
    } else {
      auto branch = scf::IfOp::create(rewriter, loc, types, nonEmpty,
                                      /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(rewriter, loc,
                           loadAll(op, adaptor, *view, zero, rewriter));
      rewriter.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(rewriter, loc, result);
      result = llvm::to_vector_of<Value>(branch.getResults());
    }
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type, result)});
    return success();
  }

private:
  /// What one index contributes: an offset, and whether it is inside.
  struct Term {
    Value bytes, inside;
  };

  static SmallVector<Value> loadAll(GatherOp op, OneToNOpAdaptor adaptor,
                                    const View &view, Value zero,
                                    OpBuilder &builder) {
    Location loc = op.getLoc();
    FragType type = op.getResult().getType();
    layout::Fragment layout = layoutOf(type);
    Addresses addresses(builder, loc);
    // Many elements share an index.
    SmallVector<llvm::DenseMap<Value, Term>> terms(view.sizes.size());
    auto termOf = [&](unsigned dim, Value index) {
      Term &term = terms[dim][index];
      if (!term.bytes) {
        Value wide = addresses.fromInt(index);
        term.bytes = addresses.mul(addresses.mul(wide, view.strides[dim]),
                                   view.elementBytes);
        term.inside = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ult, wide, view.sizes[dim]);
      }
      return term;
    };

    SmallVector<Value> result;
    for (int64_t reg = 0, e = layout.numRegisters(); reg < e; ++reg) {
      Value offset, inside;
      for (auto [dim, operand, values] :
           llvm::enumerate(op.getIndices(), adaptor.getIndices())) {
        Term term =
            termOf(dim, values[sliceRegister(layout, operand.getType(), reg)]);
        offset = offset ? addresses.add(offset, term.bytes) : term.bytes;
        inside = inside
                     ? arith::AndIOp::create(builder, loc, inside, term.inside)
                           .getResult()
                     : term.inside;
      }
      if (!inside) // rank 0
        inside = arith::ConstantIntOp::create(builder, loc, 1, 1);
      if (!offset)
        offset = addresses.constant(0);
      Value safe = arith::SelectOp::create(builder, loc, inside, offset,
                                           addresses.constant(0));
      Value pointer = addresses.toPointer(addresses.add(view.address, safe));
      Value loaded = LLVM::LoadOp::create(builder, loc, type.getElementType(),
                                          pointer, view.elementBytes);
      result.push_back(
          arith::SelectOp::create(builder, loc, inside, loaded, zero));
    }
    return result;
  }
};

} // namespace

void attn::warp::populateStorePatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<LowerStore, LowerGather>(converter, patterns.getContext());
}
