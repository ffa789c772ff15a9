//===- SimulatedKernelTest.cpp - sm_80 kernels on the simulator -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random attention programs go through the whole sm_80 pipeline up to gpu and
// nvvm operations and run on the simulator, which also checks races, waits and
// bounds. Numbers are compared with float64 under rule C20: the error may be
// twice that of the plain evaluation in the input type.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"
#include "Simulator/Simulator.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;

namespace {
class SimulatedKernel : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    registerPassesAndPipelines();
    registerTransformsPasses();
  }

  SimulatedKernel() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  void check(const Case &test);
  /// Runs a kernel that `damage` changed; the simulator must refuse it.
  void checkRefused(llvm::function_ref<void(ModuleOp)> damage,
                    StringRef message);

  OwningOpRef<ModuleOp> compile(const Case &test);

  MLIRContext context;
  std::mt19937 random{20};
};
} // namespace

OwningOpRef<ModuleOp> SimulatedKernel::compile(const Case &test) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(textOf(test), &context);
  if (!module)
    return nullptr;
  std::string pipeline =
      "attn-to-tile{target=sm_80},func.func(cse,convert-tile-to-warp";
  if (test.deferSum)
    pipeline += ",warp-defer-sum";
  if (!test.buffer.empty())
    pipeline += "," + test.buffer;
  pipeline += ",warp-assign-resources,canonicalize,cse),convert-warp-to-gpu,"
              "gpu.module(gpu-share-warp-number,gpu-hide-inductions,"
              "gpu-order-integers)";
  PassManager manager(&context);
  if (failed(parsePassPipeline(pipeline, manager)) ||
      failed(manager.run(*module)))
    return nullptr;
  return module;
}

void SimulatedKernel::check(const Case &test) {
  SCOPED_TRACE(textOf(test) + "batch " + std::to_string(test.batch) +
               " heads " + std::to_string(test.heads) + " queries " +
               std::to_string(test.queries) + " keys " +
               std::to_string(test.keys) + " " + test.buffer);
  OwningOpRef<ModuleOp> module = compile(test);
  ASSERT_TRUE(module);
  CaseTensors tensors(test, random);
  auto host = module->lookupSymbol<func::FuncOp>("f");
  ASSERT_TRUE(succeeded(simulator::simulate(host, tensors.arguments())));
  tensors.judge();
}

void SimulatedKernel::checkRefused(llvm::function_ref<void(ModuleOp)> damage,
                                   StringRef message) {
  Case test;
  test.queries = 64;
  test.keys = 128;
  OwningOpRef<ModuleOp> module = compile(test);
  ASSERT_TRUE(module);
  damage(*module);
  CaseTensors tensors(test, random);
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    text += diagnostic.str();
    return success();
  });
  auto host = module->lookupSymbol<func::FuncOp>("f");
  EXPECT_TRUE(failed(simulator::simulate(host, tensors.arguments())));
  EXPECT_NE(text.find(message.str()), std::string::npos) << text;
}

TEST_F(SimulatedKernel, SeesMissingBarrier) {
  checkRefused(
      [](ModuleOp module) {
        module.walk([](gpu::BarrierOp barrier) { barrier.erase(); });
      },
      "race: ");
}

TEST_F(SimulatedKernel, SeesMissingWait) {
  checkRefused(
      [](ModuleOp module) {
        module.walk([](NVVM::CpAsyncWaitGroupOp wait) { wait.setN(7); });
      },
      "while a copy to it is in flight");
}

TEST_F(SimulatedKernel, SeesReadsOutside) {
  checkRefused(
      [](ModuleOp module) {
        // Rows beyond the lengths are no longer left out.
        module.walk([](NVVM::CpAsyncOp copy) {
          OpBuilder builder(copy);
          Value far = LLVM::GEPOp::create(builder, copy.getLoc(),
                                          copy.getSrc().getType(),
                                          builder.getI8Type(), copy.getSrc(),
                                          ArrayRef<LLVM::GEPArg>{1 << 20});
          copy.getSrcMutable().assign(far);
        });
      },
      "touches global memory outside of the arguments");
}

TEST_F(SimulatedKernel, Plain) {
  Case test;
  test.queries = 64;
  test.keys = 64;
  check(test);
}

TEST_F(SimulatedKernel, EverySchedule) {
  for (const char *buffer :
       {"", "warp-buffer{depth=1}", "warp-buffer{depth=2 schedule=own}",
        "warp-buffer{depth=2 schedule=early}",
        "warp-buffer{depth=2 schedule=together}",
        "warp-buffer{depth=3 schedule=own}",
        "warp-buffer{depth=3 schedule=early}"})
    for (bool deferSum : {false, true})
      for (bool registers : {false, true}) {
        Case test;
        test.variant = Variant::Causal;
        test.queries = 70;
        test.keys = 170;
        test.buffer = buffer;
        test.deferSum = deferSum;
        test.queryInRegisters = registers;
        check(test);
      }
}

// Rows without a visible key, no keys at all, one key.
TEST_F(SimulatedKernel, FewKeys) {
  for (int64_t keys : {1, 3, 33}) {
    Case test;
    test.variant = Variant::Causal;
    test.queries = 67;
    test.keys = keys;
    check(test);
  }
}

TEST_F(SimulatedKernel, EveryHeadDimension) {
  for (int64_t dim = 8; dim <= 256; dim += dim < 96 ? 8 : 40) {
    Case test;
    test.dim = dim;
    test.valueDim = 264 - dim;
    test.queries = 5;
    test.keys = 40;
    check(test);
  }
}

TEST_F(SimulatedKernel, Random) {
  auto pick = [&](std::initializer_list<int64_t> choices) {
    return choices.begin()[random() % choices.size()];
  };
  for (int number = 0; number < 16; ++number) {
    Case test;
    test.group = pick({1, 2, 4});
    test.heads = test.group * pick({1, 2});
    test.batch = pick({1, 2});
    test.queries = 1 + random() % 150;
    test.keys = 1 + random() % 200;
    test.dim = pick({40, 64, 80, 128});
    test.valueDim = pick({40, 64, 80, 128});
    test.variant = Variant(random() % 6);
    test.bf16 = random() % 2;
    test.rowsOutside = random() % 2;
    test.warps = pick({1, 2, 4});
    test.blockQ = 16 * test.warps * pick({1, 2});
    test.blockK = pick({16, 32, 48, 64});
    test.stages = pick({1, 2, 3});
    test.queryInRegisters = random() % 2;
    check(test);
  }
}
