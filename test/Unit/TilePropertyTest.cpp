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

#include "TestProcessor.h"
#include "attn/Check/ErrorRule.h"
#include "attn/Execute/HostProgram.h"
#include "attn/Execute/Operands.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace attn;

namespace {

constexpr unsigned seed = 20260;
/// Every part draws programs of its own; lit runs parts side by side.
constexpr int numParts = 4;
constexpr int programsPerPart = 12;
constexpr int plansPerProgram = 3;
constexpr int runsPerPlan = 4;

class Choice {
public:
  explicit Choice(unsigned seed) : engine(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % (high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[between(0, values.size() - 1)];
  }

private:
  std::mt19937 engine;
};

std::string text(int64_t size) { return size < 0 ? "?" : std::to_string(size); }

/// What a program leaves open is -1.
struct Sizes {
  int64_t batch, heads, keyHeads, queries, keys;
};

/// A captured value: its type, and its shape for given sizes.
struct Capture {
  std::string type, shape;
};

/// A random attention, without a plan.
class Program {
public:
  explicit Program(Choice &choice) : choice(choice) {
    element = choice.of<const char *>({"f16", "bf16", "f32"});
    headDim = 8 * choice.of<int64_t>({1, 2, 2, 3, 4, 5, 8});
    valueDim = choice.chance(60) ? headDim : 8 * choice.between(1, 6);
    fixed.batch = choice.chance(30) ? choice.between(1, 2) : -1;
    group = choice.of<int64_t>({1, 1, 2, 4, 8});
    bool fixedHeads = choice.chance(50);
    int64_t keyHeads = group == 8 ? 1 : choice.between(1, 2);
    fixed.keyHeads = fixedHeads ? keyHeads : -1;
    fixed.heads = fixedHeads ? keyHeads * group : -1;
    fixed.queries = choice.chance(20) ? length() : -1;
    fixed.keys = choice.chance(20) ? length() : -1;
    chooseVariants();
    chooseScore();
    chooseMask();
    chooseAttributes();
  }

  /// The program with a plan; empty: none.
  std::string source(const std::string &plan) const {
    std::string b = text(fixed.batch), h = text(fixed.heads),
                g = text(fixed.keyHeads), m = text(fixed.queries),
                n = text(fixed.keys), d = std::to_string(headDim),
                e = std::to_string(valueDim);
    auto tensor = [](std::initializer_list<std::string> sizes,
                     const std::string &element) {
      std::string type = "tensor<";
      for (const std::string &size : sizes)
        type += size + "x";
      return type + element + ">";
    };
    std::string q = tensor({b, h, m, d}, element),
                k = tensor({b, g, n, d}, element),
                v = tensor({b, g, n, e}, element),
                o = tensor({b, h, m, e}, element), l = tensor({b, h, m}, "f32");
    std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + v, names,
                types, regionArguments;
    for (size_t i = 0; i < captures.size(); ++i) {
      std::string number = std::to_string(i);
      arguments += ", %a" + number + ": " + captures[i].type;
      names += (i ? ", %a" : "%a") + number;
      types += ", " + captures[i].type;
      regionArguments += ", %c" + number + ": " + captures[i].type;
    }
    std::string indices =
        "%b: i32, %h: i32, %i: i32, %j: i32" + regionArguments;
    std::string text = "func.func @f(" + arguments + ") -> (" + o + ", " + l +
                       ") {\n  %o, %lse = attn.attention %q, %k, %v";
    if (!names.empty())
      text += " captures(" + names + ")";
    text += " {" + attributes;
    if (!plan.empty())
      text += (attributes.empty() ? "plan = " : ", plan = ") + plan;
    text += "}";
    if (!score.empty())
      text += "\n  score(%x: f32, " + indices + ") {\n" + score + "  }";
    if (!mask.empty())
      text += "\n  mask(" + indices + ") {\n" + mask + "  }";
    return text + "\n  : (" + q + ", " + k + ", " + v + types + ") -> (" + o +
           ", " + l + ")\n  return %o, %lse : " + o + ", " + l + "\n}\n";
  }

  /// Random arguments for it.
  OperandRequest request() {
    OperandRequest request;
    int64_t batch = fixed.batch < 0 ? choice.between(1, 2) : fixed.batch;
    int64_t keyHeads =
        fixed.keyHeads < 0 ? choice.between(1, 2) : fixed.keyHeads;
    int64_t heads = fixed.heads < 0 ? keyHeads * group : fixed.heads;
    int64_t queries = fixed.queries < 0 ? length() : fixed.queries;
    int64_t keys = fixed.keys < 0 ? length() : fixed.keys;
    request.shape = "b=" + text(batch) + ",h=" + text(heads) +
                    ",hkv=" + text(keyHeads) + ",sq=" + text(queries) +
                    ",sk=" + text(keys);
    for (size_t i = 0; i < captures.size(); ++i) {
      if (captures[i].shape.empty()) {
        request.scalars["c" + std::to_string(i)] = choice.between(-3, 9);
        continue;
      }
      request.shape += ",c" + std::to_string(i) + "=";
      for (char letter : captures[i].shape)
        request.shape += letter == 'b'   ? text(batch)
                         : letter == 'h' ? text(heads)
                         : letter == 'i' ? text(queries)
                         : letter == 'j' ? text(keys)
                         : letter == 's' ? text((keys + 1) / 2)
                                         : std::string(1, letter);
    }
    if (choice.chance(50))
      request.order = {0, 2, 1, 3};
    request.padding = choice.of<int64_t>({0, 1, 8});
    request.seed = choice.between(0, 1 << 20);
    return request;
  }

private:
  int64_t length() {
    return choice.chance(8)    ? 0
           : choice.chance(15) ? choice.between(1, 3)
                               : choice.between(1, 70);
  }

  void chooseVariants() {
    std::string list;
    auto add = [&](int percent, const std::string &variant) {
      if (choice.chance(percent))
        list += (list.empty() ? "" : ", ") + variant;
    };
    add(25, "#attn.causal");
    add(10, "#attn.causal<top_left>");
    add(12, "#attn.window<left = " + std::to_string(choice.between(0, 20)) +
                ", right = " + std::to_string(choice.between(0, 20)) + ">");
    add(8, "#attn.window<left = " + std::to_string(choice.between(0, 9)) +
               ", right = -1, alignment = top_left>");
    add(12, "#attn.softcap<5.0 : f32>");
    add(10, "#attn.alibi");
    add(5, "#attn.alibi<top_left>");
    if (!list.empty())
      attributes = "variants = [" + list + "]";
  }

  std::string capture(const std::string &type, const std::string &shape) {
    captures.push_back({type, shape});
    return "%c" + std::to_string(captures.size() - 1);
  }

  void chooseScore() {
    switch (choice.between(0, 10)) {
    case 4: // what the C library does not have
      score = "    %lo = arith.constant -0.5 : f32\n"
              "    %hi = arith.constant 0.75 : f32\n"
              "    %a = math.clampf %x to [%lo, %hi] : f32\n"
              "    %two = arith.constant 2 : i32\n"
              "    %b2 = math.ipowi %h, %two : i32\n"
              "    %f = arith.sitofp %b2 : i32 to f32\n"
              "    %t = math.tanh %f : f32\n"
              "    %y = arith.addf %a, %t : f32\n"
              "    attn.yield %y : f32\n";
      return;
    case 0: { // a bias per head, query and key
      std::string c = capture("tensor<?x?x?xf32>", "hxixj");
      score = "    %t = attn.capture_load " + c +
              "[%h, %i, %j] : tensor<?x?x?xf32>\n"
              "    %y = arith.addf %x, %t : f32\n    attn.yield %y : f32\n";
      return;
    }
    case 1: { // a bias in the input type, one for two keys
      std::string type = std::string("tensor<?x?x") + element + ">";
      std::string c = capture(type, "ixs");
      bool isF32 = std::string(element) == "f32";
      score = "    %one = arith.constant 1 : i32\n"
              "    %pair = arith.shrui %j, %one : i32\n"
              "    %t = attn.capture_load " +
              c + "[%i, %pair] : " + type + "\n";
      if (!isF32)
        score +=
            std::string("    %u = arith.extf %t : ") + element + " to f32\n";
      score += std::string("    %y = arith.addf %x, ") + (isF32 ? "%t" : "%u") +
               " : f32\n    attn.yield %y : f32\n";
      return;
    }
    case 2: { // a scalar, and code of several steps
      std::string c = capture("f32", "");
      score = "    %f = arith.sitofp %j : i32 to f32\n"
              "    %s = arith.constant 0.01 : f32\n"
              "    %t = arith.mulf %f, %s : f32\n"
              "    %u = math.sin %t : f32\n"
              "    %w = arith.mulf %u, " +
              c +
              " : f32\n    %y = arith.addf %w, %x : f32\n"
              "    attn.yield %y : f32\n";
      return;
    }
    case 3: // -inf from the score
      score = "    %n = arith.constant 0xFF800000 : f32\n"
              "    %z = arith.constant 0.5 : f32\n"
              "    %g = arith.cmpf ogt, %x, %z : f32\n"
              "    %y = arith.select %g, %n, %x : f32\n"
              "    attn.yield %y : f32\n";
      return;
    default:
      return;
    }
  }

  void chooseMask() {
    switch (choice.between(0, 13)) {
    case 0: { // documents
      std::string c = capture("tensor<?x?xi32>", "bx99");
      mask = "    %s = arith.constant 2 : i32\n"
             "    %p = attn.capture_load " +
             c + "[%b, %i] : tensor<?x?xi32>\n    %r = attn.capture_load " + c +
             "[%b, %j] : tensor<?x?xi32>\n"
             "    %t = arith.shrui %p, %s : i32\n"
             "    %u = arith.shrui %r, %s : i32\n"
             "    %m = arith.cmpi eq, %t, %u : i32\n"
             "    attn.yield %m : i1\n";
      return;
    }
    case 1: { // lengths per batch
      std::string c = capture("tensor<?xi32>", "b");
      mask = "    %n = attn.capture_load " + c +
             "[%b] : tensor<?xi32>\n    %m = arith.cmpi slt, %j, %n : i32\n"
             "    attn.yield %m : i1\n";
      return;
    }
    case 2: // a pattern, and rows without a key
      mask = "    %one = arith.constant 1 : i32\n"
             "    %three = arith.constant 3 : i32\n"
             "    %x = arith.xori %i, %j : i32\n"
             "    %p = arith.andi %x, %one : i32\n"
             "    %r = arith.andi %i, %three : i32\n"
             "    %a = arith.cmpi eq, %p, %one : i32\n"
             "    %c = arith.cmpi ne, %r, %one : i32\n"
             "    %m = arith.andi %a, %c : i1\n    attn.yield %m : i1\n";
      return;
    case 3: { // affine by hand, with a scalar
      std::string c = capture("i32", "");
      mask = "    %l = arith.addi %i, " + c +
             " : i32\n    %m = arith.cmpi sge, %l, %j : i32\n"
             "    attn.yield %m : i1\n";
      return;
    }
    case 4: { // flags
      std::string c = capture("tensor<?x?xi1>", "ixj");
      mask = "    %m = attn.capture_load " + c +
             "[%i, %j] : tensor<?x?xi1>\n    attn.yield %m : i1\n";
      return;
    }
    case 5: // nothing
      mask = "    %m = arith.constant false\n    attn.yield %m : i1\n";
      return;
    case 6: // a block of keys and a set of heads
      mask = "    %lo = arith.constant 7 : i32\n"
             "    %hi = arith.constant 41 : i32\n"
             "    %a = arith.cmpi sge, %j, %lo : i32\n"
             "    %c = arith.cmpi slt, %j, %hi : i32\n"
             "    %one = arith.constant 1 : i32\n"
             "    %e = arith.cmpi ne, %h, %one : i32\n"
             "    %m = arith.andi %a, %c : i1\n"
             "    %n = arith.andi %m, %e : i1\n    attn.yield %n : i1\n";
      return;
    default:
      return;
    }
  }

  void chooseAttributes() {
    auto add = [&](int percent, const std::string &attribute) {
      if (choice.chance(percent))
        attributes += (attributes.empty() ? "" : ", ") + attribute;
    };
    add(30, "scale = " + choice.of<std::string>({"0.5", "0.0", "-0.3", "1.0"}) +
                " : f64");
    add(15, "numerics = #attn.numerics<fast_math = false>");
  }

  Choice &choice;
  const char *element;
  int64_t headDim, valueDim, group;
  Sizes fixed;
  std::string attributes, score, mask;
  std::vector<Capture> captures;
};

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

std::string randomPlan(Choice &choice) {
  auto size = [&] {
    return std::to_string(choice.chance(30) ? choice.of<int64_t>({16, 32, 64})
                                            : choice.between(1, 64));
  };
  return "#attn.plan<target = cpu, block_q = " + size() +
         ", block_k = " + size() + ">";
}

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
