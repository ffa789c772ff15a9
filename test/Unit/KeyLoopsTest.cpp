//===- KeyLoopsTest.cpp - what a chain of loops over blocks is ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {

class KeyLoops : public testing::Test {
protected:
  KeyLoops() {
    context.loadDialect<TileDialect, arith::ArithDialect, func::FuncDialect,
                        memref::MemRefDialect, scf::SCFDialect,
                        vector::VectorDialect>();
  }

  /// A kernel with `body`; gives the block that its loops stand in.
  Block *parse(const std::string &body) {
    module = parseSourceString<ModuleOp>(
        "func.func @kernel(%x: index, %y: index, %lo: index, %hi: index,"
        " %j: i32, %s: f32, %k: memref<?x16xf32>, %out: memref<?xf32>) {\n"
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
        "%c2 = arith.constant 2 : index\n%i0 = arith.constant 0 : i32\n"
        "%c8 = arith.constant 8 : index\n"
        "tile.kernel @k plan(#attn.plan<target = cpu, block_q = 8, "
        "block_k = 8>) grid(%b, %head, %row) in (%x, %x, %x) {\n" +
            body + "}\nreturn\n}\n",
        &context);
    if (!module)
      return nullptr;
    Block *block = nullptr;
    module->walk([&](KernelOp kernel) { block = kernel.getBody(); });
    return block;
  }

  /// A loop that loads the block its induction variable chooses.
  static std::string loop(const std::string &name, const std::string &from,
                          const std::string &to, const std::string &init,
                          const std::string &step = "%c1",
                          const std::string &place = "%n") {
    return name + " = scf.for %n = " + from + " to " + to + " step " + step +
           " iter_args(%a = " + init + ") -> (f32) {\n%r = arith.muli " +
           place + ", %c8 : index\n" +
           "%t = tile.load %k[%r, %c0] : memref<?x16xf32>, vector<8x16xf32>\n"
           "%n32 = arith.index_cast %n : index to i32\n"
           "%z = arith.sitofp %n32 : i32 to f32\n"
           "%d = arith.addf %a, %z : f32\nscf.yield %d : f32\n}\n";
  }

  std::string whyNot(const std::string &body) {
    Block *block = parse(body);
    std::string reason = "does not parse";
    if (block && succeeded(matchKeyLoops(block, reason)))
      return "";
    return reason;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(KeyLoops, ChainOfThree) {
  Block *block =
      parse(loop("%p", "%lo", "%x", "%s") + loop("%q", "%x", "%y", "%p") +
            loop("%r", "%y", "%hi", "%q") +
            "memref.store %r, %out[%c0] : memref<?xf32>\n");
  ASSERT_TRUE(block);
  std::string reason;
  FailureOr<BlockLoops> loops = matchKeyLoops(block, reason);
  ASSERT_TRUE(succeeded(loops)) << reason;
  EXPECT_EQ(loops->loops.size(), 3u);
  auto function = cast<func::FuncOp>(block->getParentOp()->getParentOp());
  EXPECT_EQ(loops->getLowerBound(), function.getArgument(2));
  EXPECT_EQ(loops->getUpperBound(), function.getArgument(3));
  EXPECT_EQ(loops->getInits().front(), function.getArgument(5));
  EXPECT_EQ(loops->getResults().front(), loops->back().getResult(0));
  EXPECT_EQ(findLoopsOverBlocks(*module).size(), 3u);
}

// What is known before a chain is known before its first loop.
TEST_F(KeyLoops, KnownBefore) {
  Block *block = parse(
      "%early = arith.addi %b, %c1 : index\n" + loop("%p", "%lo", "%x", "%s") +
      "%late = arith.addi %b, %c2 : index\n" + loop("%q", "%x", "%hi", "%p"));
  ASSERT_TRUE(block);
  std::string reason;
  FailureOr<BlockLoops> loops = matchKeyLoops(block, reason);
  ASSERT_TRUE(succeeded(loops)) << reason;
  auto sums = llvm::to_vector(block->getOps<arith::AddIOp>());
  EXPECT_TRUE(loops->isKnownBefore(loops->getUpperBound()));
  EXPECT_TRUE(loops->isKnownBefore(block->getArgument(0)));
  EXPECT_TRUE(loops->isKnownBefore(sums[0]));
  EXPECT_FALSE(loops->isKnownBefore(sums[1]));
  EXPECT_FALSE(loops->isKnownBefore(loops->front().getResult(0)));
  EXPECT_FALSE(loops->isKnownBefore(loops->front().getInductionVar()));
  Value inside = loops->back().getBody()->front().getResult(0);
  EXPECT_FALSE(loops->isKnownBefore(inside));
}

// Keys outside, queries inside: nothing of it is about keys or a softmax.
TEST_F(KeyLoops, LoopOverQueries) {
  Block *block = parse(
      "%dv = scf.for %n = %lo to %hi step %c1 iter_args(%a = %s) -> (f32) {\n"
      "%r = arith.muli %n, %c8 : index\n"
      "%i = arith.index_cast %r : index to i32\n"
      "%queries = tile.coords %i, 1 : vector<1x8xi32>\n"
      "scf.yield %a : f32\n}\n");
  ASSERT_TRUE(block);
  std::string reason;
  EXPECT_TRUE(succeeded(matchKeyLoops(block, reason))) << reason;
}

// A loop whose place is the same in every step goes through no blocks, nor does
// one without tiles.
TEST_F(KeyLoops, OtherLoopsDoNotCount) {
  EXPECT_EQ(whyNot("scf.for %n = %lo to %hi step %c1 {\n%t = tile.load "
                   "%k[%x, %c0] : memref<?x16xf32>, vector<8x16xf32>\n}\n"),
            "there is no loop over blocks");
  EXPECT_EQ(whyNot("scf.for %n = %lo to %hi step %c1 {\n"
                   "memref.store %s, %out[%n] : memref<?xf32>\n}\n"),
            "there is no loop over blocks");
  EXPECT_EQ(whyNot("scf.for %n = %lo to %hi step %c2 {\n"
                   "memref.store %s, %out[%n] : memref<?xf32>\n}\n" +
                   loop("%p", "%lo", "%hi", "%s")),
            "");
}

TEST_F(KeyLoops, OtherStep) {
  EXPECT_EQ(whyNot(loop("%p", "%lo", "%hi", "%s", "%c2")),
            "a loop over blocks does not count them one by one");
}

TEST_F(KeyLoops, Gap) {
  EXPECT_EQ(
      whyNot(loop("%p", "%lo", "%x", "%s") + loop("%q", "%y", "%hi", "%p")),
      "a loop over blocks does not start where the one before ends");
}

TEST_F(KeyLoops, StartsAnew) {
  EXPECT_EQ(
      whyNot(loop("%p", "%lo", "%x", "%s") + loop("%q", "%x", "%hi", "%s")),
      "what a loop over blocks gives does not go on in the next one "
      "alone");
}

TEST_F(KeyLoops, HasAnotherReader) {
  EXPECT_EQ(whyNot(loop("%p", "%lo", "%x", "%s") +
                   loop("%q", "%x", "%hi", "%p") +
                   "memref.store %p, %out[%c0] : memref<?xf32>\n"),
            "what a loop over blocks gives does not go on in the next one "
            "alone");
}

} // namespace
