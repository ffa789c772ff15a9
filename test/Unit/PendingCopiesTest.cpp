//===- PendingCopiesTest.cpp - the counts after warp.await ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/PendingCopies.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn::warp;

namespace {
class PendingCopies : public ::testing::Test {
protected:
  PendingCopies() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        memref::MemRefDialect, scf::SCFDialect, WarpDialect>();
  }

  /// Parses a kernel with rings %q (depth 1), %k and %v (depth 2).
  KernelOp parse(const std::string &body, bool rings = true) {
    std::string text = R"(
      !view = memref<?x?xbf16, strided<[?, 1]>>
      !slot = !warp.slot<64x64xbf16>
      !one = !warp.ring<1, 64x64xbf16>
      !two = !warp.ring<2, 64x64xbf16>
      !s = !warp.frag<64x64xf32, acc, 4>
      func.func @f(%m: !view, %lo: index, %a: index, %b: index, %hi: index,
                   %c: i1) {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %zero = arith.constant 0.0 : f32
        warp.kernel @f blocks(%x, %y, %z) in (%hi, %hi, %hi) warps(4) {
    )";
    if (rings)
      text += R"(
          %q = warp.ring : !one
          %k = warp.ring : !two
          %v = warp.ring : !two
      )";
    module = parseSourceString<ModuleOp>(text + body + "} return }", &context);
    KernelOp kernel;
    if (module)
      module->walk([&](KernelOp op) { kernel = op; });
    return kernel;
  }

  /// The counts of all awaits, in program order; -1 where it fails.
  std::vector<int64_t> count(KernelOp kernel) {
    std::vector<int64_t> counts;
    kernel.walk([&](AwaitOp await) {
      FailureOr<int64_t> count = countYoungerCopies(await);
      counts.push_back(succeeded(count) ? *count : -1);
    });
    return counts;
  }

  /// A synchronous kernel with Q in front and three loops over K and V.
  KernelOp parseChain() {
    std::string text = R"(
      %qs = warp.alloc : !slot
      %ks = warp.alloc : !slot
      %vs = warp.alloc : !slot
      %s0 = warp.splat %zero : !s
      warp.copy %m[%x, %x] to %qs : !view, !slot
    )";
    for (const char *bounds : {"%lo to %a", "%a to %b", "%b to %hi"})
      text += std::string("scf.for %n = ") + bounds + R"( step %c1 {
        warp.copy %m[%n, %x] to %ks : !view, !slot
        %s = warp.mma mma_sync %qs, %ks, %s0 transpose_b : !slot, !slot, !s
        warp.copy %m[%n, %y] to %vs : !view, !slot
        %t = warp.mma mma_sync %qs, %vs, %s transpose_b : !slot, !slot, !s
      }
    )";
    return parse(text, /*rings=*/false);
  }

  std::vector<int64_t> countBuffered(int64_t depth, BufferSchedule schedule) {
    KernelOp kernel = parseChain();
    IRRewriter rewriter(&context);
    std::string reason;
    EXPECT_TRUE(
        succeeded(bufferLoops(rewriter, kernel, depth, schedule, reason)))
        << reason;
    return count(kernel);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

static const char *copyQ =
    "warp.copy_async %m[%x, %x] to %q[%c0] : !view, !one\n";

static std::string copy(const std::string &ring, const std::string &item) {
  return "warp.copy_async %m[%x, %x] to " + ring + "[" + item +
         "] : !view, !two\n";
}

static std::string use(const std::string &name, const std::string &ring,
                       const std::string &item) {
  return name + " = warp.await " + ring + "[" + item +
         "] : !two -> !slot\nwarp.release " + name + " : !slot\n";
}

// Three loops: the first await belongs to Q, each loop has one of K and of V.
// Own, depth d: K[n] is followed by V[n], …, V[n + d - 2], that is 2 d - 3.
TEST_F(PendingCopies, OwnSchedule) {
  EXPECT_EQ(countBuffered(2, BufferSchedule::Own),
            (std::vector<int64_t>{2, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(countBuffered(3, BufferSchedule::Own),
            (std::vector<int64_t>{4, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(countBuffered(4, BufferSchedule::Own),
            (std::vector<int64_t>{6, 5, 5, 5, 5, 5, 5}));
}

// Early, depth d: one more copy is in flight than slots are free of the other
// ring, 2 d - 2.
TEST_F(PendingCopies, EarlySchedule) {
  EXPECT_EQ(countBuffered(1, BufferSchedule::Early),
            (std::vector<int64_t>{1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(countBuffered(2, BufferSchedule::Early),
            (std::vector<int64_t>{3, 2, 2, 2, 2, 2, 2}));
}

// Together: K[n] may leave V[n] behind, V[n] nothing (depth 2).
TEST_F(PendingCopies, TogetherSchedule) {
  EXPECT_EQ(countBuffered(2, BufferSchedule::Together),
            (std::vector<int64_t>{2, 1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(countBuffered(3, BufferSchedule::Together),
            (std::vector<int64_t>{4, 3, 2, 3, 2, 3, 2}));
}

TEST_F(PendingCopies, StraightLine) {
  KernelOp kernel = parse(copyQ + copy("%k", "%lo") + copy("%v", "%lo") +
                          use("%0", "%k", "%lo") + use("%1", "%v", "%lo"));
  ASSERT_TRUE(kernel);
  EXPECT_EQ(count(kernel), (std::vector<int64_t>{1, 0}));
}

// The prologue copies V before K, the body K before V: the ways differ, the
// smaller count holds.
TEST_F(PendingCopies, TheSmallerCountHolds) {
  KernelOp kernel = parse(
      copy("%v", "%lo") + copy("%k", "%lo") +
      "scf.for %n = %lo to %hi step %c1 {\n%n1 = arith.addi %n, %c1 : index\n" +
      use("%0", "%k", "%n") + copy("%k", "%n1") + use("%1", "%v", "%n") +
      copy("%v", "%n1") + "}");
  ASSERT_TRUE(kernel);
  // K: from the front 0, from the body 1. V: 2 and 1.
  EXPECT_EQ(count(kernel), (std::vector<int64_t>{0, 1}));
}

// A copy inside a branch may or may not be there: it counts as none.
TEST_F(PendingCopies, BranchesCountAsNoCopy) {
  KernelOp kernel = parse(copy("%k", "%lo") + "scf.if %c {\n" +
                          copy("%v", "%lo") + "}\n" + use("%0", "%k", "%lo"));
  ASSERT_TRUE(kernel);
  EXPECT_EQ(count(kernel), (std::vector<int64_t>{0}));
}

// An item that nobody copied as far as one can see: wait for everything.
TEST_F(PendingCopies, UnknownItemWaitsForAll) {
  KernelOp kernel =
      parse(copy("%k", "%a") + copy("%v", "%lo") + use("%0", "%k", "%lo"));
  ASSERT_TRUE(kernel);
  EXPECT_EQ(count(kernel), (std::vector<int64_t>{0}));
}

// A loop that does not start where the one before ends is no chain.
TEST_F(PendingCopies, AnotherRangeIsNoChain) {
  std::string body = "%n1 = arith.addi %n, %c1 : index\n" +
                     use("%s", "%k", "%n") + copy("%k", "%n1") + "}\n";
  KernelOp kernel = parse(copy("%k", "%lo") + copy("%v", "%lo") +
                          "scf.for %n = %lo to %a step %c1 {\n" + body +
                          "scf.for %n = %b to %hi step %c1 {\n" + body);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(count(kernel), (std::vector<int64_t>{0, 0}));
}

// Constant bounds and folded item numbers.
TEST_F(PendingCopies, ConstantBounds) {
  KernelOp kernel = parse(
      copy("%k", "%c0") + copy("%v", "%c0") + copy("%k", "%c1") +
      "scf.for %n = %c0 to %hi step %c1 {\n%c2 = arith.constant 2 : index\n"
      "%n2 = arith.addi %n, %c2 : index\n%n1 = arith.addi %n, %c1 : index\n" +
      use("%0", "%k", "%n") + copy("%v", "%n1") + use("%1", "%v", "%n") +
      copy("%k", "%n2") + "}");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(count(kernel), (std::vector<int64_t>{2, 2}));
}
