//===- IntegerSizesTest.cpp - integers that may wrap around ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/IntegerSizes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

/// Whether the operation of %y may, in code of two positions and a narrow
/// number.
static bool mayWrap(const std::string &body) {
  MLIRContext context;
  context
      .loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect>();
  auto module = parseSourceString<ModuleOp>(
      "func.func @f(%i: i32, %j: i32, %n: i8, %f: f32) {\n" + body +
          "return\n}\n",
      &context);
  EXPECT_TRUE(module) << body;
  auto function = *module->getOps<func::FuncOp>().begin();
  attn::IntegerSizes sizes;
  return sizes.mayWrap(function.front().getTerminator()->getPrevNode());
}

static std::string constant(const std::string &name, int64_t value,
                            const std::string &type = "i32") {
  return name + " = arith.constant " + std::to_string(value) + " : " + type +
         "\n";
}

// Of `operation` on a position and a constant.
static bool mayWrapBy(const std::string &operation, int64_t value) {
  return mayWrap(constant("%c", value) + "%y = arith." + operation +
                 " %i, %c : i32\n");
}

TEST(IntegerSizes, PositionsAndConstants) {
  EXPECT_FALSE(mayWrapBy("addi", 1 << 30));
  EXPECT_TRUE(mayWrapBy("addi", 2147483647));
  EXPECT_TRUE(mayWrapBy("addi", -2147483648LL));
  EXPECT_FALSE(mayWrapBy("subi", 1000));
  EXPECT_TRUE(mayWrapBy("subi", -2147483647));
  EXPECT_FALSE(mayWrapBy("muli", 511));
  EXPECT_TRUE(mayWrapBy("muli", 1640531527));
  EXPECT_TRUE(mayWrapBy("muli", -40503));
  EXPECT_FALSE(mayWrapBy("shli", 8));
  EXPECT_TRUE(mayWrapBy("shli", 10));
  EXPECT_TRUE(mayWrapBy("shli", 31));
  EXPECT_TRUE(mayWrapBy("shli", 32));
  EXPECT_FALSE(mayWrapBy("divsi", 3));
}

TEST(IntegerSizes, WhatIsMadeOfOthers) {
  std::string hash = constant("%c", 1640531527) +
                     "%h = arith.muli %i, %c : i32\n" + constant("%s", 28);
  // A hash is any number; 4 bits of it are few, also without a sign.
  EXPECT_TRUE(mayWrap(hash + "%y = arith.addi %h, %j : i32\n"));
  EXPECT_TRUE(mayWrap(hash + "%y = math.absi %h : i32\n"));
  EXPECT_FALSE(mayWrap(hash + "%b = arith.shrui %h, %s : i32\n"
                              "%y = arith.addi %b, %j : i32\n"));
  EXPECT_FALSE(mayWrap(hash + "%b = arith.shrsi %h, %s : i32\n"
                              "%y = arith.muli %b, %s : i32\n"));
  EXPECT_FALSE(mayWrap(hash + "%b = arith.remsi %h, %s : i32\n"
                              "%y = arith.subi %b, %j : i32\n"));
  // A choice is the larger of both.
  std::string choice = hash + "%k = arith.cmpi slt, %i, %j : i32\n";
  EXPECT_TRUE(mayWrap(choice + "%m = arith.select %k, %h, %i : i32\n"
                               "%y = arith.addi %m, %j : i32\n"));
  EXPECT_FALSE(mayWrap(choice + "%m = arith.select %k, %i, %j : i32\n"
                                "%y = arith.addi %m, %j : i32\n"));
  // The square of a distance, and a sum of two, are taken not to; nor is what
  // floats or memory give.
  EXPECT_FALSE(mayWrap("%d = arith.subi %i, %j : i32\n"
                       "%s = arith.muli %d, %d : i32\n"
                       "%y = arith.addi %s, %s : i32\n"));
  EXPECT_FALSE(mayWrap("%d = arith.fptosi %f : f32 to i32\n"
                       "%y = arith.addi %d, %i : i32\n"));
}

TEST(IntegerSizes, OtherWidths) {
  EXPECT_TRUE(mayWrap("%y = arith.addi %n, %n : i8\n"));
  EXPECT_TRUE(mayWrap("%y = arith.trunci %i : i32 to i8\n"));
  EXPECT_FALSE(mayWrap("%w = arith.extsi %n : i8 to i32\n"
                       "%y = arith.trunci %w : i32 to i8\n"));
  EXPECT_TRUE(mayWrap("%w = arith.extui %n : i8 to i32\n"
                      "%y = arith.trunci %w : i32 to i8\n"));
  std::string wide = "%w = arith.extsi %i : i32 to i64\n" +
                     constant("%c", 1640531527, "i64") +
                     "%y = arith.muli %w, %c : i64\n";
  EXPECT_FALSE(mayWrap(wide));
  EXPECT_TRUE(mayWrap(wide + "%z = arith.trunci %y : i64 to i32\n"));
}

// A chain of operations longer than any stack, each part used twice.
TEST(IntegerSizes, LongChains) {
  std::string body = constant("%c", 1) + "%v0 = arith.minsi %i, %j : i32\n";
  for (int number = 1; number != 4000; ++number) {
    std::string last = "%v" + std::to_string(number - 1);
    body += "%v" + std::to_string(number) + " = arith.maxsi " + last + ", " +
            last + " : i32\n";
  }
  EXPECT_FALSE(mayWrap(body + "%y = arith.addi %v3999, %c : i32\n"));
}
