//===- RowProducts.cpp - warp.dot_rows as loads and fmas -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The four lanes of a row read 64 bytes of it at once, 16 each, so that a load
// of a warp reads whole sectors of eight rows. Several loads are issued before
// the first is used. Nothing branches: a row past the end is replaced by the
// last one, a chunk past the end of its row by the first, and their sums by 0.
//
//===----------------------------------------------------------------------===//

#include "RowProducts.h"

#include "Fragments.h"
#include "Integers.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Chunks of each row and tensor that are read before the first is used: 16
/// loads, or 64 registers.
static constexpr int64_t chunksInFlight = 4;
static constexpr int64_t wordsPerChunk = layout::chunkBytes / 4;

namespace {
/// Builds the sums of one lane.
class RowProducts {
public:
  RowProducts(OpBuilder &b, DotRowsOp op)
      : b(b), loc(op.getLoc()), ints(b, loc), addresses(b, loc),
        rows(layoutOf(op.getResult().getType())),
        type(op.getLhs().getType().getElementType()),
        zero(arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f))),
        numChunks(op.getRowBytes() / layout::chunkBytes) {}

  /// The address of the lane's first row, and what `add` needs of a tensor.
  struct Tensor {
    View view;
    Value first, rowBytes;
  };
  FailureOr<Tensor> read(Value memref, ValueRange indices);
  /// The sum of the row that lies `offset` rows after the first, and of the
  /// next in `offsets`.
  SmallVector<Value> run(ArrayRef<int64_t> offsets, const Tensor &lhs,
                         const Tensor &rhs);

private:
  Value rowPointer(const Tensor &tensor, int64_t offset);
  Value load(Value row, int64_t step);
  Value isInside(int64_t step);
  SmallVector<Value, 2> widen(Value word);

  OpBuilder &b;
  Location loc;
  Integers ints;
  Addresses addresses;
  layout::Fragment rows; // the result
  Type type;
  Value zero;
  int64_t numChunks;
  Value left; // rows from the lane's first one on, as i32
};
} // namespace

FailureOr<RowProducts::Tensor> RowProducts::read(Value memref,
                                                 ValueRange indices) {
  FailureOr<View> view = View::get(b, loc, memref);
  if (failed(view))
    return failure();
  SmallVector<Value> at;
  for (Value index : indices)
    at.push_back(addresses.fromIndex(index));
  at.back() = addresses.add(at.back(), addresses.fromInt(laneRow(ints, rows)));
  unsigned rowDim = at.size() - 1;
  Value here = view->left(b, loc, rowDim, at.back());
  left = left ? arith::MinSIOp::create(b, loc, left, here).getResult() : here;
  at.push_back(addresses.constant(0));
  Tensor tensor{*view, view->addressOf(b, loc, at), {}};
  tensor.rowBytes = addresses.mul(view->strides[rowDim], view->elementBytes);
  return tensor;
}

Value RowProducts::rowPointer(const Tensor &tensor, int64_t offset) {
  Value last = ints.add(left, -1);
  Value row =
      arith::MinSIOp::create(b, loc, last, ints.constant(offset)).getResult();
  Value wide = arith::ExtSIOp::create(b, loc, b.getI64Type(), row);
  Value address =
      addresses.add(tensor.first, addresses.mul(tensor.rowBytes, wide));
  return addresses.toPointer(address);
}

/// Whether the lane has a chunk in that step; null if all lanes do.
Value RowProducts::isInside(int64_t step) {
  int64_t rest = numChunks - step * layout::laneColumns;
  if (rest >= layout::laneColumns)
    return {};
  return ints.lessThan(ints.rem(ints.lane(), layout::laneColumns), rest);
}

Value RowProducts::load(Value row, int64_t step) {
  Value bytes =
      ints.mul(ints.rem(ints.lane(), layout::laneColumns), layout::chunkBytes);
  bytes = ints.add(bytes, step * layout::laneColumns * layout::chunkBytes);
  if (Value inside = isInside(step))
    bytes = arith::SelectOp::create(b, loc, inside, bytes, ints.constant(0));
  Value pointer =
      LLVM::GEPOp::create(b, loc, row.getType(), b.getI8Type(), row,
                          ArrayRef<LLVM::GEPArg>{addresses.fromInt(bytes)});
  return LLVM::LoadOp::create(b, loc,
                              VectorType::get({wordsPerChunk}, b.getI32Type()),
                              pointer, layout::chunkBytes);
}

/// The elements of a word as f32.
SmallVector<Value, 2> RowProducts::widen(Value word) {
  Type f32 = b.getF32Type();
  auto asFloat = [&](Value bits) -> Value {
    return arith::BitcastOp::create(b, loc, f32, bits);
  };
  if (type.isF32())
    return {asFloat(word)};
  if (type.isBF16()) {
    Value low = arith::ShLIOp::create(b, loc, word, ints.constant(16));
    return {asFloat(low), asFloat(ints.bitAnd(word, -65536))};
  }
  Value pair =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, type), word);
  SmallVector<Value, 2> elements;
  for (int64_t i : {0, 1}) {
    Value half = LLVM::ExtractElementOp::create(b, loc, pair, ints.constant(i));
    elements.push_back(arith::ExtFOp::create(b, loc, f32, half));
  }
  return elements;
}

SmallVector<Value> RowProducts::run(ArrayRef<int64_t> offsets,
                                    const Tensor &lhs, const Tensor &rhs) {
  struct Row {
    Value lhs, rhs, sum;
  };
  SmallVector<Row> rows;
  for (int64_t offset : offsets)
    rows.push_back({rowPointer(lhs, offset), rowPointer(rhs, offset), zero});
  int64_t numSteps = llvm::divideCeil(numChunks, layout::laneColumns);
  for (int64_t first = 0; first < numSteps; first += chunksInFlight) {
    int64_t end = std::min(first + chunksInFlight, numSteps);
    SmallVector<std::pair<Value, Value>> chunks;
    for (int64_t step = first; step < end; ++step)
      for (Row &row : rows)
        chunks.emplace_back(load(row.lhs, step), load(row.rhs, step));
    for (auto [number, chunk] : llvm::enumerate(chunks)) {
      Row &row = rows[number % rows.size()];
      Value sum = row.sum;
      for (int64_t word = 0; word < wordsPerChunk; ++word) {
        auto wordOf = [&](Value chunk) {
          return widen(LLVM::ExtractElementOp::create(b, loc, chunk,
                                                      ints.constant(word)));
        };
        for (auto [x, y] : llvm::zip(wordOf(chunk.first), wordOf(chunk.second)))
          sum = math::FmaOp::create(b, loc, x, y, sum);
      }
      if (Value inside = isInside(first + number / rows.size()))
        sum = arith::SelectOp::create(b, loc, inside, sum, row.sum);
      row.sum = sum;
    }
  }
  SmallVector<Value> sums;
  for (auto [offset, row] : llvm::zip(offsets, rows)) {
    Value isRow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, left,
                                        ints.constant(offset));
    sums.push_back(arith::SelectOp::create(b, loc, isRow, row.sum, zero));
  }
  return sums;
}

namespace {
struct LowerDotRows final : OpConversionPattern<DotRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DotRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RowProducts products(rewriter, op);
    auto lhs = products.read(op.getLhs(), op.getIndices());
    auto rhs = products.read(op.getRhs(), op.getIndices());
    if (failed(lhs) || failed(rhs))
      return failure();
    layout::Fragment layout = layoutOf(op.getResult().getType());
    SmallVector<Value> sums;
    // The two rows of a row step.
    for (int64_t reg = 0; reg < layout.numRegisters(); reg += 2)
      llvm::append_range(sums,
                         products.run({layout.coordOf({0, 0, reg, 0}).row,
                                       layout.coordOf({0, 0, reg + 1, 0}).row},
                                      *lhs, *rhs));
    rewriter.replaceOpWithMultiple(op, {sums});
    return success();
  }
};
} // namespace

void attn::warp::populateRowProductPatterns(const TypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<LowerDotRows>(converter, patterns.getContext());
}
