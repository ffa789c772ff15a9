//===- NumberRangeTest.cpp - ranges of numbers in scalar code -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/NumberRange.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace attn::tile;

/// Of %y, where %d lies between `least` and `most`.
static std::optional<NumberRange> rangeIn(const std::string &body, double least,
                                          double most) {
  MLIRContext context;
  context
      .loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect>();
  auto module =
      parseSourceString<ModuleOp>("func.func @f(%d: i32) -> i32 {\n"
                                  "%f = arith.sitofp %d : i32 to f32\n" +
                                      body + "return %y : i32\n}\n",
                                  &context);
  EXPECT_TRUE(module);
  auto function = *module->getOps<func::FuncOp>().begin();
  return findRange(function.front().getTerminator()->getOperand(0),
                   function.getArgument(0), {least, most});
}

TEST(NumberRange, FloatsAreOffByALittle) {
  auto range = rangeIn("%l = math.log %f : f32\n%c = arith.constant 3.0 : f32\n"
                       "%m = arith.mulf %l, %c : f32\n"
                       "%y = arith.fptosi %m : f32 to i32\n",
                       8, 100);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->least, 6);
  EXPECT_EQ(range->most, 13);
}

// bf16 has 512 and 516, and makes 512 of 513 and 514.
TEST(NumberRange, NarrowFloatsAreOffByMore) {
  for (const char *type : {"bf16", "f16"}) {
    std::string narrow(type);
    auto range = rangeIn("%n = arith.truncf %f : f32 to " + narrow +
                             "\n%w = arith.extf %n : " + narrow +
                             " to f32\n%y = arith.fptosi %w : f32 to i32\n",
                         narrow == "bf16" ? 514 : 2049, 3000);
    ASSERT_TRUE(range);
    EXPECT_LE(range->least, narrow == "bf16" ? 512 : 2048);
    EXPECT_GE(range->most, narrow == "bf16" ? 3008 : 3000);
  }
}

// f16 has no number above 65504.
TEST(NumberRange, WhatATypeDoesNotHold) {
  const char *body = "%n = arith.truncf %f : f32 to f16\n"
                     "%w = arith.extf %n : f16 to f32\n"
                     "%y = arith.fptosi %w : f32 to i32\n";
  EXPECT_TRUE(rangeIn(body, 0, 30000));
  EXPECT_FALSE(rangeIn(body, 0, 70000));
  EXPECT_FALSE(rangeIn("%y = arith.addi %d, %d : i32\n", 0, 0x1p30));
}
