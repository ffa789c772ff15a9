//===- MaskWords.cpp - masks of a lane as bits of words -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The columns that a lane holds of a row ascend: the first ones are below a
// limit, the others are not. How many is a few operations per row, and a word
// with as many ones says it of all of them. Words are joined as the masks are;
// ptxas turns the tests of their bits into predicates seven at a time. An
// element then costs one selection, whatever the mask is made of.
//
//===----------------------------------------------------------------------===//

#include "MaskWords.h"

#include "Integers.h"

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// Fewer elements do not pay for a word; more do not fit.
static constexpr size_t leastElements = 8, mostElements = 32;

namespace {
/// Bit `bit` of `word`.
struct BitTest {
  Value word;
  int64_t bit = 0;
};
} // namespace

static Value testBit(OpBuilder &builder, Location loc, BitTest test) {
  Integers ints(builder, loc);
  Value bit = ints.bitAnd(test.word, int64_t(1) << test.bit);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bit,
                               ints.constant(0));
}

/// A test of a bit of a `warp.mask_word`.
static std::optional<BitTest> matchBit(Value value) {
  auto compare = value.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::ne ||
      getConstantIntValue(compare.getRhs()) != 0)
    return std::nullopt;
  auto both = compare.getLhs().getDefiningOp<arith::AndIOp>();
  if (!both || !both.getLhs().getDefiningOp<MaskWordOp>())
    return std::nullopt;
  std::optional<int64_t> mask = getConstantIntValue(both.getRhs());
  if (!mask || !llvm::isPowerOf2_32(uint32_t(*mask)))
    return std::nullopt;
  return BitTest{both.getLhs(), llvm::Log2_32(uint32_t(*mask))};
}

/// Whether element e is column 8 (e / 2) + e mod 2 after the first.
static bool areLaneColumns(ArrayRef<int64_t> columns) {
  if (columns.size() < leastElements || columns.size() > mostElements ||
      columns.size() % 2 != 0)
    return false;
  for (auto [number, column] : llvm::enumerate(columns))
    if (column != columns.front() + int64_t(8 * (number / 2) + number % 2))
      return false;
  return true;
}

std::optional<SmallVector<Value>>
attn::warp::testColumns(OpBuilder &builder, Location loc,
                        arith::CmpIPredicate predicate,
                        ArrayRef<int64_t> columns, Value limit) {
  using arith::CmpIPredicate;
  bool hasSign =
      predicate >= CmpIPredicate::slt && predicate <= CmpIPredicate::sge;
  if (!hasSign || !areLaneColumns(columns))
    return std::nullopt;
  bool isInclusive =
      predicate == CmpIPredicate::sle || predicate == CmpIPredicate::sgt;
  bool isBelow =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
  Integers ints(builder, loc);
  auto most = [&](Value value, int64_t bound) -> Value {
    return arith::MinSIOp::create(builder, loc, value, ints.constant(bound));
  };
  auto least = [&](Value value, int64_t bound) -> Value {
    return arith::MaxSIOp::create(builder, loc, value, ints.constant(bound));
  };
  // Columns from the first one on that are below the limit, 0 to `span`.
  int64_t first = columns.front(), count = columns.size(), span = 4 * count;
  Value width =
      least(most(limit, first + span - isInclusive), first - isInclusive);
  width = ints.add(width, isInclusive - first);
  // Two of each eight are the lane's.
  Value pairs = arith::ShRUIOp::create(builder, loc, width, ints.constant(3));
  Value ones = ints.add(ints.mul(pairs, 2), most(ints.bitAnd(width, 7), 2));
  // Shifts by 32 are undefined.
  Value wide = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), ones);
  Addresses addresses(builder, loc);
  Value power =
      arith::ShLIOp::create(builder, loc, addresses.constant(1), wide);
  Value word = ints.add(
      arith::TruncIOp::create(builder, loc, builder.getI32Type(), power), -1);
  if (!isBelow)
    word = ints.bitXor(word, -1);
  word = MaskWordOp::create(builder, loc, word);
  SmallVector<Value> tests;
  for (int64_t bit = 0; bit < count; ++bit)
    tests.push_back(testBit(builder, loc, {word, bit}));
  return tests;
}

std::optional<SmallVector<Value>> attn::warp::joinTests(Operation *op,
                                                        ArrayRef<Value> lhs,
                                                        ArrayRef<Value> rhs,
                                                        OpBuilder &builder) {
  if (!isa<arith::AndIOp, arith::OrIOp>(op) ||
      !lhs.front().getType().isInteger(1))
    return std::nullopt;
  Location loc = op->getLoc();
  llvm::SmallDenseMap<std::pair<Value, Value>, Value> words;
  SmallVector<BitTest> tests;
  for (auto [left, right] : llvm::zip_equal(lhs, rhs)) {
    std::optional<BitTest> a = matchBit(left), b = matchBit(right);
    if (!a || !b || a->bit != b->bit)
      return std::nullopt;
    words[{a->word, b->word}] = Value();
    tests.push_back({a->word, a->bit});
  }
  // One word for many elements, or there is nothing to gain.
  if (words.size() * leastElements > lhs.size())
    return std::nullopt;
  SmallVector<Value> result;
  for (auto [test, right] : llvm::zip_equal(tests, rhs)) {
    Value other = matchBit(right)->word;
    Value &word = words[{test.word, other}];
    if (!word) {
      word = isa<arith::AndIOp>(op)
                 ? arith::AndIOp::create(builder, loc, test.word, other)
                       .getResult()
                 : arith::OrIOp::create(builder, loc, test.word, other)
                       .getResult();
      word = MaskWordOp::create(builder, loc, word);
    }
    result.push_back(testBit(builder, loc, {word, test.bit}));
  }
  return result;
}

SmallVector<size_t> attn::warp::orderByWords(ArrayRef<Value> elements) {
  llvm::MapVector<Value, SmallVector<size_t>> ofWord;
  for (auto [number, element] : llvm::enumerate(elements)) {
    std::optional<BitTest> test = matchBit(element);
    ofWord[test ? test->word : Value()].push_back(number);
  }
  SmallVector<size_t> order;
  for (auto &[word, numbers] : ofWord)
    llvm::append_range(order, numbers);
  return order;
}

Value attn::warp::repeatTest(OpBuilder &builder, Location loc, Value element) {
  std::optional<BitTest> test = matchBit(element);
  return test ? testBit(builder, loc, *test) : element;
}

void attn::warp::lowerMaskWords(RewriterBase &rewriter,
                                gpu::GPUFuncOp function) {
  function.walk([&](MaskWordOp op) {
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<LLVM::InlineAsmOp>(
        op, op.getWord().getType(), op.getOnes(), "mov.b32 $0, $1;", "=r,r",
        /*has_side_effects=*/false, /*is_align_stack=*/false,
        LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                  LLVM::AsmDialect::AD_ATT),
        ArrayAttr());
  });
}
