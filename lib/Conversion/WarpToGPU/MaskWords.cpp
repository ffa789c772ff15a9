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
// with as many ones says it of all of them. So does a word with a one at one
// column, or at each multiple of a period from some column on, and one of few
// truth values that the columns share. Words are joined as the masks are;
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
/// Of one column the bit takes as long as so many comparisons.
static constexpr size_t leastOfOne = 16;

/// How far a lane's column is from its first one: two of each eight are its.
static int64_t laneColumn(size_t number) {
  return 8 * (number / 2) + number % 2;
}

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

bool attn::warp::areLaneColumns(ArrayRef<int64_t> columns) {
  if (columns.size() < leastElements || columns.size() > mostElements ||
      columns.size() % 2 != 0)
    return false;
  for (auto [number, column] : llvm::enumerate(columns))
    if (column != columns.front() + laneColumn(number))
      return false;
  return true;
}

SmallVector<Value> attn::warp::testBits(OpBuilder &builder, Location loc,
                                        Value word, size_t count,
                                        bool isInverted) {
  if (isInverted)
    word = Integers(builder, loc).bitXor(word, -1);
  word = MaskWordOp::create(builder, loc, word);
  SmallVector<Value> tests;
  for (size_t bit = 0; bit < count; ++bit)
    tests.push_back(testBit(builder, loc, {word, int64_t(bit)}));
  return tests;
}

/// The union of words; null has no ones.
static Value unite(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  return lhs ? arith::OrIOp::create(builder, loc, lhs, rhs).getResult() : rhs;
}

/// As many ones as there are columns below `limit`, or up to it, among `count`
/// of a lane from `first` on.
static Value countColumns(OpBuilder &builder, Location loc, int64_t first,
                          int64_t count, Value limit, bool isInclusive) {
  Integers ints(builder, loc);
  auto most = [&](Value value, int64_t bound) -> Value {
    return arith::MinSIOp::create(builder, loc, value, ints.constant(bound));
  };
  auto least = [&](Value value, int64_t bound) -> Value {
    return arith::MaxSIOp::create(builder, loc, value, ints.constant(bound));
  };
  // Columns from the first one on that are below the limit, 0 to `span`.
  int64_t span = 4 * count;
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
  return ints.add(
      arith::TruncIOp::create(builder, loc, builder.getI32Type(), power), -1);
}

/// The bit of a column, if it is one of the lane's; no bit beyond the word.
static Value makeColumnBit(OpBuilder &builder, Location loc, Value column,
                           uint32_t ones) {
  Integers ints(builder, loc);
  auto shift = [&](Value value) -> Value {
    return arith::ShRUIOp::create(builder, loc, value, ints.constant(2));
  };
  // 8 p and 8 p + 1 are bits 2 p and 2 p + 1.
  Value bit = ints.add(shift(column), ints.bitAnd(column, 1));
  Value word =
      arith::ShLIOp::create(builder, loc, ints.constant(int32_t(ones)), bit);
  int64_t others = ~int64_t(4 * mostElements - 1) | 6;
  Value isOwn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                      ints.bitAnd(column, int32_t(others)),
                                      ints.constant(0));
  return arith::SelectOp::create(builder, loc, isOwn, word, ints.constant(0));
}

std::optional<SmallVector<Value>>
attn::warp::testColumns(OpBuilder &builder, Location loc,
                        arith::CmpIPredicate predicate,
                        ArrayRef<int64_t> columns, Value limit) {
  using arith::CmpIPredicate;
  bool isEquality = predicate <= CmpIPredicate::ne;
  if (predicate > CmpIPredicate::sge || !areLaneColumns(columns) ||
      (isEquality && columns.size() < leastOfOne))
    return std::nullopt;
  if (isEquality) {
    Value column = Integers(builder, loc).add(limit, -columns.front());
    return testBits(builder, loc, makeColumnBit(builder, loc, column, 1),
                    columns.size(), predicate == CmpIPredicate::ne);
  }
  bool isInclusive =
      predicate == CmpIPredicate::sle || predicate == CmpIPredicate::sgt;
  bool isBelow =
      predicate == CmpIPredicate::slt || predicate == CmpIPredicate::sle;
  Value word = countColumns(builder, loc, columns.front(), columns.size(),
                            limit, isInclusive);
  return testBits(builder, loc, word, columns.size(), !isBelow);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Instructions, about, of a bound, of one column's bit and of a choice.
static constexpr size_t boundCost = 9, columnCost = 7, choiceCost = 2;

static size_t countPeriods(size_t count, int64_t period) {
  return llvm::divideCeil(4 * count, period);
}

static size_t countResidues(size_t count, int64_t period) {
  llvm::SmallDenseSet<int64_t> residues;
  for (size_t number = 0; number < count; ++number)
    residues.insert(laneColumn(number) % period);
  return residues.size();
}

std::optional<SmallVector<Value>>
attn::warp::testEvery(OpBuilder &builder, Location loc, size_t count,
                      int64_t period, Value first, bool isInverted) {
  size_t periods = countPeriods(count, period);
  bool isPower = llvm::isPowerOf2_64(period) && period >= 16;
  size_t cost = isPower ? columnCost : periods * columnCost;
  if (cost >= countResidues(count, period) * choiceCost)
    return std::nullopt;
  if (isPower) {
    // Moves to the left as one.
    uint32_t ones = 0;
    for (int64_t bit = 0; bit < int64_t(mostElements); bit += period / 4)
      ones |= uint32_t(1) << bit;
    return testBits(builder, loc, makeColumnBit(builder, loc, first, ones),
                    count, isInverted);
  }
  Value word;
  Integers ints(builder, loc);
  for (size_t number = 0; number < periods; ++number)
    word =
        unite(builder, loc, word,
              makeColumnBit(builder, loc, ints.add(first, number * period), 1));
  return testBits(builder, loc, word, count, isInverted);
}

bool attn::warp::isWorthIntervals(size_t count, int64_t period) {
  size_t bounds = 2 * (countPeriods(count, period) + 1);
  // Of a residue: the remainder, the comparison and the choice.
  return bounds * boundCost < countResidues(count, period) * 2 * choiceCost;
}

SmallVector<Value> attn::warp::testIntervals(OpBuilder &builder, Location loc,
                                             size_t count, int64_t period,
                                             Value first, int64_t length,
                                             bool isInverted) {
  Integers ints(builder, loc);
  auto countBelow = [&](int64_t shift) {
    return countColumns(builder, loc, /*first=*/0, count,
                        ints.add(first, shift), /*isInclusive=*/false);
  };
  Value word;
  // The first interval may have begun before the first column.
  int64_t last = countPeriods(count, period);
  for (int64_t number = -1; number < last; ++number) {
    int64_t shift = number * period;
    word = unite(builder, loc, word,
                 ints.bitXor(countBelow(shift), countBelow(shift + length)));
  }
  return testBits(builder, loc, word, count, isInverted);
}

std::optional<SmallVector<Value>>
attn::warp::testValues(OpBuilder &builder, Location loc,
                       ArrayRef<Value> values) {
  llvm::MapVector<Value, uint32_t> ones;
  if (values.size() > mostElements)
    return std::nullopt;
  for (auto [bit, value] : llvm::enumerate(values))
    ones[value] |= uint32_t(1) << bit;
  if (ones.size() * leastElements / 2 > values.size())
    return std::nullopt;
  Integers ints(builder, loc);
  Value word;
  for (auto [value, bits] : ones) {
    Value chosen = arith::SelectOp::create(
        builder, loc, value, ints.constant(int32_t(bits)), ints.constant(0));
    word = unite(builder, loc, word, chosen);
  }
  return testBits(builder, loc, word, values.size());
}

//===----------------------------------------------------------------------===//
// Words together
//===----------------------------------------------------------------------===//

/// Where `tests` are of bits and `values` are not, of as few values for a word
/// as pay: the values as tests of words of their own, of the same bits.
static SmallVector<Value> testBeside(OpBuilder &builder, Location loc,
                                     ArrayRef<Value> tests,
                                     ArrayRef<Value> values) {
  llvm::MapVector<Value, SmallVector<size_t>> ofWord;
  for (auto [number, test] : llvm::enumerate(tests)) {
    std::optional<BitTest> bit = matchBit(test);
    if (!bit || matchBit(values[number]))
      return llvm::to_vector(values);
    ofWord[bit->word].push_back(number);
  }
  SmallVector<Value> result(values);
  for (auto &[word, numbers] : ofWord) {
    SmallVector<Value> own;
    for (auto [bit, number] : llvm::enumerate(numbers)) {
      if (matchBit(tests[number])->bit != int64_t(bit))
        return llvm::to_vector(values);
      own.push_back(values[number]);
    }
    std::optional<SmallVector<Value>> made = testValues(builder, loc, own);
    if (!made)
      return llvm::to_vector(values);
    for (auto [number, test] : llvm::zip_equal(numbers, *made))
      result[number] = test;
  }
  return result;
}

std::optional<SmallVector<Value>> attn::warp::joinTests(Operation *op,
                                                        ArrayRef<Value> lhs,
                                                        ArrayRef<Value> rhs,
                                                        OpBuilder &builder) {
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) ||
      !lhs.front().getType().isInteger(1))
    return std::nullopt;
  Location loc = op->getLoc();
  SmallVector<Value> leftTests = testBeside(builder, loc, rhs, lhs);
  SmallVector<Value> rightTests = testBeside(builder, loc, lhs, rhs);
  lhs = leftTests;
  rhs = rightTests;
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
      OperationState state(loc, op->getName(), {test.word, other},
                           {test.word.getType()});
      word =
          MaskWordOp::create(builder, loc, builder.create(state)->getResult(0));
    }
    result.push_back(testBit(builder, loc, {word, test.bit}));
  }
  return result;
}

/// A test of a bit, or that beside a comparison.
static std::optional<BitTest> findBit(Value element) {
  Operation *op = element.getDefiningOp();
  if (!isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op) ||
      !element.getType().isInteger(1))
    return matchBit(element);
  for (unsigned side : {0, 1})
    if (op->getOperand(1 - side).getDefiningOp<arith::CmpIOp>())
      if (std::optional<BitTest> test = matchBit(op->getOperand(side)))
        return test;
  return std::nullopt;
}

SmallVector<size_t> attn::warp::orderByWords(ArrayRef<Value> elements) {
  llvm::MapVector<Value, SmallVector<size_t>> ofWord;
  for (auto [number, element] : llvm::enumerate(elements)) {
    std::optional<BitTest> test = findBit(element);
    ofWord[test ? test->word : Value()].push_back(number);
  }
  SmallVector<size_t> order;
  for (auto &[word, numbers] : ofWord)
    llvm::append_range(order, numbers);
  return order;
}

/// A test of a bit, and (or) `other`, as assembly: LLVM would turn the test
/// into a shift, which ptxas makes no predicates of seven at a time from, and
/// the selection into two.
static Value joinHere(OpBuilder &builder, Location loc, BitTest test,
                      Value other, bool isAnd) {
  std::string text = "{ .reg .b32 one; .reg .pred isOne; and.b32 one, $1, " +
                     std::to_string(uint32_t(1) << test.bit) +
                     "; setp.ne.b32 isOne, one, 0; " + (isAnd ? "and" : "or") +
                     ".pred $0, isOne, $2; }";
  return LLVM::InlineAsmOp::create(
             builder, loc, builder.getI1Type(), ValueRange{test.word, other},
             text, "=b,r,b", /*has_side_effects=*/false,
             /*is_align_stack=*/false, LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr::get(builder.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             ArrayAttr())
      .getResult(0);
}

Value attn::warp::repeatTest(OpBuilder &builder, Location loc, Value element) {
  if (std::optional<BitTest> test = matchBit(element))
    return testBit(builder, loc, *test);
  if (!findBit(element))
    return element;
  Operation *op = element.getDefiningOp();
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (!matchBit(left))
    std::swap(left, right);
  right = builder.clone(*right.getDefiningOp())->getResult(0);
  return joinHere(builder, loc, *matchBit(left), right, isa<arith::AndIOp>(op));
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
