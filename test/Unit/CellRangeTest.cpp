//===- CellRangeTest.cpp - ranges of masks over cells ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of masks and cells, what their ranges say is compared with all pairs of the
// cell, one by one.
//
//===----------------------------------------------------------------------===//

#include "../../lib/Dialect/Tile/Transforms/CellRange.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace attn::tile;

namespace {
/// Whether a mask shows some pair of a cell, and each.
struct Shown {
  bool some, each;
};

class Mask {
public:
  /// Code from %i and %j to %y.
  explicit Mask(const std::string &body) {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        math::MathDialect>();
    module = parseSourceString<ModuleOp>(
        "func.func @f(%b: i32, %h: i32, %i: i32, %j: i32) -> i1 {\n" + body +
            "return %y : i1\n}\n",
        &context);
  }

  explicit operator bool() const { return bool(module); }

  /// Nothing where the code has no rule.
  std::optional<Shown> look(MaskCell cell, int64_t query, int64_t key) {
    auto function = *module->getOps<func::FuncOp>().begin();
    Block &region = function.front();
    Operation *end = region.getTerminator(), *before = end->getPrevNode();
    OpBuilder b(end);
    SmallVector<Value> arguments;
    for (int64_t number : {int64_t(0), int64_t(0), query, key})
      arguments.push_back(
          arith::ConstantIntOp::create(b, end->getLoc(), number, 32));
    std::optional<CellRange> range =
        CellRangeReader(b, region, cell).read(arguments, end->getOperand(0));
    std::optional<Shown> shown;
    APInt some, each;
    if (range && matchPattern(range->greatest, m_ConstantInt(&some)) &&
        matchPattern(range->least, m_ConstantInt(&each)))
      shown = Shown{!some.isZero(), !each.isZero()};
    else
      EXPECT_FALSE(range) << "a range that does not fold";
    while (end->getPrevNode() != before)
      end->getPrevNode()->erase();
    return shown;
  }

  /// The same, from each pair.
  Shown lookAtAll(MaskCell cell, int64_t query, int64_t key) {
    Shown all = {false, true};
    for (int64_t i = query; i != query + cell.queries; ++i)
      for (int64_t j = key; j != key + cell.keys; ++j) {
        bool isShown = look({1, 1}, i, j)->some;
        all.some |= isShown;
        all.each &= isShown;
      }
    return all;
  }

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static const char *distance = "%d = arith.subi %i, %j : i32\n"
                              "%f = arith.sitofp %d : i32 to f32\n";

// What is far from the diagonal is hidden, and what is near is shown, whole.
static void expectBand(const std::string &body) {
  Mask mask(body);
  ASSERT_TRUE(mask);
  for (auto [query, key] : {std::pair(0, 0),
                            {64, 64},
                            {64, 48},
                            {64, 0},
                            {0, 64},
                            {480, 64},
                            {64, 480},
                            {496, 496}}) {
    Shown all = mask.lookAtAll({16, 16}, query, key);
    std::optional<Shown> shown = mask.look({16, 16}, query, key);
    ASSERT_TRUE(shown) << body;
    EXPECT_EQ(shown->some, all.some) << body << query << ", " << key;
    EXPECT_EQ(shown->each, all.each) << body << query << ", " << key;
  }
}

TEST(CellRange, Floats) {
  std::string f = distance;
  std::string limit = "%l = arith.constant 40.5 : f32\n"
                      "%y = arith.cmpf ole, %x, %l : f32\n";
  expectBand(f + "%x = math.absf %f : f32\n" + limit);
  expectBand(f +
             "%n = arith.negf %f : f32\n"
             "%x = arith.maximumf %n, %f : f32\n" +
             limit);
  std::string square = f + "%s = arith.mulf %f, %f : f32\n";
  expectBand(square + "%x = math.sqrt %s : f32\n" + limit);
  expectBand(square +
             "%c = arith.constant 41.5 : f32\n"
             "%x = arith.divf %s, %c : f32\n" +
             limit);
  // A logarithm of what is not below one.
  expectBand(f +
             "%a = math.absf %f : f32\n"
             "%one = arith.constant 1.0 : f32\n"
             "%p = arith.addf %a, %one : f32\n"
             "%g = math.log2 %p : f32\n"
             "%c = arith.constant 7.0 : f32\n"
             "%x = arith.mulf %g, %c : f32\n" +
             limit);
}

TEST(CellRange, Casts) {
  expectBand("%d = arith.subi %i, %j : i32\n"
             "%w = arith.extsi %d : i32 to i64\n"
             "%a = math.absi %w : i64\n"
             "%c = arith.constant 33 : i64\n"
             "%y = arith.cmpi slt, %a, %c : i64\n");
  expectBand(std::string(distance) + "%e = arith.constant 8.0 : f32\n"
                                     "%q = arith.divf %f, %e : f32\n"
                                     "%l = math.floor %q : f32\n"
                                     "%n = arith.fptosi %l : f32 to i32\n"
                                     "%s = arith.muli %n, %n : i32\n"
                                     "%c = arith.constant 17 : i32\n"
                                     "%y = arith.cmpi slt, %s, %c : i32\n");
}

// Shifts by as many bits as the head says; without a sign only of what has
// none.
TEST(CellRange, ShiftsByOneNumber) {
  std::string bits = "%four = arith.constant 4 : i32\n"
                     "%n = arith.addi %h, %four : i32\n";
  for (const char *shift : {"arith.shrsi", "arith.shrui"})
    expectBand(bits + "%a = " + shift + " %i, %n : i32\n" + "%c = " + shift +
               " %j, %n : i32\n" + "%y = arith.cmpi eq, %a, %c : i32\n");
  std::string difference = bits + "%d = arith.subi %i, %j : i32\n";
  expectBand(difference + "%a = arith.shrsi %d, %n : i32\n" +
             "%y = arith.cmpi slt, %a, %four : i32\n");
  Mask mask(difference + "%a = arith.shrui %d, %n : i32\n" +
            "%y = arith.cmpi slt, %a, %four : i32\n");
  ASSERT_TRUE(mask);
  EXPECT_FALSE(mask.look({16, 16}, 0, 0));
}

// A difference is known to be of either sign, and its root may be no number.
TEST(CellRange, WhatMayBeNoNumber) {
  std::string f = distance;
  for (const char *op : {"math.sqrt", "math.log"}) {
    Mask mask(f + "%x = " + op + " %f : f32\n" +
              "%c = arith.constant 4.0 : f32\n"
              "%y = arith.cmpf ult, %x, %c : f32\n");
    ASSERT_TRUE(mask);
    EXPECT_FALSE(mask.look({16, 16}, 0, 0)) << op;
  }
  Mask mask(f + "%z = arith.constant 0.0 : f32\n"
                "%x = arith.divf %f, %z : f32\n"
                "%y = arith.cmpf ult, %x, %z : f32\n");
  ASSERT_TRUE(mask);
  EXPECT_FALSE(mask.look({16, 16}, 0, 0));
}

namespace {
/// Random code, of values of three types.
class Generator {
public:
  /// With `mayWrap`, of operations on integers that leave 32 bits, too.
  explicit Generator(unsigned seed, bool mayWrap = false)
      : random(seed), mayWrap(mayWrap) {}

  std::string generate() {
    integers = {"%i", "%j"};
    integer("arith.subi %i, %j : i32");
    for (int number = 0; number != 5; ++number)
      addInteger();
    floats.clear();
    booleans.clear();
    number("arith.sitofp " + pick(integers) + " : i32 to f32");
    for (int count = 0; count != 3; ++count)
      addFloat();
    for (int count = 0; count != 3; ++count)
      addBoolean();
    text += "%t = arith.constant true\n%y = arith.andi " + booleans.back() +
            ", %t : i1\n";
    return text;
  }

private:
  unsigned below(unsigned limit) { return random() % limit; }
  const std::string &pick(const std::vector<std::string> &of) {
    // Rather what is new.
    return of[std::max(below(of.size()), below(of.size()))];
  }
  std::string add(std::vector<std::string> &to, const std::string &code) {
    to.push_back("%v" + std::to_string(count++));
    text += to.back() + " = " + code + "\n";
    return to.back();
  }
  std::string integer(const std::string &code) { return add(integers, code); }
  std::string number(const std::string &code) { return add(floats, code); }
  std::string constant(int value, const char *type) {
    std::string name = "%c" + std::to_string(count++);
    text += name + " = arith.constant " + std::to_string(value) +
            (*type == 'f' ? ".0" : "") + " : " + type + "\n";
    return name;
  }

  /// Hashes, limits that mean none, and what shifts leave of a number.
  void addLargeInteger() {
    static const char *const operations[] = {"muli", "addi", "subi", "shli"};
    static const int numbers[] = {1640531527, 2147483647, -2147483640,
                                  1 << 30,    65537,      -40503};
    unsigned which = below(4);
    int value = which == 3 ? int(below(32)) : numbers[below(6)];
    std::string c = constant(value, "i32"), a = pick(integers);
    std::string large = integer(std::string("arith.") + operations[which] +
                                " " + a + ", " + c + " : i32");
    static const char *const shifts[] = {"shrsi", "shrui", "shli"};
    c = constant(int(below(32)), "i32");
    integer(std::string("arith.") + shifts[below(3)] + " " + large + ", " + c +
            " : i32");
  }

  void addInteger() {
    if (mayWrap && below(2))
      return addLargeInteger();
    std::string a = pick(integers), b = pick(integers);
    static const char *const binary[] = {"arith.addi", "arith.subi",
                                         "arith.minsi", "arith.maxsi"};
    static const char *const byConstant[] = {"arith.divsi", "arith.remsi",
                                             "arith.floordivsi"};
    switch (below(6)) {
    case 0:
    case 1:
      integer(std::string(binary[below(4)]) + " " + a + ", " + b + " : i32");
      break;
    case 2:
    case 3: {
      std::string c = constant(int(1 + below(12)), "i32");
      integer(std::string(byConstant[below(3)]) + " " + a + ", " + c +
              " : i32");
      break;
    }
    case 4: {
      const char *masks[] = {"arith.andi", "arith.shrsi", "arith.muli"};
      unsigned which = below(3);
      int value = which == 0   ? (1 << (1 + below(4))) - 1
                  : which == 1 ? int(below(4))
                               : int(below(9)) - 4;
      std::string c = constant(value, "i32");
      if (which == 1 && below(2)) {
        // As many bits as the head says.
        c = integer("arith.andi %h, " + constant(3, "i32") + " : i32");
        static const char *const shifts[] = {"arith.shrsi", "arith.shrui",
                                             "arith.shli"};
        masks[which] = shifts[below(3)];
      }
      integer(std::string(masks[which]) + " " + a + ", " + c + " : i32");
      break;
    }
    case 5: {
      // Small enough for a square.
      std::string c = constant(int(2 + below(30)), "i32");
      std::string rest = integer("arith.remsi " + a + ", " + c + " : i32");
      if (below(2))
        integer("math.absi " + a + " : i32");
      else
        integer("arith.muli " + rest + ", " + rest + " : i32");
      break;
    }
    }
  }

  void addFloat() {
    std::string a = pick(floats), b = pick(floats);
    static const char *const binary[] = {"arith.addf", "arith.subf",
                                         "arith.mulf", "arith.minimumf",
                                         "arith.maximumf"};
    switch (below(6)) {
    case 0:
    case 1:
      number(std::string(binary[below(5)]) + " " + a + ", " + b + " : f32");
      break;
    case 2: {
      std::string magnitude = number("math.absf " + a + " : f32");
      number("math.sqrt " + magnitude + " : f32");
      break;
    }
    case 3: {
      std::string c = constant(int(below(9)) - 4, "f32");
      number("arith.mulf " + a + ", " + c + " : f32");
      break;
    }
    case 4:
      number("arith.negf " + a + " : f32");
      break;
    case 5:
      number("arith.mulf " + a + ", " + a + " : f32");
      break;
    }
  }

  void addBoolean() {
    static const char *const predicates[] = {"slt", "sle", "sgt", "sge",
                                             "eq",  "ne",  "ult", "uge"};
    static const char *const ordered[] = {"olt", "ule", "ogt",
                                          "oge", "oeq", "une"};
    std::string c = constant(int(below(40)) - 8, "i32");
    std::string one =
        add(booleans, std::string("arith.cmpi ") + predicates[below(8)] + ", " +
                          pick(integers) + ", " + c + " : i32");
    c = constant(int(below(40)) - 8, "f32");
    std::string other =
        add(booleans, std::string("arith.cmpf ") + ordered[below(6)] + ", " +
                          pick(floats) + ", " + c + " : f32");
    static const char *const binary[] = {"arith.andi", "arith.ori",
                                         "arith.xori"};
    std::string both = add(booleans, std::string(binary[below(3)]) + " " + one +
                                         ", " + other + " : i1");
    // Of a condition, one or the other.
    std::string chosen =
        integer("arith.select " + both + ", " + pick(integers) + ", " +
                pick(integers) + " : i32");
    add(booleans, std::string("arith.cmpi ") + predicates[below(6)] + ", " +
                      chosen + ", " + pick(integers) + " : i32");
    add(booleans, std::string(binary[below(3)]) + " " + pick(booleans) + ", " +
                      both + " : i1");
  }

  std::mt19937 random;
  bool mayWrap;
  std::string text;
  std::vector<std::string> integers, floats, booleans;
  unsigned count = 0;
};
} // namespace

// Never "no pair" where there is one, nor "each pair" where one is hidden.
static void expectRandomCode(bool mayWrap, unsigned leastRead,
                             unsigned leastDecided) {
  unsigned numDecided = 0, numRead = 0;
  for (unsigned seed = 0; seed != 600; ++seed) {
    std::string body = Generator(seed, mayWrap).generate();
    Mask mask(body);
    ASSERT_TRUE(mask) << body;
    std::mt19937 random(seed);
    for (int repeat = 0; repeat != 4; ++repeat) {
      MaskCell cell = {int64_t(1) << random() % 4, int64_t(1) << random() % 4};
      int64_t query = int64_t(random() % 24) * cell.queries;
      int64_t key = int64_t(random() % 24) * cell.keys;
      std::optional<Shown> shown = mask.look(cell, query, key);
      if (!shown)
        continue;
      ++numRead;
      Shown all = mask.lookAtAll(cell, query, key);
      std::string place = "cell of " + std::to_string(cell.queries) + " x " +
                          std::to_string(cell.keys) + " at " +
                          std::to_string(query) + ", " + std::to_string(key);
      EXPECT_TRUE(shown->some || !all.some) << body << place;
      EXPECT_TRUE(!shown->each || all.each) << body << place;
      numDecided += shown->each || !shown->some;
    }
  }
  EXPECT_GT(numRead, leastRead);
  EXPECT_GT(numDecided, leastDecided);
}

// Most code has rules, and ranges that say something.
TEST(CellRange, RandomCode) { expectRandomCode(/*mayWrap=*/false, 1500, 800); }

TEST(CellRange, RandomCodeThatWrapsAround) {
  expectRandomCode(/*mayWrap=*/true, 400, 200);
}
