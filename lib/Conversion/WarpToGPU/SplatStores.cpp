//===- SplatStores.cpp - tiles of one number to memory ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whose element a number is does not matter where all are the same: each lane
// writes pieces of 16 bytes, lanes side by side in a row.
//
//===----------------------------------------------------------------------===//

#include "SplatStores.h"

#include "Integers.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The number of which a tile consists, as words of 32 bits; none if the store
/// is one for other patterns.
static std::optional<APInt> getWord(StoreOp store) {
  auto splat = store.getValue().getDefiningOp<SplatOp>();
  FloatAttr number;
  if (!splat || store.getRows() || store.getAccumulate() ||
      store.getStaging() || store.getPacked() || store.getSlices() != 1 ||
      !matchPattern(splat.getScalar(), m_Constant(&number)))
    return std::nullopt;
  APInt bits = number.getValue().bitcastToAPInt();
  if (32 % bits.getBitWidth() != 0)
    return std::nullopt;
  // Rows in whole pieces.
  int64_t perPiece = 8 * layout::chunkBytes / bits.getBitWidth();
  int64_t columns =
      cast<MemRefType>(store.getView().getType()).getShape().back();
  if (ShapedType::isDynamic(columns) || columns % perPiece != 0 ||
      columns > store.getValue().getType().getShape()[1] ||
      !isConstantIntValue(store.getIndices().back(), 0))
    return std::nullopt;
  return APInt::getSplat(32, bits);
}

SplatStores SplatStores::plan(gpu::GPUFuncOp function) {
  SplatStores stores;
  function.walk([&](StoreOp store) {
    if (std::optional<APInt> word = getWord(store))
      stores.words.insert({store, *word});
  });
  return stores;
}

namespace {

/// warp.store of a warp.splat.
struct LowerSplatStore final : OpConversionPattern<StoreOp> {
  LowerSplatStore(const TypeConverter &converter, MLIRContext *context,
                  const SplatStores &stores)
      : OpConversionPattern(converter, context, /*benefit=*/3), stores(stores) {
  }

  LogicalResult
  matchAndRewrite(StoreOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto found = stores.words.find(op);
    if (found == stores.words.end())
      return failure();
    FailureOr<View> view = View::get(rewriter, op.getLoc(), op.getView());
    if (failed(view) || !view->isContiguous())
      return failure();
    store(op, *view, found->second, rewriter);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void store(StoreOp op, const View &view, const APInt &word,
                    OpBuilder &builder);

  const SplatStores &stores;
};

} // namespace

void LowerSplatStore::store(StoreOp op, const View &view, const APInt &word,
                            OpBuilder &builder) {
  Location loc = op.getLoc();
  Integers ints(builder, loc);
  Addresses addresses(builder, loc);
  FragType type = op.getValue().getType();
  unsigned rank = view.type.getRank();
  int64_t perPiece = layout::chunkBytes / view.elementBytes;
  int64_t pieces = view.type.getShape().back() / perPiece;
  int64_t lanesPerRow = std::min<int64_t>(layout::warpSize, pieces & -pieces);
  int64_t numRows = type.getShape()[0];
  int64_t rowsAtOnce = type.getWarps() * layout::warpSize / lanesPerRow;

  Value thread = ints.add(ints.mul(ints.warp(), layout::warpSize), ints.lane());
  Value row = ints.div(thread, lanesPerRow);
  SmallVector<Value> at;
  for (Value index : op.getIndices())
    at.push_back(addresses.fromIndex(index));
  at[rank - 2] = addresses.add(at[rank - 2], addresses.fromInt(row));
  at[rank - 1] =
      addresses.fromInt(ints.mul(ints.rem(thread, lanesPerRow), perPiece));
  Value rowsLeft = view.left(builder, loc, rank - 2, at[rank - 2]);
  if (numRows % rowsAtOnce != 0) {
    Value inTile =
        arith::SubIOp::create(builder, loc, ints.constant(numRows), row);
    rowsLeft = arith::MinSIOp::create(builder, loc, rowsLeft, inTile);
  }
  Value first = view.addressOf(builder, loc, at);
  Value rowBytes = addresses.mul(view.strides[rank - 2], view.elementBytes);
  auto words = VectorType::get({4}, builder.getI32Type());
  Value piece = arith::ConstantOp::create(builder, loc,
                                          DenseElementsAttr::get(words, word));
  for (int64_t pass = 0; pass < numRows; pass += rowsAtOnce) {
    OpBuilder::InsertionGuard guard(builder);
    Value isInside = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::sgt, rowsLeft, ints.constant(pass));
    auto branch = scf::IfOp::create(builder, loc, isInside,
                                    /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value pointer = addresses.toPointer(addresses.add(
        first, addresses.mul(rowBytes, addresses.constant(pass))));
    for (int64_t number = 0; number < pieces; number += lanesPerRow) {
      Value to = LLVM::GEPOp::create(
          builder, loc, pointer.getType(), builder.getI8Type(), pointer,
          ArrayRef<LLVM::GEPArg>{
              static_cast<int32_t>(number * layout::chunkBytes)});
      LLVM::StoreOp::create(builder, loc, piece, to, layout::chunkBytes);
    }
  }
}

void attn::warp::populateSplatStorePatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns,
                                            const SplatStores &stores) {
  patterns.add<LowerSplatStore>(converter, patterns.getContext(), stores);
}
