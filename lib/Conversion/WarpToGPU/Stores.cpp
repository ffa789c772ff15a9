//===- Stores.cpp - fragments to global memory ------------------*- C++ -*-===//
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

/// The rows of a store that a lane has: one after the other in memory, or in
/// equal parts in slices of their own.
class StoredRows {
public:
  /// `dim` is that of the rows. Of `at`, the indices of the store as i64, that
  /// of the row becomes the lane's.
  StoredRows(OpBuilder &builder, StoreOp op, const View &view, unsigned dim,
             SmallVectorImpl<Value> &at);
  /// Counts the rows from the index of the first one on.
  void count(Value first) { left = view.left(builder, loc, dim, first); }

  /// The builder then stands where the row exists that is so much further than
  /// the lane's first; the bytes from there to it.
  Value enter(int64_t row);

private:
  OpBuilder &builder;
  Location loc;
  const View &view;
  unsigned dim;
  Value left;                 // rows
  int64_t rowsPerSlice = 0;   // 0: one slice
  Value firstRow, slicesLeft; // of several; of the lane, null: all are there
};

/// The MxN part of a store: each lane writes its own columns of its own rows,
/// two at a time; or, of 16-bit elements, the four lanes of a row exchange
/// them, so that each writes eight columns side by side.
class TileStorer {
public:
  TileStorer(OpBuilder &builder, StoreOp op, View view)
      : builder(builder), loc(op.getLoc()), op(op), view(std::move(view)),
        type(op.getValue().getType()), accumulates(op.getAccumulate()) {}

  void run(ValueRange values);

private:
  int64_t countPieceColumns(Value column) const;
  Value gatherPiece(ArrayRef<Value> pairs);
  void storeRow(Value address, int64_t firstRegister, ArrayRef<Value> elements);
  void store(Value address, int64_t column, Value value);

  OpBuilder &builder;
  Location loc;
  StoreOp op;
  View view;
  FragType type;
  bool accumulates;
  int64_t columns = 0;      // of one warp
  int64_t pieceColumns = 0; // of these the first, which go in pieces
  Value columnsLeft;
  std::optional<int64_t> knownColumns;
  bool endsWithPair = false; // of columns that are left, not known how many
};

} // namespace

/// Columns of a lane that lie side by side, of a piece of 16 bytes, and of one
/// for each of the four lanes of a row.
static constexpr int64_t pairColumns = 2,
                         perPiece = layout::laneColumns * pairColumns,
                         perQuad = layout::laneColumns * perPiece;

StoredRows::StoredRows(OpBuilder &builder, StoreOp op, const View &view,
                       unsigned dim, SmallVectorImpl<Value> &at)
    : builder(builder), loc(op.getLoc()), view(view), dim(dim) {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  Value row = laneRow(ints, layoutOf(op.getValue().getType()));
  if (op.getSlices() == 1) {
    at[dim] = addresses.add(at[dim], addresses.fromInt(row));
  } else {
    firstRow = row;
    rowsPerSlice = op.getValue().getType().getShape()[0] / op.getSlices();
    if (Value end = op.getSliceEnd())
      slicesLeft = arith::TruncIOp::create(
          builder, loc, builder.getI32Type(),
          arith::SubIOp::create(builder, loc, addresses.fromIndex(end),
                                at[dim - 1]));
  }
}

Value StoredRows::enter(int64_t row) {
  Addresses addresses(builder, loc);
  if (rowsPerSlice == 0) {
    enterIf(builder, loc, isLeft(builder, loc, left, row));
    return addresses.mul(view.strides[dim], row * view.elementBytes);
  }
  Integers ints(builder, loc);
  Value whole = ints.add(firstRow, row);
  Value own = ints.rem(whole, rowsPerSlice);
  Value slice = ints.div(whole, rowsPerSlice);
  auto isBelow = [&](Value number, Value end) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                 number, end);
  };
  Value exists = isBelow(own, left);
  if (slicesLeft)
    exists =
        arith::AndIOp::create(builder, loc, exists, isBelow(slice, slicesLeft));
  enterIf(builder, loc, exists);
  auto bytes = [&](Value number, unsigned dim) {
    Value stride = addresses.mul(view.strides[dim], view.elementBytes);
    return addresses.mul(addresses.fromInt(number), stride);
  };
  return addresses.add(bytes(own, dim), bytes(slice, dim - 1));
}

void TileStorer::run(ValueRange values) {
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  layout::Fragment layout = layoutOf(type);
  unsigned rank = view.type.getRank();
  ValueRange indices = op.getIndices();
  SmallVector<Value> at;
  for (Value index : indices)
    at.push_back(addresses.fromIndex(index));
  StoredRows rows(builder, op, view, rank - 2, at);
  at[rank - 1] =
      addresses.add(at[rank - 1], addresses.fromInt(laneColumn(ints, layout)));
  rows.count(at[rank - 2]);
  columnsLeft = view.left(builder, loc, rank - 1, at[rank - 1]);
  knownColumns = view.knownLeft(rank - 1, indices[rank - 1]);
  if (knownColumns && layout.columnGroups() > 1 &&
      *knownColumns < layout.columns) {
    endsWithPair = *knownColumns % pairColumns == 0;
    knownColumns = std::nullopt; // they differ from group to group
  }
  Value first = view.addressOf(builder, loc, at);

  SmallVector<Value> elements = unpack(builder, loc, type, values);
  columns = 8 * layout.columnSteps();
  pieceColumns = countPieceColumns(indices[rank - 1]);
  Value toPiece; // bytes from a lane's first column to that of its pieces
  if (pieceColumns > 0)
    toPiece = addresses.fromInt(
        ints.mul(ints.rem(ints.lane(), layout::laneColumns),
                 (perPiece - pairColumns) * view.elementBytes));
  for (int64_t t = 0; t < layout.rowSteps(); ++t)
    for (int64_t half = 0; half < 2; ++half) {
      int64_t reg = t * columns / 2 + 2 * half;
      int64_t row = layout.coordOf({0, 0, reg, 0}).row;
      // All lanes of the warp exchange, also those whose row does not exist.
      SmallVector<Value> pieces;
      for (int64_t column = 0; column < pieceColumns; column += perQuad) {
        SmallVector<Value> pairs;
        for (int64_t tile = 0; tile < layout::laneColumns; ++tile) {
          int64_t low = reg + (column / perPiece + tile) * 4;
          pairs.push_back(
              makePair(builder, loc, elements[low], elements[low + 1]));
        }
        pieces.push_back(gatherPiece(pairs));
      }
      OpBuilder::InsertionGuard guard(builder);
      Value address = addresses.add(first, rows.enter(row));
      if (!pieces.empty()) {
        Value pointer = addresses.toPointer(addresses.add(address, toPiece));
        for (auto [number, piece] : llvm::enumerate(pieces))
          LLVM::StoreOp::create(
              builder, loc, piece,
              offsetBy(builder, loc, pointer,
                       int64_t(number) * perQuad * view.elementBytes),
              layout::chunkBytes);
      }
      storeRow(addresses.toPointer(address), reg, elements);
    }
}

/// Columns that go in pieces of 16 bytes. Base and outer strides of arguments
/// are multiples (Kernel.cpp), those of other memory where its rows are; the
/// first column has to be one.
int64_t TileStorer::countPieceColumns(Value column) const {
  std::optional<int64_t> first = getConstantIntValue(column);
  bool fits = view.elementBytes * perPiece == layout::chunkBytes &&
              !accumulates && view.isContiguous() && knownColumns && first &&
              *first % perPiece == 0 &&
              view.type.getShape().back() % perPiece == 0;
  return fits ? llvm::alignDown(std::min(*knownColumns, columns), perQuad) : 0;
}

/// `pairs` are those that the lane has of four column tiles; the result is the
/// tile whose number is that of the lane in its row: a transposition, by the
/// two bits of that number.
Value TileStorer::gatherPiece(ArrayRef<Value> pairs) {
  Integers ints(builder, loc);
  auto isSet = [&](int64_t bit) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                 ints.bitAnd(ints.lane(), bit),
                                 ints.constant(0));
  };
  auto choose = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(builder, loc, condition, yes, no);
  };
  SmallVector<Value> words;
  for (Value pair : pairs)
    words.push_back(
        LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), pair));
  for (int64_t bit : {1, 2}) {
    Value mine = isSet(bit);
    for (int64_t low = 0; low < layout::laneColumns; ++low) {
      if (low & bit)
        continue;
      Value &first = words[low], &second = words[low + bit];
      Value given = exchange(builder, loc, choose(mine, first, second), bit);
      first = choose(mine, given, first);
      second = choose(mine, second, given);
    }
  }
  auto type = VectorType::get(layout::laneColumns, builder.getI32Type());
  Value piece = LLVM::PoisonOp::create(builder, loc, type);
  for (auto [number, word] : llvm::enumerate(words))
    piece = LLVM::InsertElementOp::create(builder, loc, piece, word,
                                          ints.constant(number));
  return piece;
}

/// The other columns of one row; the registers of column tile c are
/// firstRegister + 4 c and the next.
void TileStorer::storeRow(Value pointer, int64_t firstRegister,
                          ArrayRef<Value> elements) {
  for (int64_t column = pieceColumns; column < columns; column += 8) {
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
    if (endsWithPair && view.isContiguous() && !accumulates) {
      OpBuilder::InsertionGuard guard(builder);
      enterIf(builder, loc, isLeft(builder, loc, columnsLeft, column));
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
static void storeRows(OpBuilder &builder, StoreOp op, const View &view,
                      ValueRange values) {
  Location loc = op.getLoc();
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  layout::Fragment layout = layoutOf(op.getValue().getType());
  SmallVector<Value> at;
  for (Value index : op.getIndices())
    at.push_back(addresses.fromIndex(index));
  StoredRows rows(builder, op, view, view.type.getRank() - 1, at);
  rows.count(at.back());
  Value first = view.addressOf(builder, loc, at);
  OpBuilder::InsertionGuard guard(builder);
  enterIf(builder, loc, ints.lessThan(ints.rem(ints.lane(), 4), 1));
  for (auto [reg, value] : llvm::enumerate(values)) {
    int64_t row = layout.coordOf({0, 0, static_cast<int64_t>(reg), 0}).row;
    OpBuilder::InsertionGuard guard(builder);
    Value address = addresses.add(first, rows.enter(row));
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
      storeRows(rewriter, op, *view, adaptor.getValue());
    else if (type.getShape()[1] > 1 && type.getShape()[0] > 1)
      TileStorer(rewriter, op, std::move(*view)).run(adaptor.getValue());
    else
      return op.emitOpError("expected a tile, or the rows of one; got ")
             << type;
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void attn::warp::populateStorePatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<LowerStore>(converter, patterns.getContext());
}
