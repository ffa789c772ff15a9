//===- TilePropertyTest.cpp - tiled programs equal the oracle -------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random programs (types, shapes, variants, regions), random legal plans and
// sets of tile passes, random lengths and layouts: the tiled program must obey
// the error rule (C20) and the rule of empty rows (C17) against the float64
// definition, write all of its outputs and nothing else, and not care about
// what stands beside its inputs (C18). Everything follows from the seed.
//
//===----------------------------------------------------------------------===//

#include "Inputs/RandomProgram.h"
#include "TestProcessor.h"
#include "attn/Check/ErrorRule.h"
#include "attn/Execute/HostProgram.h"
#include "attn/Execute/Operands.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace attn;

namespace {

constexpr unsigned seed = 20260;
/// Every part draws programs of its own; lit runs parts side by side.
constexpr int numParts = 4;
constexpr int programsPerPart = 12;
constexpr int plansPerProgram = 3;
constexpr int runsPerPlan = 4;

class TilePropertyTest : public ::testing::Test {
protected:
  TilePropertyTest() : context(registry()) {
    context.loadAllAvailableDialects();
  }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  HostProgram compile(const std::string &source, HostOptions options) {
    options.processor = testProcessor();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    if (module)
      if (auto program = HostProgram::compile(*module, "", options);
          mlir::succeeded(program))
        return std::move(*program);
    ADD_FAILURE() << "does not compile:\n" << source;
    std::exit(1);
  }

  /// One case: the tiled program against the two definitions.
  void check(const HostProgram &tiled, const HostProgram &float64,
             const HostProgram &unfused, const OperandRequest &request) {
    auto operands = makeOperands(tiled.manifest(), request);
    ASSERT_TRUE(operands.ok()) << operands.message();
    runtime::Status status = tiled.invoke(operands->arguments());
    ASSERT_TRUE(status.ok()) << status.message();
    auto expected = runOnHost(float64, *operands);
    ASSERT_TRUE(expected.ok()) << expected.message();
    auto reference = runOnHost(unfused, *operands);
    ASSERT_TRUE(reference.ok()) << reference.message();
    RunResult result = readResult(tiled.manifest(), *operands);
    ErrorTerms terms;
    terms.element = operands->tensors.front()->element();
    terms.isSplit = terms.element == ElementKind::F32;
    for (double value : operands->tensors[2]->values())
      terms.largestValue = std::max(terms.largestValue, std::fabs(value));
    ErrorReport report = checkErrorRule(result, *expected, *reference, terms);
    EXPECT_TRUE(report.passes()) << report.failure;
    for (const auto &tensor : operands->tensors)
      if (tensor)
        EXPECT_TRUE(tensor->isPaddingIntact());
    numEmptyRows += report.emptyRows;
    ++numCases;
  }

  mlir::MLIRContext context;
  int numCases = 0;
  long numEmptyRows = 0;
};

class TilePropertyPart : public TilePropertyTest,
                         public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Parts, TilePropertyPart,
                         ::testing::Range(0, numParts));

TEST_P(TilePropertyPart, EqualsTheOracle) {
  Choice choice(seed + 1000 * GetParam());
  // What the processor adds are instructions; a third of the programs have
  // all of them.
  int numPrograms =
      testProcessor() == "native" ? programsPerPart : programsPerPart / 3;
  for (int p = 0; p < numPrograms; ++p) {
    Program program(choice);
    HostOptions options;
    // Optimizing is slow; the two levels differ in what fuses to an fma.
    bool isFirst = p == 0;
    options.optimization = isFirst && GetParam() == 0 ? 2 : 0;
    options.kind = HostOptions::Kind::OracleF64;
    HostProgram float64 = compile(program.source(""), options);
    options.kind = HostOptions::Kind::OracleInput;
    HostProgram unfused = compile(program.source(""), options);
    options.kind = HostOptions::Kind::Tiled;
    options.optimization = isFirst ? 2 : 0;
    for (int i = 0; i < plansPerProgram; ++i) {
      std::string source = program.source(randomPlan(choice));
      options.passes = {};
      options.passes.add("tile-order-blocks", choice.chance(50));
      options.passes.add("tile-peel-masks", choice.chance(60));
      options.passes.add("tile-fold-exp2", choice.chance(60));
      HostProgram tiled = compile(source, options);
      for (int r = 0; r < runsPerPlan; ++r) {
        OperandRequest request = program.request();
        SCOPED_TRACE(source + "program " + std::to_string(p) + ", --shape=" +
                     request.shape + " --seed=" + std::to_string(request.seed) +
                     (request.order.empty() ? "" : " --layout=bshd") +
                     ", without " + llvm::join(options.passes.disabled, ","));
        check(tiled, float64, unfused, request);
        if (HasFailure())
          return;
      }
    }
  }
  EXPECT_EQ(numCases, numPrograms * plansPerProgram * runsPerPlan);
  RecordProperty("cases", numCases);
  std::printf("%d cases, %d programs, %ld rows without a key\n", numCases,
              numPrograms * plansPerProgram, numEmptyRows);
}

const char *plainProgram = R"mlir(
!t = tensor<?x?x?x16xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {
    variants = [#attn.causal], scale = 1.0 : f64,
    plan = #attn.plan<target = cpu, block_q = 6, block_k = 10>
  } : (!t, !t, !t) -> (!t, tensor<?x?x?xf32>)
  return %o, %lse : !t, tensor<?x?x?xf32>
}
)mlir";

/// +inf and NaN of visible scores propagate as IEEE arithmetic says (C23).
TEST_F(TilePropertyTest, SpecialValuesPropagate) {
  Choice choice(seed + 1);
  HostOptions options;
  options.kind = HostOptions::Kind::OracleF64;
  HostProgram float64 = compile(plainProgram, options);
  options.kind = HostOptions::Kind::Tiled;
  for (bool foldExp2 : {false, true}) {
    options.passes = {};
    options.passes.add("tile-fold-exp2", foldExp2);
    HostProgram tiled = compile(plainProgram, options);
    for (int r = 0; r < 20; ++r) {
      OperandRequest request;
      request.shape = "b=1,h=2,sq=33,sk=47";
      request.seed = r;
      auto operands = makeOperands(tiled.manifest(), request);
      ASSERT_TRUE(operands.ok()) << operands.message();
      for (int argument : {0, 1})
        operands->tensors[argument]->assign([&] {
          return choice.chance(1) ? choice.of<double>({INFINITY, NAN})
                                  : choice.between(1, 8) / 8.0;
        });
      ASSERT_TRUE(tiled.invoke(operands->arguments()).ok());
      auto expected = runOnHost(float64, *operands);
      ASSERT_TRUE(expected.ok()) << expected.message();
      // The bound is absolute: only where the special values are matters.
      RunResult result = readResult(tiled.manifest(), *operands);
      for (size_t i = 0; i < expected->o.size(); ++i) {
        EXPECT_EQ(std::isnan(result.o[i]), std::isnan(expected->o[i])) << i;
        if (!std::isnan(expected->o[i]))
          EXPECT_NEAR(result.o[i], expected->o[i], 1e-2) << i;
      }
      for (size_t i = 0; i < expected->lse.size(); ++i)
        if (!(std::isnan(result.lse[i]) && std::isnan(expected->lse[i])) &&
            result.lse[i] != expected->lse[i])
          EXPECT_NEAR(result.lse[i], expected->lse[i], 1e-4) << i;
      if (HasFailure())
        return;
    }
  }
}

/// Scores live in f32: those of f16 operands may exceed 65504 (C24).
TEST_F(TilePropertyTest, ScoresMayExceedF16) {
  Choice choice(seed + 2);
  HostOptions options;
  options.kind = HostOptions::Kind::OracleF64;
  HostProgram float64 = compile(plainProgram, options);
  options.kind = HostOptions::Kind::Tiled;
  HostProgram tiled = compile(plainProgram, options);
  OperandRequest request;
  request.shape = "b=1,h=2,sq=33,sk=47";
  auto operands = makeOperands(tiled.manifest(), request);
  ASSERT_TRUE(operands.ok()) << operands.message();
  for (int argument : {0, 1})
    operands->tensors[argument]->assign(
        [&] { return choice.between(-400, 400); });
  ASSERT_TRUE(tiled.invoke(operands->arguments()).ok());
  auto expected = runOnHost(float64, *operands);
  ASSERT_TRUE(expected.ok()) << expected.message();
  RunResult result = readResult(tiled.manifest(), *operands);
  double largest = 0;
  for (size_t i = 0; i < expected->lse.size(); ++i) {
    largest = std::max(largest, expected->lse[i]);
    // Two units in the last place of f32.
    EXPECT_NEAR(result.lse[i], expected->lse[i], 0.125) << i;
  }
  EXPECT_GT(largest, 65504);
  for (size_t i = 0; i < expected->o.size(); ++i)
    EXPECT_NEAR(result.o[i], expected->o[i], 1e-2) << i;
}

} // namespace
