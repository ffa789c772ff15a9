//===- HostProgramTest.cpp - compiled functions against plain C++ ---------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/HostProgram.h"

#include "TestProcessor.h"
#include "attn/Execute/HostTensor.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace attn;

namespace {

const char *causal = R"mlir(
!t = tensor<?x?x?x24xbf16>
func.func @causal(%q: !t, %k: !t, %v: !t) -> (!t, tensor<?x?x?xf32>) {
  %o, %lse = attn.attention %q, %k, %v {
    variants = [#attn.causal], scale = 0.25 : f64,
    plan = #attn.plan<target = cpu, block_q = 7, block_k = 5>
  } : (!t, !t, !t) -> (!t, tensor<?x?x?xf32>)
  return %o, %lse : !t, tensor<?x?x?xf32>
}
)mlir";

class HostProgramTest : public ::testing::Test {
protected:
  HostProgramTest() : context(registry()) {
    context.loadAllAvailableDialects();
  }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  mlir::FailureOr<HostProgram> compile(const char *source,
                                       HostOptions options = {}) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    if (!module)
      return mlir::failure();
    options.processor = testProcessor();
    return HostProgram::compile(*module, "", options);
  }

  mlir::MLIRContext context;
};

/// Arguments of @causal: poisoned outputs, NaN around every row.
struct Problem {
  Problem(int64_t batch, int64_t heads, int64_t keyHeads, int64_t queries,
          int64_t keys, std::vector<int64_t> order)
      : q(ElementKind::BF16, {batch, heads, queries, 24}, order, 3),
        k(ElementKind::BF16, {batch, keyHeads, keys, 24}, order, 3),
        v(ElementKind::BF16, {batch, keyHeads, keys, 24}, order, 3),
        o(ElementKind::BF16, {batch, heads, queries, 24}, order, 3),
        lse(ElementKind::F32, {batch, heads, queries}) {
    unsigned state = 1;
    auto next = [&] {
      state = state * 1664525u + 1013904223u;
      return (state >> 8) / double(1 << 23) - 1;
    };
    for (HostTensor *tensor : {&q, &k, &v})
      tensor->assign(next);
  }
  runtime::Arguments arguments() {
    return {q.argument(), k.argument(), v.argument(), o.argument(),
            lse.argument()};
  }
  HostTensor q, k, v, o, lse;
};

/// The definition, in double.
void compare(const Problem &problem) {
  std::vector<double> q = problem.q.values(), k = problem.k.values(),
                      v = problem.v.values(), o = problem.o.values(),
                      lse = problem.lse.values();
  int64_t heads = problem.q.sizes()[1], keyHeads = problem.k.sizes()[1],
          queries = problem.q.sizes()[2], keys = problem.k.sizes()[2];
  for (int64_t row = 0; row < problem.lse.numElements(); ++row) {
    int64_t i = row % queries, h = row / queries % heads,
            b = row / queries / heads;
    int64_t keyRow = (b * keyHeads + h / (heads / keyHeads)) * keys;
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = 0; j < keys && j <= i + keys - queries; ++j) {
      double score = 0;
      for (int64_t d = 0; d < 24; ++d)
        score += q[row * 24 + d] * k[(keyRow + j) * 24 + d];
      weights.push_back(std::exp(0.25 * score));
      sum += weights.back();
    }
    if (weights.empty())
      EXPECT_EQ(lse[row], -INFINITY);
    else
      EXPECT_NEAR(lse[row], std::log(sum), 1e-4);
    for (int64_t d = 0; d < 24; ++d) {
      double expected = 0;
      for (size_t j = 0; j < weights.size(); ++j)
        expected += weights[j] / sum * v[(keyRow + j) * 24 + d];
      EXPECT_NEAR(o[row * 24 + d], expected, 8e-3) << "row " << row;
    }
  }
}

TEST_F(HostProgramTest, AgreesWithTheDefinition) {
  auto program = compile(causal);
  ASSERT_TRUE(mlir::succeeded(program));
  EXPECT_EQ(program->manifest().name, "causal");
  EXPECT_EQ(program->manifest().target, "cpu");
  EXPECT_NE(program->manifest().variants[0].plan.find("block_q = 7"),
            std::string::npos);
  int64_t lengths[][2] = {{1, 1}, {7, 5}, {8, 6}, {13, 29}, {29, 13}, {3, 0}};
  for (auto [queries, keys] : lengths)
    for (std::vector<int64_t> order :
         {std::vector<int64_t>{0, 1, 2, 3}, std::vector<int64_t>{0, 2, 1, 3}}) {
      Problem problem(2, 4, 2, queries, keys, order);
      runtime::Status status = program->invoke(problem.arguments());
      ASSERT_TRUE(status.ok()) << status.message();
      compare(problem);
      EXPECT_TRUE(problem.o.isPaddingIntact());
    }
}

TEST_F(HostProgramTest, SameBitsEveryTime) {
  auto program = compile(causal);
  ASSERT_TRUE(mlir::succeeded(program));
  Problem first(1, 2, 1, 33, 47, {}), second(1, 2, 1, 33, 47, {});
  ASSERT_TRUE(program->invoke(first.arguments()).ok());
  ASSERT_TRUE(program->invoke(second.arguments()).ok());
  EXPECT_EQ(first.o.bits(), second.o.bits());
  EXPECT_EQ(first.lse.bits(), second.lse.bits());
}

TEST_F(HostProgramTest, WrongArgumentsAreErrors) {
  auto program = compile(causal);
  ASSERT_TRUE(mlir::succeeded(program));
  Problem problem(1, 2, 1, 4, 4, {});
  runtime::Arguments arguments = problem.arguments();
  arguments.pop_back();
  EXPECT_FALSE(program->invoke(arguments).ok());
  HostTensor longer(ElementKind::BF16, {1, 1, 5, 24});
  arguments = problem.arguments();
  arguments[2] = longer.argument();
  runtime::Status status = program->invoke(arguments);
  EXPECT_NE(status.message().find("dimension 2 of 'v' must equal dimension 2 "
                                  "of 'k'"),
            std::string::npos)
      << status.message();
  Problem odd(1, 3, 2, 4, 4, {});
  EXPECT_NE(program->invoke(odd.arguments()).message().find("multiple"),
            std::string::npos);
}

TEST_F(HostProgramTest, BatchesOfNothing) {
  auto program = compile(causal);
  ASSERT_TRUE(mlir::succeeded(program));
  int64_t sizes[4] = {int64_t(1) << 30, int64_t(1) << 30, 0, 24};
  int64_t strides[4] = {24, 24, 24, 1};
  runtime::Argument nothing =
      runtime::Argument::tensor(nullptr, 4, sizes, strides);
  auto message = [&] {
    runtime::Argument lse =
        runtime::Argument::tensor(nullptr, 3, sizes, strides);
    return program->invoke({nothing, nothing, nothing, nothing, lse}).message();
  };
  EXPECT_EQ(message(), ""); // and no time
  sizes[0] = int64_t(1) << 40;
  EXPECT_EQ(message(), "dimension 0 of 'q' is more than positions count "
                       "(1099511627776 against 1073741824)");
  sizes[0] = 0;
  sizes[1] += 1;
  EXPECT_EQ(message(), "dimension 1 of 'q' is more than positions count "
                       "(1073741825 against 1073741824)");
  sizes[1] = 1;
  sizes[2] = sizes[1] << 31;
  EXPECT_EQ(message(), "dimension 2 of 'q' is more than positions count "
                       "(2147483648 against 1073741824)");
}

// One key for all, but its elements lie across: a copy of all of them.
TEST_F(HostProgramTest, CopiesBeyondTheMemoryAreErrors) {
  auto program = compile(causal);
  ASSERT_TRUE(mlir::succeeded(program));
  constexpr int64_t heads = 256;
  Problem problem(1, heads, heads, 1, 1, {});
  runtime::Arguments arguments = problem.arguments();
  int64_t sizes[4] = {1, heads, int64_t(1) << 30, 24};
  int64_t strides[4] = {0, 0, 0, 2};
  arguments[1] = runtime::Argument::tensor(problem.k.data(), 4, sizes, strides);
  arguments[2] = arguments[1];
  std::string message = program->invoke(arguments).message();
  EXPECT_NE(message.find("do not fit the memory of this machine:\n'k' is "
                         "copied first: stride of dimension 3 is 2"),
            std::string::npos)
      << message;
  sizes[2] = int64_t(1) << 56;
  message = program->invoke(arguments).message();
  EXPECT_NE(message.find("address space"), std::string::npos) << message;
}

TEST_F(HostProgramTest, WrongProgramsAreDiagnosed) {
  std::string text;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    text += d.str() + "\n";
    return mlir::success();
  });
  EXPECT_TRUE(mlir::failed(compile("module {}")));
  EXPECT_TRUE(mlir::failed(compile("func.func @f() { return }")));
  EXPECT_NE(text.find("no public function"), std::string::npos) << text;
  EXPECT_NE(text.find("has 0 attention operations"), std::string::npos) << text;
}

} // namespace
