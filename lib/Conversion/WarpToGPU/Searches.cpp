//===- Searches.cpp - warp.search by one loop for all elements -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The result of each element is built bit by bit from the highest that the size
// of the searched dimension has: `position + step` elements are <= value if the
// last of them is. All elements of all lanes take the same number of steps, and
// the loads of one step do not wait for each other.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {

/// One element: where its row starts, how long that is, and the value.
struct Search {
  Value address; // i64
  Value size;    // i32; 0 where a leading index is out of range
  Value value;   // i32
};

/// warp.search, of fragments or of one scalar.
struct LowerSearch final : OpConversionPattern<SearchOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SearchOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    FailureOr<View> view = View::get(rewriter, op.getLoc(), op.getView());
    if (failed(view))
      return failure();
    SmallVector<Search> searches = findRows(rewriter, op, adaptor, *view);
    rewriter.replaceOpWithMultiple(
        op, {search(rewriter, op.getLoc(), *view, searches)});
    return success();
  }

private:
  static SmallVector<Search> findRows(OpBuilder &b, SearchOp op,
                                      OneToNOpAdaptor adaptor,
                                      const View &view);
  static SmallVector<Value> search(OpBuilder &b, Location loc, const View &view,
                                   ArrayRef<Search> searches);
};

} // namespace

/// How many elements a row has, 0 where there is no row.
static Value rowSize(OpBuilder &b, Location loc, const View &view) {
  Addresses addresses(b, loc);
  Value largest = addresses.constant(std::numeric_limits<int32_t>::max());
  Value size = arith::MinSIOp::create(b, loc, view.sizes.back(), largest);
  Value zero = addresses.constant(0);
  for (Value leading : ArrayRef<Value>(view.sizes).drop_back()) {
    Value exists =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, leading, zero);
    size = arith::SelectOp::create(b, loc, exists, size, zero);
  }
  return arith::TruncIOp::create(b, loc, b.getI32Type(), size);
}

SmallVector<Search> LowerSearch::findRows(OpBuilder &b, SearchOp op,
                                          OneToNOpAdaptor adaptor,
                                          const View &view) {
  Location loc = op.getLoc();
  Addresses addresses(b, loc);
  Integers ints(b, loc);
  Value size = rowSize(b, loc, view);
  Value none = ints.constant(0), start = addresses.constant(0);
  auto type = dyn_cast<FragType>(op.getResult().getType());
  int64_t count = type ? layoutOf(type).numRegisters() : 1;
  SmallVector<Search> searches;
  for (int64_t reg = 0; reg < count; ++reg) {
    auto registerOf = [&](Value operand, ValueRange values) {
      return values[type ? sliceRegister(layoutOf(type), operand.getType(), reg)
                         : 0];
    };
    Search one = {view.address, size,
                  registerOf(op.getValue(), adaptor.getValue())};
    for (auto [dim, operand, values] :
         llvm::enumerate(op.getIndices(), adaptor.getIndices())) {
      Value index = addresses.fromInt(registerOf(operand, values));
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           index, view.sizes[dim]);
      Value bytes = addresses.mul(addresses.mul(index, view.strides[dim]),
                                  view.elementBytes);
      bytes = arith::SelectOp::create(b, loc, inside, bytes, start);
      one.address = addresses.add(one.address, bytes);
      one.size = arith::SelectOp::create(b, loc, inside, one.size, none);
    }
    searches.push_back(one);
  }
  return searches;
}

SmallVector<Value> LowerSearch::search(OpBuilder &b, Location loc,
                                       const View &view,
                                       ArrayRef<Search> searches) {
  Addresses addresses(b, loc);
  Integers ints(b, loc);
  Value none = ints.constant(0);
  // The highest bit of the size; none of 0.
  Value size = rowSize(b, loc, view);
  Value zeros = LLVM::CountLeadingZerosOp::create(b, loc, b.getI32Type(), size,
                                                  /*is_zero_poison=*/false);
  Value first = arith::ShRUIOp::create(
      b, loc, addresses.constant(int64_t(1) << 31),
      arith::ExtUIOp::create(b, loc, b.getI64Type(), zeros));
  SmallVector<Value> inits(searches.size() + 1, none);
  inits[0] = arith::TruncIOp::create(b, loc, b.getI32Type(), first);
  SmallVector<Type> types(inits.size(), b.getI32Type());
  auto loop = scf::WhileOp::create(
      b, loc, types, inits,
      [&](OpBuilder &b, Location loc, ValueRange state) {
        Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                           state.front(), none);
        scf::ConditionOp::create(b, loc, more, state);
      },
      [&](OpBuilder &b, Location loc, ValueRange state) {
        Addresses addresses(b, loc);
        Integers ints(b, loc);
        Value step = state.front();
        SmallVector<Value> next = {
            arith::ShRUIOp::create(b, loc, step, ints.constant(1))};
        SmallVector<Value> ends, fits, elements;
        for (auto [one, position] :
             llvm::zip_equal(searches, state.drop_front())) {
          ends.push_back(ints.add(position, step));
          fits.push_back(arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::ule, ends.back(), one.size));
          Value last = arith::SelectOp::create(b, loc, fits.back(),
                                               ints.add(ends.back(), -1), none);
          Value bytes = addresses.mul(
              addresses.mul(addresses.fromInt(last), view.strides.back()),
              view.elementBytes);
          elements.push_back(LLVM::LoadOp::create(
              b, loc, b.getI32Type(),
              addresses.toPointer(addresses.add(one.address, bytes)),
              view.elementBytes));
        }
        for (auto [one, position, end, fit, element] : llvm::zip_equal(
                 searches, state.drop_front(), ends, fits, elements)) {
          Value counts = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::sle, element, one.value);
          Value advances = arith::AndIOp::create(b, loc, fit, counts);
          next.push_back(
              arith::SelectOp::create(b, loc, advances, end, position));
        }
        scf::YieldOp::create(b, loc, next);
      });
  return llvm::to_vector_of<Value>(loop.getResults().drop_front());
}

void attn::warp::populateSearchPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<LowerSearch>(converter, patterns.getContext());
}
