//===- GradientPropertyTest.cpp - gradients equal their definition --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a caller of a function of gradients passes, and the gradients of random
// programs: they must obey their error rule (C16 of attn.attention_backward),
// fill all outputs and write nothing else. Everything follows from the seed.
//
//===----------------------------------------------------------------------===//

#include "Inputs/RandomProgram.h"
#include "TestProcessor.h"
#include "attn/Check/ErrorTerms.h"
#include "attn/Check/SavedResults.h"
#include "attn/Execute/Session.h"
#include "attn/Pipelines/Gradients.h"
#include "attn/Pipelines/Signature.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace attn;

namespace {

constexpr unsigned seed = 31415;
constexpr int numParts = 4;
constexpr int runsPerProgram = 4;

/// Of each part; lit --param=programs=N asks for others.
int countPrograms() {
  const char *asked = std::getenv("ATTN_TEST_PROGRAMS");
  return asked && *asked ? std::atoi(asked) : 7;
}

/// The gradients of a program.
class Gradients {
public:
  Gradients(Session &session, const std::string &source, bool lseGradient) {
    auto parsed = session.parse(source);
    EXPECT_TRUE(parsed.ok()) << parsed.message() << source;
    if (!parsed.ok())
      return;
    module = std::move(*parsed);
    auto names = addGradients(*module, "", {lseGradient});
    EXPECT_TRUE(succeeded(names)) << session.log() << source;
    if (succeeded(names))
      name = names->backward;
  }

  bool isThere() const { return !name.empty(); }

  HostProgram compile(HostOptions::Kind kind, const std::string &plan = "") {
    HostOptions options = optionsOf(kind);
    options.plan = plan;
    auto program = HostProgram::compile(*module, name, options);
    return finish(std::move(program));
  }
  HostProgram compileForward() {
    return finish(attn::compileForward(
        *module, name, optionsOf(HostOptions::Kind::OracleF64)));
  }
  ScoredOp operation() {
    ScoredOp found;
    module->lookupSymbol(name)->walk([&](ScoredOp op) { found = op; });
    return found;
  }

private:
  static HostOptions optionsOf(HostOptions::Kind kind) {
    HostOptions options;
    options.kind = kind;
    options.optimization = 0;
    options.processor = testProcessor();
    return options;
  }
  static HostProgram finish(FailureOr<HostProgram> program) {
    if (succeeded(program))
      return std::move(*program);
    ADD_FAILURE() << "does not compile";
    std::exit(1);
  }

  OwningOpRef<ModuleOp> module;
  std::string name;
};

class GradientPropertyTest : public ::testing::TestWithParam<int> {
protected:
  Session session;
};
INSTANTIATE_TEST_SUITE_P(Parts, GradientPropertyTest,
                         ::testing::Range(0, numParts));

TEST(GradientSignature, SaysWhatArgumentsAre) {
  Session session;
  Gradients gradients(session, R"mlir(
!q = tensor<?x?x?x8xf16>
!v = tensor<?x?x?x16xf16>
!l = tensor<?x?x?xf32>
func.func @f(%q: !q, %k: !q, %v: !v, %s: tensor<?xf32>, %a: i32, %b: i32,
             %bias: tensor<?x?xf32> loc("bias"), %n: i32 loc("d_bias"))
    -> (!v, !l) {
  %o, %lse = attn.attention %q, %k, %v sink(%s) dropout(%a, %b)
      captures(%bias, %n) {dropout_p = 0.1 : f64}
    score(%x: f32, %ib: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>,
          %m: i32) {
      %u = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    : (!q, !q, !v, tensor<?xf32>, i32, i32, tensor<?x?xf32>, i32) -> (!v, !l)
  return %o, %lse : !v, !l
}
)mlir",
                      /*lseGradient=*/true);
  ASSERT_TRUE(gradients.isThere());
  HostProgram program = gradients.compile(HostOptions::Kind::OracleInput);
  const Artifact &manifest = program.manifest();
  std::string text;
  for (const ArgumentInfo &info : manifest.arguments) {
    text += info.isOutput ? " -> " : " ";
    text += info.name + ":";
    for (ArgumentRole role : info.roles)
      text += roleName(role);
  }
  EXPECT_EQ(text, " q:query k:key v:value sink:sink seed:seed offset:offset"
                  " bias:capture d_bias:capture o:output lse:lse d_o:d_output"
                  " d_lse:d_lse -> d_q:d_query -> d_k:d_key -> d_v:d_value"
                  " -> d_sink:d_sink -> d_c0:d_capture");

  OperandRequest request;
  request.shape = "b=1,h=4,hkv=2,sq=3,sk=5,bias=3x5";
  request.scalars = {{"seed", 1}, {"offset", 2}, {"d_bias", 3}};
  // One tensor has another shape.
  auto fault = [&](StringRef name, std::vector<int64_t> shape) {
    auto operands = makeOperands(manifest, request);
    EXPECT_TRUE(operands.ok()) << operands.message();
    for (auto [info, tensor] :
         llvm::zip_equal(manifest.arguments, operands->tensors))
      if (info.name == name)
        tensor.emplace(info.element, shape);
    return program.invoke(operands->arguments()).message();
  };
  EXPECT_EQ(fault("d_q", {1, 4, 3, 8}), "");
  EXPECT_EQ(fault("o", {1, 4, 2, 16}),
            "dimension 2 of 'o' must equal dimension 2 of 'q' (2 against 3)");
  EXPECT_EQ(fault("d_o", {1, 2, 3, 16}),
            "dimension 1 of 'd_o' must equal dimension 1 of 'q' (2 against 4)");
  EXPECT_EQ(fault("d_lse", {2, 4, 3}),
            "dimension 0 of 'd_lse' must equal dimension 0 of 'q' (2 against "
            "1)");
  EXPECT_EQ(fault("d_v", {1, 4, 5, 16}),
            "dimension 1 of 'd_v' must equal dimension 1 of 'k' (4 against 2)");
  EXPECT_EQ(fault("d_sink", {2}),
            "dimension 0 of 'd_sink' must equal dimension 1 of 'q' (2 against "
            "4)");
  EXPECT_EQ(fault("d_c0", {3, 4}),
            "dimension 1 of 'd_c0' must equal dimension 1 of 'bias' (4 against "
            "5)");
}

TEST_P(GradientPropertyTest, ObeyTheErrorRule) {
  Choice choice(seed + 1000 * GetParam());
  int numCases = 0;
  long numEmptyRows = 0;
  int numPrograms = countPrograms();
  for (int p = 0; p < numPrograms; ++p) {
    Program program(choice, {/*hasSinks=*/true, /*hasDropout=*/true,
                             /*hasBiasOfPairs=*/false});
    std::string source = program.source("");
    Gradients gradients(session, source, choice.chance(50));
    ASSERT_TRUE(gradients.isThere());
    HostProgram forward = gradients.compileForward();
    HostProgram float64 = gradients.compile(HostOptions::Kind::OracleF64);
    HostProgram unfused = gradients.compile(HostOptions::Kind::OracleInput);
    std::string plan = randomPlan(choice);
    HostProgram tested = gradients.compile(HostOptions::Kind::Tiled, plan);
    for (int r = 0; r < runsPerProgram; ++r) {
      OperandRequest request = program.request();
      SCOPED_TRACE(source + plan + ", program " + std::to_string(p) +
                   ", --shape=" + request.shape +
                   " --seed=" + std::to_string(request.seed));
      auto operands = makeOperands(tested.manifest(), request);
      ASSERT_TRUE(operands.ok()) << operands.message();
      runtime::Status status =
          fillSavedResults(forward, tested.manifest(), request, *operands);
      ASSERT_TRUE(status.ok()) << status.message();
      status = tested.invoke(operands->arguments());
      ASSERT_TRUE(status.ok()) << status.message();
      auto expected = runOnHost(float64, *operands);
      ASSERT_TRUE(expected.ok()) << expected.message();
      auto reference = runOnHost(unfused, *operands);
      ASSERT_TRUE(reference.ok()) << reference.message();
      ErrorReport report = checkErrorRule(
          readResult(tested.manifest(), *operands), *expected, *reference,
          findErrorTerms(gradients.operation(), tested.manifest(), *operands));
      EXPECT_TRUE(report.passes()) << report.failure;
      EXPECT_GE(report.gradients.size(), 3u);
      for (const auto &tensor : operands->tensors)
        if (tensor)
          EXPECT_TRUE(tensor->isPaddingIntact());
      numEmptyRows += report.emptyRows;
      ++numCases;
      if (HasFailure())
        return;
    }
  }
  std::printf("%d cases, %d programs, %ld rows without a key\n", numCases,
              numPrograms, numEmptyRows);
}

// (C16) All keys of most queries fall into one entry of the table, where what
// is left is what the rounding of output does. Mistakes are seen all the same.
TEST(CaptureGradient, IsJudgedFromTheSavedOutput) {
  Session session;
  Gradients gradients(session, R"mlir(
!q = tensor<2x1x192x48xf16>
!k = tensor<2x1x3x48xf16>
!t = tensor<1x65xf32>
func.func @f(%q: !q, %k: !k, %v: !k, %sink: tensor<1xf32>, %table: !t)
    -> (!q, tensor<2x1x192xf32>) {
  %o, %lse = attn.attention %q, %k, %v sink(%sink) captures(%table)
      {scale = 0.3}
    score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: !t) {
      %low = arith.constant -32 : i32
      %high = arith.constant 32 : i32
      %d = arith.subi %j, %i : i32
      %a = arith.maxsi %d, %low : i32
      %c = arith.minsi %a, %high : i32
      %n = arith.addi %c, %high : i32
      %u = attn.capture_load %t[%h, %n] : !t
      %y = arith.addf %x, %u : f32
      attn.yield %y : f32
    }
    : (!q, !k, !k, tensor<1xf32>, !t) -> (!q, tensor<2x1x192xf32>)
  return %o, %lse : !q, tensor<2x1x192xf32>
}
)mlir",
                      /*lseGradient=*/false);
  ASSERT_TRUE(gradients.isThere());
  using Kind = HostOptions::Kind;
  HostProgram forward = gradients.compileForward();
  HostProgram wide = gradients.compile(Kind::OracleF64);
  HostProgram unfused = gradients.compile(Kind::OracleInput);
  HostProgram saved = gradients.compile(Kind::OracleSaved);
  HostProgram tiled = gradients.compile(Kind::Tiled);
  int numFromSaved = 0, numFound = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    OperandRequest request;
    request.seed = seed;
    auto operands = makeOperands(tiled.manifest(), request);
    ASSERT_TRUE(operands.ok()) << operands.message();
    ASSERT_TRUE(
        fillSavedResults(forward, tiled.manifest(), request, *operands).ok());
    ASSERT_TRUE(tiled.invoke(operands->arguments()).ok());
    auto r = runOnHost(wide, *operands), g0 = runOnHost(unfused, *operands),
         s = runOnHost(saved, *operands);
    ASSERT_TRUE(r.ok() && g0.ok() && s.ok());
    ErrorTerms terms =
        findErrorTerms(gradients.operation(), tiled.manifest(), *operands);
    auto judge = [&](const RunResult &result) {
      return checkErrorRule(result, *r, *g0, terms, &*s);
    };
    RunResult result = readResult(tiled.manifest(), *operands);
    ErrorReport report = judge(result);
    EXPECT_TRUE(report.passes()) << report.failure;
    numFromSaved += report.gradients.back().isFromSaved;
    // What is clearly wrong without the saved output is wrong with it.
    auto judgeMistake = [&](const RunResult &result) {
      ErrorReport strict = checkErrorRule(result, *r, *g0, terms);
      const GradientReport &found = strict.gradients.back();
      bool passes = judge(result).passes();
      EXPECT_FALSE(passes && found.error > 2 * found.bound) << seed;
      numFound += !passes;
    };
    // A factor.
    for (double &value : result.gradients.back().values)
      value *= 1.01;
    judgeMistake(result);
    // A block of 16 queries is left out.
    for (auto [info, tensor] :
         llvm::zip_equal(tiled.manifest().arguments, operands->tensors)) {
      if (!info.is(ArgumentRole::OutputGradient))
        continue;
      std::vector<double> values = tensor->values();
      std::fill_n(values.begin() + 64 * 48, 16 * 48, 0);
      tensor->assign(values);
    }
    auto without = runOnHost(saved, *operands);
    ASSERT_TRUE(without.ok());
    result.gradients.back() = without->gradients.back();
    judgeMistake(result);
  }
  EXPECT_GE(numFound, 30); // of 40
  EXPECT_GT(numFromSaved, 0);
}

} // namespace
