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
// bounds. Numbers are compared with float64 under rule N9: the error may be
// twice that of the plain evaluation in the input type.
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Pipelines.h"
#include "attn/Simulator/Simulator.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace attn;

namespace {
enum class Variant { Plain, Causal, Window, Softcap, Alibi, Bias };

struct Case {
  int64_t batch = 1, heads = 1, group = 1, queries = 1, keys = 1;
  int64_t dim = 64, valueDim = 64;
  Variant variant = Variant::Plain;
  bool bf16 = true;
  bool rowsOutside = false; // [batch, length, heads, dim] in memory
  int64_t blockQ = 64, blockK = 32, warps = 4, stages = 2;
  bool queryInRegisters = false;
  std::string buffer = "warp-buffer";
  bool deferSum = true;
};

/// A tensor of 16-bit floats [batch, heads, length, dim].
struct Tensor {
  int64_t sizes[4], strides[4];
  std::vector<uint16_t> data;
  const llvm::fltSemantics *semantics;

  double at(int64_t b, int64_t h, int64_t i, int64_t c) const {
    APFloat value(
        *semantics,
        APInt(16, data[b * strides[0] + h * strides[1] + i * strides[2] + c]));
    bool lossy;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return value.convertToDouble();
  }

  simulator::Argument argument() {
    return {data.data(), SmallVector<int64_t>(sizes, sizes + 4),
            SmallVector<int64_t>(strides, strides + 4), 0};
  }
};

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

  Tensor makeTensor(const Case &test, int64_t heads, int64_t length,
                    int64_t dim, bool isOutput);
  OwningOpRef<ModuleOp> compile(const Case &test);

  MLIRContext context;
  std::mt19937 random{20};
};
} // namespace

static const llvm::fltSemantics &semanticsOf(const Case &test) {
  return test.bf16 ? APFloat::BFloat() : APFloat::IEEEhalf();
}

static uint16_t round16(const llvm::fltSemantics &semantics, double number) {
  APFloat value(number);
  bool lossy;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &lossy);
  return value.bitcastToAPInt().getZExtValue();
}

/// Through the input type and back.
static double rounded(const Case &test, double number) {
  APFloat value(number);
  bool lossy;
  value.convert(semanticsOf(test), APFloat::rmNearestTiesToEven, &lossy);
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return value.convertToDouble();
}

Tensor SimulatedKernel::makeTensor(const Case &test, int64_t heads,
                                   int64_t length, int64_t dim, bool isOutput) {
  Tensor tensor = {{test.batch, heads, length, dim},
                   {heads * length * dim, length * dim, dim, 1},
                   {},
                   &semanticsOf(test)};
  if (test.rowsOutside) {
    tensor.strides[1] = dim;
    tensor.strides[2] = heads * dim;
  }
  std::normal_distribution<double> normal;
  tensor.data.resize(test.batch * heads * length * dim);
  for (uint16_t &element : tensor.data)
    // Outputs are poisoned with NaN.
    element = isOutput ? 0x7fff : round16(*tensor.semantics, normal(random));
  return tensor;
}

static std::string textOf(const Case &test) {
  std::string t = test.bf16 ? "bf16" : "f16";
  auto number = [](int64_t n) { return std::to_string(n); };
  std::string q = "tensor<?x?x?x" + number(test.dim) + "x" + t + ">";
  std::string v = "tensor<?x?x?x" + number(test.valueDim) + "x" + t + ">";
  std::string variants;
  if (test.variant == Variant::Causal)
    variants = "#attn.causal";
  if (test.variant == Variant::Window)
    variants = "#attn.window<left = 20, right = 3>";
  if (test.variant == Variant::Softcap)
    variants = "#attn.softcap<2.0 : f32>";
  if (test.variant == Variant::Alibi)
    variants = "#attn.causal, #attn.alibi";
  bool bias = test.variant == Variant::Bias;
  std::string extra = bias ? ", %bias: tensor<?x?xf32>" : "";
  std::string extraType = bias ? ", tensor<?x?xf32>" : "";
  std::string region = !bias ? "" : R"(
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
      %e = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
      %y = arith.addf %x, %e : f32
      attn.yield %y : f32
    })";
  return "func.func @f(%q: " + q + ", %k: " + q + ", %v: " + v + extra +
         ") -> (" + v + ", tensor<?x?x?xf32>) {\n  %o, %lse = attn.attention " +
         "%q, %k, %v" + (bias ? " captures(%bias)" : "") + " {" +
         (variants.empty() ? "" : "variants = [" + variants + "], ") +
         "plan = #attn.plan<target = sm_80, block_q = " + number(test.blockQ) +
         ", block_k = " + number(test.blockK) +
         ", warps = " + number(test.warps) +
         ", stages = " + number(test.stages) +
         ", q_in_registers = " + (test.queryInRegisters ? "true" : "false") +
         ">}" + region + " : (" + q + ", " + q + ", " + v + extraType +
         ") -> (" + v + ", tensor<?x?x?xf32>)\n  return %o, %lse : " + v +
         ", tensor<?x?x?xf32>\n}\n";
}

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
  pipeline += ",warp-assign-resources,canonicalize,cse),convert-warp-to-gpu";
  PassManager manager(&context);
  if (failed(parsePassPipeline(pipeline, manager)) ||
      failed(manager.run(*module)))
    return nullptr;
  return module;
}

/// The score after the region, or -inf where the mask hides it.
static double scoreOf(const Case &test, const std::vector<float> &bias,
                      double x, int64_t h, int64_t i, int64_t j) {
  int64_t diagonal = i + test.keys - test.queries;
  bool visible = true;
  if (test.variant == Variant::Causal || test.variant == Variant::Alibi)
    visible = j <= diagonal;
  if (test.variant == Variant::Window)
    visible = j >= diagonal - 20 && j <= diagonal + 3;
  if (!visible)
    return -INFINITY;
  if (test.variant == Variant::Softcap)
    return 2 * std::tanh(x / 2);
  if (test.variant == Variant::Alibi)
    return x - std::exp2(-8.0 * (h + 1) / test.heads) * std::abs(diagonal - j);
  if (test.variant == Variant::Bias)
    return x + bias[i * test.keys + j];
  return x;
}

void SimulatedKernel::check(const Case &test) {
  SCOPED_TRACE(textOf(test) + "batch " + std::to_string(test.batch) +
               " heads " + std::to_string(test.heads) + " queries " +
               std::to_string(test.queries) + " keys " +
               std::to_string(test.keys) + " " + test.buffer);
  OwningOpRef<ModuleOp> module = compile(test);
  ASSERT_TRUE(module);
  int64_t keyHeads = test.heads / test.group;
  Tensor q = makeTensor(test, test.heads, test.queries, test.dim, false);
  Tensor k = makeTensor(test, keyHeads, test.keys, test.dim, false);
  Tensor v = makeTensor(test, keyHeads, test.keys, test.valueDim, false);
  Tensor o = makeTensor(test, test.heads, test.queries, test.valueDim, true);
  std::vector<float> lse(test.batch * test.heads * test.queries, NAN);
  std::vector<float> bias(test.queries * test.keys);
  std::normal_distribution<float> normal;
  for (float &element : bias)
    element = normal(random);

  SmallVector<simulator::Argument> arguments = {q.argument(), k.argument(),
                                                v.argument()};
  if (test.variant == Variant::Bias)
    arguments.push_back(
        {bias.data(), {test.queries, test.keys}, {test.keys, 1}, 0});
  arguments.push_back(o.argument());
  arguments.push_back({lse.data(),
                       {test.batch, test.heads, test.queries},
                       {test.heads * test.queries, test.queries, 1},
                       0});
  auto host = module->lookupSymbol<func::FuncOp>("f");
  ASSERT_TRUE(succeeded(simulator::simulate(host, arguments)));

  double worst = 0, allowed = 0, worstLse = 0;
  double scale = 1 / std::sqrt(double(test.dim));
  for (int64_t b = 0; b < test.batch; ++b)
    for (int64_t h = 0; h < test.heads; ++h)
      for (int64_t i = 0; i < test.queries; ++i) {
        int64_t kh = h / test.group;
        // In float64, and as t0: scores rounded to the input type, f32
        // softmax, probabilities rounded.
        std::vector<double> x(test.keys), plain(test.keys);
        double max = -INFINITY, plainMax = -INFINITY;
        for (int64_t j = 0; j < test.keys; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < test.dim; ++c)
            dot += q.at(b, h, i, c) * k.at(b, kh, j, c);
          x[j] = scoreOf(test, bias, dot * scale, h, i, j);
          plain[j] = scoreOf(test, bias, rounded(test, dot * scale), h, i, j);
          if (std::isfinite(plain[j]))
            plain[j] = rounded(test, plain[j]);
          max = std::max(max, x[j]);
          plainMax = std::max(plainMax, plain[j]);
        }
        double sum = 0, plainSum = 0;
        for (int64_t j = 0; j < test.keys && std::isfinite(max); ++j) {
          sum += x[j] = std::exp(x[j] - max);
          plainSum += plain[j] = std::exp(plain[j] - plainMax);
        }
        float gotLse = lse[(b * test.heads + h) * test.queries + i];
        if (sum == 0)
          EXPECT_EQ(gotLse, -INFINITY);
        else
          worstLse = std::max(worstLse,
                              std::abs(max + std::log(sum) - double(gotLse)));
        for (int64_t c = 0; c < test.valueDim; ++c) {
          double expected = 0, unfused = 0;
          for (int64_t j = 0; j < test.keys && sum != 0; ++j) {
            double value = v.at(b, kh, j, c);
            expected += x[j] / sum * value;
            unfused += rounded(test, plain[j] / plainSum) * value;
          }
          double got = o.at(b, h, i, c);
          ASSERT_FALSE(std::isnan(got)) << "row " << i << " column " << c;
          worst = std::max(worst, std::abs(got - expected));
          allowed =
              std::max(allowed, std::abs(rounded(test, unfused) - expected));
        }
      }
  EXPECT_LE(worst, 2 * allowed + 1e-5);
  EXPECT_LE(worstLse, 1e-4);
}

void SimulatedKernel::checkRefused(llvm::function_ref<void(ModuleOp)> damage,
                                   StringRef message) {
  Case test;
  test.queries = 64;
  test.keys = 128;
  OwningOpRef<ModuleOp> module = compile(test);
  ASSERT_TRUE(module);
  damage(*module);
  Tensor q = makeTensor(test, 1, test.queries, test.dim, false);
  Tensor k = makeTensor(test, 1, test.keys, test.dim, false);
  Tensor v = makeTensor(test, 1, test.keys, test.valueDim, false);
  Tensor o = makeTensor(test, 1, test.queries, test.valueDim, true);
  std::vector<float> lse(test.queries);
  simulator::Argument lseArgument = {
      lse.data(), {1, 1, test.queries}, {test.queries, test.queries, 1}, 0};
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    text += diagnostic.str();
    return success();
  });
  auto host = module->lookupSymbol<func::FuncOp>("f");
  EXPECT_TRUE(failed(
      simulator::simulate(host, {q.argument(), k.argument(), v.argument(),
                                 o.argument(), lseArgument})));
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
