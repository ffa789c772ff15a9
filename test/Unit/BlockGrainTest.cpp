//===- BlockGrainTest.cpp - blocks of a mask that are alike ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/BlockGrain.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

/// Of a mask that gives %m, and reads %t by positions.
static attn::BlockGrain findGrain(const std::string &body) {
  MLIRContext context;
  context.loadDialect<attn::AttnDialect, arith::ArithDialect, func::FuncDialect,
                      math::MathDialect>();
  std::string t = "tensor<1x1x8x16xf16>";
  auto module = parseSourceString<ModuleOp>(
      "func.func @f(%q: " + t + ", %map: tensor<?x?xi32>) {\n" +
          "%o, %l = attn.attention %q, %q, %q captures(%map) mask(%b: i32, %h: "
          "i32, %i: i32, %j: i32, %t: tensor<?x?xi32>) {\n" +
          "%c0 = arith.constant 0 : i32\n%c3 = arith.constant 3 : i32\n"
          "%c6 = arith.constant 6 : i32\n%c32 = arith.constant 32 : i32\n"
          "%c64 = arith.constant 64 : i32\n%c128 = arith.constant 128 : i32\n" +
          body + "attn.yield %m : i1\n} : (" + t + ", " + t + ", " + t +
          ", tensor<?x?xi32>) -> (" + t + ", tensor<1x1x8xf32>)\nreturn\n}\n",
      &context);
  EXPECT_TRUE(module) << body;
  if (!module)
    return {};
  attn::AttentionOp op;
  module->walk([&](attn::AttentionOp found) { op = found; });
  return attn::findBlockGrain(op.getMask());
}

static void expectGrain(const std::string &body, int64_t queries,
                        int64_t keys) {
  attn::BlockGrain grain = findGrain(body);
  EXPECT_EQ(grain.queries, queries) << body;
  EXPECT_EQ(grain.keys, keys) << body;
}

static const std::string readBlock =
    "%x = attn.capture_load %t[%r, %c] : tensor<?x?xi32>\n"
    "%m = arith.cmpi ne, %x, %c0 : i32\n";

TEST(BlockGrain, Quotients) {
  expectGrain("%r = arith.floordivsi %i, %c64 : i32\n"
              "%c = arith.divsi %j, %c128 : i32\n" +
                  readBlock,
              64, 128);
  expectGrain("%r = arith.shrui %i, %c6 : i32\n"
              "%c = arith.shrsi %j, %c3 : i32\n" +
                  readBlock,
              64, 8);
  // A quotient of a quotient.
  expectGrain("%a = arith.divui %i, %c32 : i32\n"
              "%r = arith.floordivsi %a, %c3 : i32\n"
              "%c = arith.minsi %r, %c6 : i32\n" +
                  readBlock,
              96, 0);
  // Of positions that are moved, and of quotients that are.
  expectGrain("%a = arith.addi %i, %c32 : i32\n"
              "%r = arith.floordivsi %a, %c64 : i32\n"
              "%s = arith.floordivsi %j, %c64 : i32\n"
              "%c = arith.subi %s, %c3 : i32\n" +
                  readBlock,
              32, 64);
  expectGrain("%s = arith.floordivsi %j, %c32 : i32\n"
              "%u = arith.subi %s, %c3 : i32\n"
              "%c = arith.floordivsi %u, %c6 : i32\n"
              "%r = arith.divsi %h, %c3 : i32\n" +
                  readBlock,
              0, 96);
}

TEST(BlockGrain, WhatIsNotAlike) {
  expectGrain("%r = arith.floordivsi %i, %c64 : i32\n"
              "%c = arith.addi %j, %c0 : i32\n" +
                  readBlock,
              64, 1);
  expectGrain("%r = arith.remsi %i, %c64 : i32\n"
              "%c = arith.divsi %j, %c64 : i32\n" +
                  readBlock,
              1, 64);
  expectGrain("%d = arith.subi %i, %j : i32\n"
              "%r = arith.divsi %d, %c64 : i32\n"
              "%c = arith.divsi %j, %c64 : i32\n" +
                  readBlock,
              1, 1);
  // Several maps: what divides both.
  expectGrain("%r = arith.divsi %i, %c128 : i32\n"
              "%c = arith.divsi %j, %c128 : i32\n"
              "%a = arith.divsi %j, %c64 : i32\n"
              "%d = arith.addi %a, %r : i32\n"
              "%e = arith.remsi %d, %c3 : i32\n"
              "%f = arith.cmpi eq, %e, %c0 : i32\n"
              "%x = attn.capture_load %t[%r, %c] : tensor<?x?xi32>\n"
              "%g = arith.cmpi ne, %x, %c0 : i32\n"
              "%m = arith.andi %f, %g : i1\n",
              128, 64);
}

// Few tiles lie on the edges of these.
TEST(BlockGrain, ComparisonsOfPositions) {
  std::string causal = "%m = arith.cmpi sge, %i, %j : i32\n";
  expectGrain(causal, 0, 0);
  EXPECT_FALSE(findGrain(causal).isCoarse());
  expectGrain("%r = arith.divsi %i, %c64 : i32\n"
              "%c = arith.divsi %j, %c64 : i32\n"
              "%x = attn.capture_load %t[%r, %c] : tensor<?x?xi32>\n"
              "%g = arith.cmpi ne, %x, %c0 : i32\n"
              "%d = arith.subi %i, %j : i32\n%e = math.absi %d : i32\n"
              "%f = arith.cmpi sle, %e, %c32 : i32\n"
              "%m = arith.ori %f, %g : i1\n",
              64, 64);
}

TEST(BlockGrain, CoarseBlocks) {
  EXPECT_TRUE((attn::BlockGrain{64, 0}).isCoarse());
  EXPECT_TRUE((attn::BlockGrain{16, 128}).isCoarse());
  EXPECT_FALSE((attn::BlockGrain{64, 1}).isCoarse());
}
