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
// Where a whole warp searches for one number, its lanes look at 32 elements at
// once, evenly spread: three rounds find a place among 32768. So it does for
// the lowest and the highest number of a fragment, in one row for all: every
// result is between theirs. Rows of one document have one place, and no step is
// left.
//
//===----------------------------------------------------------------------===//

#include "Searches.h"

#include "Fragments.h"
#include "Integers.h"
#include "View.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/DialectConversion.h"

#include <limits>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// False under a branch that one thread takes by its number.
static bool runsOnWholeWarps(Operation *op) {
  for (auto branch = op->getParentOfType<scf::IfOp>(); branch;
       branch = branch->getParentOfType<scf::IfOp>()) {
    auto compare = branch.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare)
      continue;
    Value number = compare.getLhs();
    if (auto cast = number.getDefiningOp<arith::IndexCastOp>())
      number = cast.getIn();
    if (compare.getPredicate() == arith::CmpIPredicate::eq &&
        number.getDefiningOp<gpu::ThreadIdOp>())
      return false;
  }
  return true;
}

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

namespace {

/// One element: where its row starts, between which places its own is, and the
/// value.
struct Search {
  Value address;   // i64
  Value low, high; // i32; 0 and the size, 0 where a leading index is not valid
  Value value;     // i32
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
    if (!isa<FragType>(op.getResult().getType()) && runsOnWholeWarps(op)) {
      rewriter.replaceOp(
          op, searchTogether(rewriter, op.getLoc(), *view, searches.front()));
      return success();
    }
    bool isOneRow = llvm::none_of(op.getIndices(), [](Value index) {
      return isa<FragType>(index.getType());
    });
    Value span = rowSize(rewriter, op.getLoc(), *view);
    if (isOneRow && runsOnWholeWarps(op))
      span = narrow(rewriter, op.getLoc(), *view, searches);
    rewriter.replaceOpWithMultiple(
        op, {search(rewriter, op.getLoc(), *view, searches, span)});
    return success();
  }

private:
  static SmallVector<Search> findRows(OpBuilder &b, SearchOp op,
                                      OneToNOpAdaptor adaptor,
                                      const View &view);
  static Value narrow(OpBuilder &b, Location loc, const View &view,
                      MutableArrayRef<Search> searches);
  static SmallVector<Value> search(OpBuilder &b, Location loc, const View &view,
                                   ArrayRef<Search> searches, Value span);
  static Value searchTogether(OpBuilder &b, Location loc, const View &view,
                              Search one);
};

} // namespace

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
    Search one = {view.address, none, size,
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
      one.high = arith::SelectOp::create(b, loc, inside, one.high, none);
    }
    searches.push_back(one);
  }
  return searches;
}

/// Every search is between the places of the lowest and the highest value of
/// the warp, in the row that is the same for all. How far apart these are.
Value LowerSearch::narrow(OpBuilder &b, Location loc, const View &view,
                          MutableArrayRef<Search> searches) {
  Type i32 = b.getI32Type();
  Value everyLane = Integers(b, loc).constant(-1);
  Search lowest = searches.front(), highest = searches.front();
  for (Search one : searches.drop_front()) {
    lowest.value = arith::MinSIOp::create(b, loc, lowest.value, one.value);
    highest.value = arith::MaxSIOp::create(b, loc, highest.value, one.value);
  }
  lowest.value = NVVM::ReduxOp::create(b, loc, i32, lowest.value,
                                       NVVM::ReduxKind::MIN, everyLane);
  highest.value = NVVM::ReduxOp::create(b, loc, i32, highest.value,
                                        NVVM::ReduxKind::MAX, everyLane);
  Value low = searchTogether(b, loc, view, lowest);
  Value differ = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                       lowest.value, highest.value);
  auto branch = scf::IfOp::create(
      b, loc, differ,
      [&](OpBuilder &b, Location loc) {
        highest.low = low;
        scf::YieldOp::create(b, loc, searchTogether(b, loc, view, highest));
      },
      [&](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, low); });
  Value high = branch.getResult(0);
  for (Search &one : searches) {
    one.low = low;
    one.high = high;
  }
  return arith::SubIOp::create(b, loc, high, low);
}

/// No result is further than `span` from where its search begins.
SmallVector<Value> LowerSearch::search(OpBuilder &b, Location loc,
                                       const View &view,
                                       ArrayRef<Search> searches, Value span) {
  Addresses addresses(b, loc);
  Integers ints(b, loc);
  Value none = ints.constant(0);
  // The highest bit of the span; none of 0.
  Value zeros = LLVM::CountLeadingZerosOp::create(b, loc, b.getI32Type(), span,
                                                  /*is_zero_poison=*/false);
  Value first = arith::ShRUIOp::create(
      b, loc, addresses.constant(int64_t(1) << 31),
      arith::ExtUIOp::create(b, loc, b.getI64Type(), zeros));
  SmallVector<Value> inits = {
      arith::TruncIOp::create(b, loc, b.getI32Type(), first)};
  for (const Search &one : searches)
    inits.push_back(one.low);
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
              b, loc, arith::CmpIPredicate::ule, ends.back(), one.high));
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

/// The result is between `low` and `low + length`. Lane l asks for the last of
/// the l-th of 32 pieces; as many as say yes are wholly before it.
Value LowerSearch::searchTogether(OpBuilder &b, Location loc, const View &view,
                                  Search one) {
  Integers ints(b, loc);
  Value none = ints.constant(0);
  Type i32 = b.getI32Type();
  Value length = arith::SubIOp::create(b, loc, one.high, one.low);
  auto loop = scf::WhileOp::create(
      b, loc, TypeRange{i32, i32}, ValueRange{one.low, length},
      [&](OpBuilder &b, Location loc, ValueRange state) {
        Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                           state[1], none);
        scf::ConditionOp::create(b, loc, more, state);
      },
      [&](OpBuilder &b, Location loc, ValueRange state) {
        Integers ints(b, loc);
        Addresses addresses(b, loc);
        Value low = state[0], length = state[1];
        auto product = [&](Value x, Value y) -> Value {
          return arith::MulIOp::create(b, loc, x, y);
        };
        auto less = [&](Value x, Value y) -> Value {
          return arith::SubIOp::create(b, loc, x, y);
        };
        // Rounded up; lengths are below 2^31.
        Value piece =
            ints.add(arith::ShRUIOp::create(b, loc, ints.add(length, -1),
                                            ints.constant(5)),
                     1);
        Value last = ints.add(product(ints.add(ints.lane(), 1), piece), -1);
        // Of 32 pieces of at most 2^26 elements: no product is above 2^31.
        Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             last, length);
        Value index =
            arith::SelectOp::create(b, loc, exists, ints.add(low, last), none);
        Value bytes = addresses.mul(
            addresses.mul(addresses.fromInt(index), view.strides.back()),
            view.elementBytes);
        Value element = LLVM::LoadOp::create(
            b, loc, b.getI32Type(),
            addresses.toPointer(addresses.add(one.address, bytes)),
            view.elementBytes);
        Value counts = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                             element, one.value);
        counts = arith::AndIOp::create(b, loc, exists, counts);
        Value votes =
            NVVM::VoteSyncOp::create(b, loc, b.getI32Type(), ints.constant(-1),
                                     counts, NVVM::VoteSyncKind::ballot);
        Value pieces = LLVM::CtPopOp::create(b, loc, b.getI32Type(), votes);
        Value passed = product(pieces, piece);
        Value rest = arith::MinSIOp::create(b, loc, ints.add(piece, -1),
                                            less(length, passed));
        scf::YieldOp::create(b, loc, ValueRange{ints.add(low, passed), rest});
      });
  return loop.getResult(0);
}

void attn::warp::populateSearchPatterns(const TypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<LowerSearch>(converter, patterns.getContext());
}
