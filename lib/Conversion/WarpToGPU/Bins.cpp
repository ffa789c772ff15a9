//===- Bins.cpp - sums by element in shared memory --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each lane has a column of the slot for itself: what it adds is ordered by its
// own program, so that sums are the same each time without atomics, and the
// lanes of a warp are in banks of their own whatever their indices are. An
// index that is out of range is that of one bin more, which nobody reads.
//
// Some numbers are added at a time: all of their bins are read before the first
// is written, as each waits some 30 cycles for memory. Of those that turn out
// to be one bin, the last one written has all that is added.
//
//===----------------------------------------------------------------------===//

#include "Bins.h"

#include "Fragments.h"
#include "Integers.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

static constexpr int64_t bytesOfNumber = 4;
/// Numbers that are added at a time.
static constexpr size_t numbersAtOnce = 4;

namespace {
/// What is added to a bin, which a lane has in several rows of the slot.
struct Addend {
  Value number, index;
  int64_t row; // of the tile, among those of the lane
};

/// The bins of the running warp.
class LaneBins {
public:
  LaneBins(OpBuilder &b, Location loc, SlotType type, Value slot)
      : b(b), loc(loc), ints(b, loc),
        rowBytes(type.getShape()[1] * bytesOfNumber) {
    first =
        ints.add(slot, ints.mul(ints.warp(), layout::warpSize * bytesOfNumber));
  }

  void clear(int64_t numRows);
  void add(ArrayRef<Addend> addends, int64_t count, int64_t rowsOfLane);
  /// Of a row of the slot (i32), plus `row`: the sum of what the `lanes` lanes
  /// from `firstLane` on have, each lane's sum beginning with another one.
  Value sum(Value slotRow, int64_t row, Value firstLane, int64_t lanes);

private:
  Value own() { return ints.add(first, ints.mul(ints.lane(), bytesOfNumber)); }
  Value load(Value pointer) {
    return LLVM::LoadOp::create(b, loc, b.getF32Type(), pointer, bytesOfNumber);
  }

  OpBuilder &b;
  Location loc;
  Integers ints;
  int64_t rowBytes;
  Value first; // the address of the warp's first column
};
} // namespace

void LaneBins::clear(int64_t numRows) {
  // Others may still read what was there.
  NVVM::SyncWarpOp::create(b, loc, ints.constant(-1));
  Value pointer = ints.toPointer(own());
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  for (int64_t row = 0; row < numRows; ++row)
    LLVM::StoreOp::create(
        b, loc, zero, offsetBy(b, loc, pointer, row * rowBytes), bytesOfNumber);
}

void LaneBins::add(ArrayRef<Addend> addends, int64_t count,
                   int64_t rowsOfLane) {
  struct Sum {
    Value bin, pointer, total;
    int64_t row;
  };
  SmallVector<Sum> sums;
  for (const Addend &addend : addends) {
    // Negative ones are large ones.
    Value bin =
        arith::MinUIOp::create(b, loc, addend.index, ints.constant(count));
    Value address = ints.add(own(), ints.mul(bin, rowsOfLane * rowBytes));
    Value pointer =
        offsetBy(b, loc, ints.toPointer(address), addend.row * rowBytes);
    sums.push_back({bin, pointer, load(pointer), addend.row});
  }
  for (auto [number, sum] : llvm::enumerate(sums)) {
    sum.total =
        arith::AddFOp::create(b, loc, sum.total, addends[number].number);
    for (auto [other, earlier] :
         llvm::enumerate(ArrayRef(sums).take_front(number))) {
      if (earlier.row != sum.row)
        continue;
      Value isSame = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                           sum.bin, earlier.bin);
      Value both =
          arith::AddFOp::create(b, loc, sum.total, addends[other].number);
      sum.total = arith::SelectOp::create(b, loc, isSame, both, sum.total);
    }
  }
  for (const Sum &sum : sums)
    LLVM::StoreOp::create(b, loc, sum.total, sum.pointer, bytesOfNumber);
}

Value LaneBins::sum(Value slotRow, int64_t row, Value firstLane,
                    int64_t lanes) {
  Value address = ints.add(first, ints.mul(firstLane, bytesOfNumber));
  address = ints.add(address, ints.mul(slotRow, rowBytes));
  Value total;
  for (int64_t number = 0; number < lanes; ++number) {
    // In another bank than the lanes beside it.
    Value lane = ints.rem(ints.add(ints.lane(), number), lanes);
    Value pointer =
        ints.toPointer(ints.add(address, ints.mul(lane, bytesOfNumber)));
    Value part = load(offsetBy(b, loc, pointer, row * rowBytes));
    total =
        total ? arith::AddFOp::create(b, loc, total, part).getResult() : part;
  }
  return total;
}

namespace {
struct LowerClearBins final : OpConversionPattern<ClearBinsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ClearBinsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SlotType type = op.getBins().getType();
    LaneBins(rewriter, op.getLoc(), type, adaptor.getBins())
        .clear(type.getShape()[0]);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerScatterAdd final : OpConversionPattern<ScatterAddOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ScatterAddOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FragType type = op.getValue().getType();
    layout::Fragment layout = layoutOf(type);
    auto numbers = unpack(rewriter, op.getLoc(), type, adaptor.getValue());
    SmallVector<Value> indices(adaptor.getIndex());
    if (auto index = dyn_cast<FragType>(op.getIndex().getType()))
      indices = unpack(rewriter, op.getLoc(), index, indices);
    LaneBins bins(rewriter, op.getLoc(), op.getBins().getType(),
                  adaptor.getBins().front());
    int64_t rowsOfLane =
        ClearBinsOp::getRowsOfLane(op.getRows(), type.getWarps());
    // Numbers of one index are one.
    SmallVector<Addend> addends;
    for (auto [reg, number] : llvm::enumerate(numbers)) {
      Addend addend{
          number, indices[sliceRegister(layout, op.getIndex().getType(), reg)],
          op.getRows() ? layout.rowSliceRegister(reg) : 0};
      auto same = llvm::find_if(addends, [&](const Addend &other) {
        return other.index == addend.index && other.row == addend.row;
      });
      if (same != addends.end())
        same->number =
            arith::AddFOp::create(rewriter, op.getLoc(), same->number, number);
      else
        addends.push_back(addend);
    }
    for (ArrayRef<Addend> rest = addends; !rest.empty();
         rest = rest.drop_front(std::min(numbersAtOnce, rest.size())))
      bins.add(rest.take_front(numbersAtOnce), op.getCount(), rowsOfLane);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Writes the sums of a warp, a lane every `lanes` bins.
struct LowerStoreBins final : OpConversionPattern<StoreBinsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(StoreBinsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    FailureOr<View> view = View::get(rewriter, loc, op.getView());
    if (failed(view))
      return failure();
    Integers ints(rewriter, loc);
    NVVM::SyncWarpOp::create(rewriter, loc, ints.constant(-1));
    int64_t lanes = op.getRows() ? layout::laneColumns : layout::warpSize;
    Value number = ints.rem(ints.lane(), lanes);
    auto loop = scf::ForOp::create(
        rewriter, loc, number, ints.constant(op.getCount()),
        ints.constant(lanes), ValueRange(), {}, /*unsignedCmp=*/false);
    rewriter.setInsertionPointToStart(loop.getBody());
    storeBin(op, *view, adaptor.getBins(), loop.getInductionVar(), rewriter);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void storeBin(StoreBinsOp op, const View &view, Value slot, Value bin,
                       OpBuilder &b);
};
} // namespace

/// Of all rows that the lane writes.
void LowerStoreBins::storeBin(StoreBinsOp op, const View &view, Value slot,
                              Value bin, OpBuilder &b) {
  Location loc = op.getLoc();
  Integers ints(b, loc);
  Addresses addresses(b, loc);
  LaneBins bins(b, loc, op.getBins().getType(), slot);
  int64_t rows = op.getRows(), warps = op.getWarps();
  int64_t rowsOfLane = ClearBinsOp::getRowsOfLane(rows, warps);
  int64_t lanes = rows ? layout::laneColumns : layout::warpSize;
  Value firstLane =
      ints.mul(ints.div(ints.lane(), lanes), lanes); // of those that share it
  layout::Fragment column{layout::FragmentKind::Acc, std::max<int64_t>(rows, 1),
                          1, warps};
  unsigned rank = view.type.getRank();
  SmallVector<Value> at;
  for (Value index : op.getIndices())
    at.push_back(addresses.fromIndex(index));
  at[rank - 1] = addresses.add(at[rank - 1], addresses.fromInt(bin));
  auto isPositive = [&](Value number) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, number,
                                 ints.constant(0));
  };
  Value isColumn = isPositive(view.left(b, loc, rank - 1, at[rank - 1]));
  Value firstRow = at[rank - 2];
  Value ownRow = rows ? laneRow(ints, column) : ints.warp();
  for (int64_t row = 0; row < rowsOfLane; ++row) {
    int64_t further = rows ? column.coordOf({0, 0, row, 0}).row : 0;
    Value sum = bins.sum(ints.mul(bin, rowsOfLane), row, firstLane, lanes);
    at[rank - 2] =
        addresses.add(firstRow, addresses.fromInt(ints.add(ownRow, further)));
    Value isRow = isPositive(view.left(b, loc, rank - 2, at[rank - 2]));
    Value isInside = arith::AndIOp::create(b, loc, isRow, isColumn);
    auto branch = scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false);
    OpBuilder then = branch.getThenBodyBuilder();
    Value to = Addresses(then, loc).toPointer(view.addressOf(then, loc, at));
    LLVM::StoreOp::create(then, loc, sum, to, bytesOfNumber);
  }
}

void attn::warp::populateBinPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerClearBins, LowerScatterAdd, LowerStoreBins>(
      converter, patterns.getContext());
}
