//===- WarpSimulatorTest.cpp - warp kernels under many schedules -*- C++
//-*-===//
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

#include "attn/Simulator/WarpSimulator.h"
#include "AttentionCase.h"
#include "attn/Pipelines/GPU.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
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
  OwningOpRef<ModuleOp> compile(const Case &test, StringRef tile,
                                StringRef passes);
  /// Under all policies of the scheduler.
  void check(const Case &test, StringRef tile, StringRef passes,
             uint64_t seeds = 4);

  MLIRContext context;
  std::mt19937 random{20};
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

OwningOpRef<ModuleOp> WarpSimulator::compile(const Case &test, StringRef tile,
                                             StringRef passes) {
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

void WarpSimulator::check(const Case &test, StringRef tile, StringRef passes,
                          uint64_t seeds) {
  SCOPED_TRACE(textOf(test) + "queries " + std::to_string(test.queries) +
               " keys " + std::to_string(test.keys) + " " + tile.str() + " " +
               passes.str());
  OwningOpRef<ModuleOp> module = compile(test, tile, passes);
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
  for (const char *tile :
       {"", "peel-masks=false", "lazy-max=true", "rotate=true"})
    for (const char *passes :
         {"", "warp-defer-sum", "warp-buffer{depth=1}",
          "warp-buffer{depth=2 schedule=own}",
          "warp-defer-sum,warp-buffer{depth=2 schedule=early}",
          "warp-buffer{depth=2 schedule=together}",
          "warp-buffer{depth=3 schedule=own}"})
      check(test, tile, passes);
}

TEST_F(WarpSimulator, Hopper) {
  Case test = hopperCase();
  test.variant = Variant::Causal;
  for (const char *tile :
       {"", "rotate=true", "lazy-max=true", "rotate=true peel-masks=false"})
    for (const char *passes :
         {"", "warp-make-async", "warp-buffer", "warp-buffer,warp-make-async",
          "warp-specialize", "warp-specialize,warp-make-async",
          "warp-defer-sum,warp-specialize{depth=3},warp-make-async,"
          "warp-insert-turns"})
      check(test, tile, passes);
}
