//===- WarpSimulatorTest.cpp - warp kernels under many schedules ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every schedule that the passes of the Warp room build runs warp by warp,
// under several orders of the warps, and its numbers are compared with float64.
//
//===----------------------------------------------------------------------===//

#include "Simulator/WarpSimulator.h"
#include "AttentionCase.h"
#include "attn/Pipelines/Compile.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;

namespace {
class WarpSimulator : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    registerPassesAndPipelines();
    registerTransformsPasses();
  }

  WarpSimulator() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  /// To the Warp room: options of `attn-to-tile`, then passes.
  OwningOpRef<ModuleOp> build(const Case &test, StringRef tile,
                              StringRef passes);
  /// To the Warp room, as the compiler goes.
  OwningOpRef<ModuleOp> build(const Case &test, const PassRequest &request);
  /// Runs a kernel under the policies of the scheduler.
  void check(const Case &test, OwningOpRef<ModuleOp> module,
             uint64_t seeds = 4);

  MLIRContext context;
  // --gtest_random_seed gives other cases.
  std::mt19937 random{20u + GTEST_FLAG_GET(random_seed)};
  std::string description; // how the last kernel was built
};

Case hopperCase() {
  Case test;
  test.target = "sm_90a";
  test.blockQ = 128;
  test.blockK = 32;
  test.warps = 8;
  test.queries = 150;
  test.keys = 170;
  return test;
}
} // namespace

OwningOpRef<ModuleOp> WarpSimulator::build(const Case &test, StringRef tile,
                                           StringRef passes) {
  description = tile.str() + " " + passes.str();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(textOf(test), &context);
  if (!module)
    return nullptr;
  std::string pipeline = "attn-to-tile{target=" + test.target + " " +
                         tile.str() + "},func.func(cse,convert-tile-to-warp";
  if (!passes.empty())
    pipeline += "," + passes.str();
  pipeline += ",warp-assign-resources{shared-limit=232448},canonicalize,cse)";
  PassManager manager(&context);
  if (failed(parsePassPipeline(pipeline, manager)) ||
      failed(manager.run(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> WarpSimulator::build(const Case &test,
                                           const PassRequest &request) {
  description = "without " + llvm::join(request.disabled, ",") + " with " +
                llvm::join(request.enabled, ",");
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(textOf(test), &context);
  std::string text;
  CompileOptions options;
  options.target = test.target;
  options.passes = request;
  options.last = Room::Warp;
  options.firstShown = Room::Warp;
  options.onRoom = [&](Room, StringRef left) {
    text = left.str();
    return success();
  };
  if (!module || failed(attn::compile(*module, options)))
    return nullptr;
  return parseSourceString<ModuleOp>(text, &context);
}

void WarpSimulator::check(const Case &test, OwningOpRef<ModuleOp> module,
                          uint64_t seeds) {
  SCOPED_TRACE(textOf(test) + "batch " + std::to_string(test.batch) +
               " heads " + std::to_string(test.heads) + " queries " +
               std::to_string(test.queries) + " keys " +
               std::to_string(test.keys) + " " + description);
  ASSERT_TRUE(module);
  auto host = module->lookupSymbol<func::FuncOp>("f");
  CaseTensors tensors(test, random);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    tensors.reset();
    ASSERT_TRUE(
        succeeded(simulator::simulateWarps(host, tensors.arguments(), seed)));
    tensors.judge();
  }
}

TEST_F(WarpSimulator, Ampere) {
  Case test;
  test.variant = Variant::Causal;
  test.queries = 70;
  test.keys = 170;
  for (const char *tile : {"", "peel-masks=false lazy-max=false",
                           "lazy-max=false", "overlap-products=true"})
    for (const char *passes :
         {"", "warp-defer-sum", "warp-buffer{depth=1}",
          "warp-buffer{depth=2 schedule=own}",
          "warp-defer-sum,warp-buffer{depth=2 schedule=early}",
          "warp-buffer{depth=2 schedule=together}",
          "warp-buffer{depth=3 schedule=own}"})
      check(test, build(test, tile, passes));
}

TEST_F(WarpSimulator, Hopper) {
  Case test = hopperCase();
  test.variant = Variant::Causal;
  for (const char *tile : {"",
                           "overlap-products=false lazy-max=false "
                           "group-bounds=false reverse-keys=false",
                           "lazy-max=false", "peel-masks=false"})
    for (const char *passes :
         {"", "warp-make-async", "warp-buffer", "warp-buffer,warp-make-async",
          "warp-specialize", "warp-specialize,warp-make-async",
          "warp-defer-sum,warp-specialize{depth=3},warp-make-async,"
          "warp-insert-turns",
          "warp-defer-sum,warp-double-buffer,warp-specialize{depth=2},"
          "warp-make-async,warp-insert-turns"})
      check(test, build(test, tile, passes));
}

// The plans and passes that the compiler chooses.
TEST_F(WarpSimulator, Defaults) {
  for (const char *target : {"sm_80", "sm_90a"})
    for (int64_t dim : {8, 40, 64, 80, 96, 128, 192, 256}) {
      Case test;
      test.target = target;
      test.hasPlan = false;
      test.dim = test.valueDim = dim;
      test.variant = dim % 64 ? Variant::Window : Variant::Causal;
      test.queries = 140;
      test.keys = 300;
      check(test, build(test, PassRequest()), /*seeds=*/1);
    }
}

// Scores so far apart that some warps look for the maximum again.
TEST_F(WarpSimulator, LargeScores) {
  for (const char *target : {"sm_80", "sm_90a"})
    for (bool bf16 : {false, true})
      for (double magnitude : {8.0, 30.0}) {
        Case test = target == StringRef("sm_80") ? Case() : hopperCase();
        test.variant = Variant::Causal;
        test.bf16 = bf16;
        test.magnitude = magnitude;
        test.queries = 140;
        test.keys = 400;
        check(test, build(test, PassRequest()));
      }
}

// Any selection of the optional passes on any problem.
TEST_F(WarpSimulator, RandomSelections) {
  auto pick = [&](std::initializer_list<int64_t> choices) {
    return choices.begin()[random() % choices.size()];
  };
  int numRun = 0;
  for (int number = 0; number < 120; ++number) {
    bool isHopper = number % 2;
    Case test = isHopper ? hopperCase() : Case();
    test.group = pick({1, 2});
    test.heads = test.group;
    test.batch = pick({1, 2});
    test.queries = 1 + random() % 200;
    test.keys = 1 + random() % 300;
    test.dim = pick({40, 64, 80, 128});
    test.valueDim = pick({40, 64, 80, 128});
    test.variant = Variant(random() % 6);
    test.bf16 = random() % 2;
    test.magnitude = pick({1, 1, 8});
    test.rowsOutside = random() % 2;
    test.warps = isHopper ? pick({4, 8, 12}) : pick({1, 2, 4});
    test.blockQ = 16 * test.warps * (isHopper ? 1 : pick({1, 2}));
    test.blockK = isHopper ? pick({32, 64}) : pick({16, 32, 48, 64});
    test.stages = pick({1, 2, 3});
    test.queryInRegisters = !isHopper && random() % 2;
    PassRequest request;
    for (const std::string &name : listOptionalPasses(test.target)) {
      if (random() % 4 == 0)
        request.disabled.push_back(name);
      else if (random() % 2 == 0)
        request.enabled.push_back(name);
    }
    OwningOpRef<ModuleOp> module;
    std::string text;
    {
      ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
        text += diagnostic.str();
        return success();
      });
      module = build(test, request);
    }
    if (!module && StringRef(text).contains("plan is not feasible"))
      continue;
    ASSERT_TRUE(module) << text;
    ++numRun;
    check(test, std::move(module), /*seeds=*/2);
  }
  EXPECT_GE(numRun, 90);
}
