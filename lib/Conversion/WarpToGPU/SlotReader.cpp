//===- SlotReader.cpp - fragments from shared memory ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane reads its pairs of columns of a tile where SlotWriter writes them;
// ldmatrix those of four lanes of 8x8 elements of 16 bits at once, also where
// the rows of the slot are the columns of the fragment. A slot of one row is
// not swizzled.
//
//===----------------------------------------------------------------------===//

#include "SlotReader.h"

#include "Atoms/Ldmatrix.h"
#include "Fragments.h"
#include "SlotWriter.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

class SlotReader {
public:
  SlotReader(OpBuilder &builder, Location loc, FragType frag, SlotType slotType,
             Value slot)
      : builder(builder), loc(loc), ints(builder, loc), frag(frag),
        fragment(layoutOf(frag)), slotType(slotType), tile(layoutOf(slotType)),
        slot(slot) {}

  SmallVector<Value> readTile();
  /// By ldmatrix.
  SmallVector<Value> readMatrices();
  SmallVector<Value> readTransposed();
  bool hasMatrices() const {
    return tile.panelBytes != 0 && tile.elementBytes == 2;
  }
  /// Of a slot of one row: the lane's columns, or rows.
  SmallVector<Value> readColumns();
  SmallVector<Value> readRows();

private:
  Value pointerAt(Value element);
  void readPair(Value pointer, SmallVectorImpl<Value> &elements);
  void unpackWords(ArrayRef<Value> words, SmallVectorImpl<Value> &elements);
  /// Of 16 x 16 elements each.
  SmallVector<Value> readBoxes(MatrixReader &matrices, bool transposed);

  OpBuilder &builder;
  Location loc;
  Integers ints;
  FragType frag;
  layout::Fragment fragment;
  SlotType slotType;
  layout::SharedTile tile;
  Value slot;
};

} // namespace

Value SlotReader::pointerAt(Value element) {
  return ints.toPointer(ints.add(slot, ints.mul(element, tile.elementBytes)));
}

void SlotReader::readPair(Value pointer, SmallVectorImpl<Value> &elements) {
  Type element = frag.getElementType();
  Value pair =
      LLVM::LoadOp::create(builder, loc, VectorType::get(2, element), pointer,
                           /*alignment=*/2 * tile.elementBytes);
  for (int64_t i = 0; i < 2; ++i)
    elements.push_back(
        LLVM::ExtractElementOp::create(builder, loc, pair, ints.constant(i)));
}

SmallVector<Value> SlotReader::readTile() {
  PairAddresses addresses(builder, loc, fragment, slotType, slot);
  SmallVector<Value> elements;
  for (int64_t t = 0; t < fragment.rowSteps(); ++t)
    for (int64_t column = 0; column < fragment.columns; column += 8)
      for (int64_t half = 0; half < 2; ++half)
        readPair(addresses.at(t * fragment.warps * layout::groupRows + 8 * half,
                              column),
                 elements);
  return elements;
}

void SlotReader::unpackWords(ArrayRef<Value> words,
                             SmallVectorImpl<Value> &elements) {
  auto type = VectorType::get(2, frag.getElementType());
  for (Value word : words) {
    Value pair = LLVM::BitcastOp::create(builder, loc, type, word);
    for (int64_t i = 0; i < 2; ++i)
      elements.push_back(extract(builder, loc, pair, i));
  }
}

SmallVector<Value> SlotReader::readBoxes(MatrixReader &matrices,
                                         bool transposed) {
  SmallVector<Value> elements;
  for (int64_t t = 0; t < fragment.rowSteps(); ++t)
    for (int64_t column = 0; column < fragment.columns; column += 16) {
      std::pair<int64_t, int64_t> place(
          t * fragment.rowWarps() * layout::groupRows, column);
      if (transposed)
        std::swap(place.first, place.second);
      bool isWhole = column + 8 < fragment.columns;
      unpackWords(isWhole ? matrices.read(place.first, place.second)
                          : matrices.readHalf(place.first, place.second),
                  elements);
    }
  return elements;
}

/// Matrices below each other, then beside each other.
SmallVector<Value> SlotReader::readMatrices() {
  MatrixReader matrices(builder, loc, slotType, slot,
                        MatrixReader::Order::RowsFirst,
                        ints.mul(ints.warp(), layout::groupRows));
  return readBoxes(matrices, /*transposed=*/false);
}

/// The rows of a warp are columns of one panel.
SmallVector<Value> SlotReader::readTransposed() {
  Value first = ints.mul(ints.warp(), layout::groupRows);
  Value panel = ints.div(first, tile.panelColumns());
  Value base = ints.add(slot, ints.mul(panel, tile.rows * tile.panelBytes));
  MatrixReader matrices(
      builder, loc, slotType, base, MatrixReader::Order::ColumnsFirstTransposed,
      /*firstRow=*/Value(), ints.rem(first, tile.panelColumns()));
  return readBoxes(matrices, /*transposed=*/true);
}

SmallVector<Value> SlotReader::readColumns() {
  Value first = pointerAt(laneColumn(ints, fragment));
  SmallVector<Value> elements;
  for (int64_t step = 0; step < fragment.columnSteps(); ++step)
    readPair(offsetBy(builder, loc, first, 8 * step * tile.elementBytes),
             elements);
  return elements;
}

SmallVector<Value> SlotReader::readRows() {
  Value first = pointerAt(laneRow(ints, fragment));
  SmallVector<Value> elements;
  for (int64_t reg = 0; reg < fragment.numRegisters(); ++reg) {
    int64_t row = fragment.coordOf({0, 0, reg, 0}).row;
    elements.push_back(LLVM::LoadOp::create(
        builder, loc, frag.getElementType(),
        offsetBy(builder, loc, first, row * tile.elementBytes),
        tile.elementBytes));
  }
  return elements;
}

namespace {

struct LowerLoadAcc final : OpConversionPattern<LoadFragOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LoadFragOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType type = op.getResult().getType();
    if (type.getKind() != FragKind::Acc)
      return rewriter.notifyMatchFailure(op, "left to the products");
    SlotReader reader(rewriter, op.getLoc(), type, op.getSlot().getType(),
                      adaptor.getSlot());
    bool isTile = op.getSlot().getType().getShape()[0] != 1;
    SmallVector<Value> elements =
        op.getTranspose()                ? reader.readTransposed()
        : isTile && reader.hasMatrices() ? reader.readMatrices()
        : isTile                         ? reader.readTile()
        : type.getShape()[0] == 1        ? reader.readColumns()
                                         : reader.readRows();
    rewriter.replaceOpWithMultiple(
        op, {pack(rewriter, op.getLoc(), type, elements)});
    return success();
  }
};

} // namespace

void attn::warp::populateSlotReadPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<LowerLoadAcc>(converter, patterns.getContext());
}
