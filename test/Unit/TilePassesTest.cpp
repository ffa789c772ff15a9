//===- TilePassesTest.cpp - kernels with and without each tile pass -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every tile pass is optional. tile-order-blocks, tile-peel-masks,
// tile-peel-scores and tile-overlap-products leave the very bits of a kernel's
// results; tile-fold-exp2, tile-reverse-keys and tile-lazy-max stay within the
// rounding of f32. (That the kernels are right is checked elsewhere, against
// the definition. Where the visited blocks are several intervals,
// tile-peel-masks visits them in another order, and sums round otherwise: no
// variant here is of that kind.)
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
#include <string>

using namespace attn;

namespace {

struct Variant {
  const char *name;
  const char *captures; // of the attention
  const char *body;     // attributes, then regions
};

// Key lengths per batch, a table of biases, and nothing, are captured.
const Variant variants[] = {
    {"plain", "", "{PLAN}"},
    {"causal", "", "{PLAN, variants = [#attn.causal]}"},
    {"causal_top_left", "", "{PLAN, variants = [#attn.causal<top_left>]}"},
    {"window", "", "{PLAN, variants = [#attn.window<left = 9, right = 3>]}"},
    {"narrow_window", "",
     "{PLAN, variants = [#attn.window<left = 0, right = 1>]}"},
    {"left_window", "", "{PLAN, variants = [#attn.window<left = 11>]}"},
    {"softcap", "",
     "{PLAN, variants = [#attn.causal, #attn.softcap<2.0 : f32>]}"},
    {"alibi", "", "{PLAN, variants = [#attn.causal, #attn.alibi]}"},
    {"alibi_window", "",
     "{PLAN, variants = [#attn.window<left = 17, right = 0>, #attn.alibi]}"},
    {"steep", "", R"({PLAN, variants = [#attn.window<left = 40, right = 4>]}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32) {
        %f = arith.sitofp %j : i32 to f32
        %c5 = arith.constant 5.0 : f32
        %t = arith.mulf %f, %c5 : f32
        %y = arith.addf %x, %t : f32
        attn.yield %y : f32
      })"},
    {"large_scores", "",
     "{PLAN, scale = 20.0 : f64, variants = [#attn.causal]}"},
    {"negative_scale", "",
     "{PLAN, scale = -0.5 : f64, variants = [#attn.causal]}"},
    {"zero_scale", "", "{PLAN, scale = 0.0 : f64, variants = [#attn.causal]}"},
    {"bias", "captures(%table)", R"({PLAN, variants = [#attn.causal]}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
        %e = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
        %y = arith.addf %x, %e : f32
        attn.yield %y : f32
      })"},
    {"bias_as_mask", "captures(%table)", R"({PLAN}
      mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
        %e = attn.capture_load %t[%i, %j] : tensor<?x?xf32>
        %zero = arith.constant 0.0 : f32
        %a = arith.cmpf ogt, %e, %zero : f32
        %c = arith.cmpi sle, %j, %i : i32
        %m = arith.andi %a, %c : i1
        attn.yield %m : i1
      })"},
    {"clamped_distance", "captures(%table)", R"({PLAN}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
        %d = arith.subi %i, %j : i32
        %c3 = arith.constant 3 : i32
        %c-2 = arith.constant -2 : i32
        %a = arith.maxsi %d, %c-2 : i32
        %c = arith.minsi %a, %c3 : i32
        %c2 = arith.constant 2 : i32
        %n = arith.addi %c, %c2 : i32
        %zero = arith.constant 0 : i32
        %e = attn.capture_load %t[%zero, %n] : tensor<?x?xf32>
        %y = arith.addf %x, %e : f32
        attn.yield %y : f32
      })"},
    {"bucketed_window", "captures(%table)",
     R"({PLAN, variants = [#attn.window<left = 25, right = 16>]}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
        %d = arith.subi %i, %j : i32
        %zero = arith.constant 0 : i32
        %c3 = arith.constant 3 : i32
        %right = arith.cmpi slt, %d, %zero : i32
        %row = arith.extui %right : i1 to i32
        %far = math.absi %d : i32
        %n = arith.minsi %far, %c3 : i32
        %e = attn.capture_load %t[%row, %n] : tensor<?x?xf32>
        %y = arith.addf %x, %e : f32
        attn.yield %y : f32
      })"},
    {"logarithms", "captures(%table)", R"({PLAN, variants = [#attn.causal]}
      score(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?x?xf32>) {
        %s = arith.subi %i, %j : i32
        %c1 = arith.constant 1 : i32
        %c5 = arith.constant 5 : i32
        %zero = arith.constant 0 : i32
        %d = arith.maxsi %s, %c1 : i32
        %f = arith.sitofp %d : i32 to f32
        %l = math.log %f : f32
        %c2 = arith.constant 2.0 : f32
        %m = arith.mulf %l, %c2 : f32
        %n = arith.fptosi %m : f32 to i32
        %far = arith.minsi %n, %c5 : i32
        %e = attn.capture_load %t[%zero, %far] : tensor<?x?xf32>
        %y = arith.addf %x, %e : f32
        attn.yield %y : f32
      })"},
    {"lengths", "captures(%lengths)", R"({PLAN}
      mask(%b: i32, %h: i32, %i: i32, %j: i32, %t: tensor<?xi32>) {
        %n = attn.capture_load %t[%b] : tensor<?xi32>
        %m = arith.cmpi slt, %j, %n : i32
        attn.yield %m : i1
      })"},
    {"strided", "", R"({PLAN}
      mask(%b: i32, %h: i32, %i: i32, %j: i32) {
        %c3 = arith.constant 3 : i32
        %c2 = arith.constant 2 : i32
        %c5 = arith.constant 5 : i32
        %jj = arith.muli %j, %c3 : i32
        %ii = arith.muli %i, %c2 : i32
        %r = arith.subi %ii, %c5 : i32
        %m = arith.cmpi sgt, %jj, %r : i32
        %s = arith.muli %i, %c3 : i32
        %p = arith.addi %s, %c5 : i32
        %n = arith.muli %j, %c2 : i32
        %u = arith.cmpi slt, %n, %p : i32
        %w = arith.andi %m, %u : i1
        attn.yield %w : i1
      })"},
    {"rows", "", R"({PLAN}
      mask(%b: i32, %h: i32, %i: i32, %j: i32) {
        %c3 = arith.constant 3 : i32
        %m = arith.cmpi sge, %i, %c3 : i32
        %d = arith.subi %i, %j : i32
        %c1 = arith.constant 1 : i32
        %n = arith.cmpi eq, %d, %c1 : i32
        %c20 = arith.constant 20 : i32
        %u = arith.cmpi slt, %j, %c20 : i32
        %a = arith.andi %m, %u : i1
        attn.yield %a : i1
      })"},
    {"diagonal", "", R"({PLAN}
      mask(%b: i32, %h: i32, %i: i32, %j: i32) {
        %m = arith.cmpi eq, %i, %j : i32
        attn.yield %m : i1
      })"},
};

std::string replaceAll(std::string text, const std::string &what,
                       const std::string &with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;
       at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

/// The program of a variant; element type, plan and the lengths (-1: any).
std::string program(const Variant &variant, const char *element,
                    const char *plan, int64_t queries, int64_t keys) {
  auto size = [](int64_t n) { return n < 0 ? "?" : std::to_string(n); };
  std::string captured = variant.captures;
  const char *type = captured.find("table") != std::string::npos
                         ? ", tensor<?x?xf32>"
                     : captured.empty() ? ""
                                        : ", tensor<?xi32>";
  std::string text = R"(
func.func @f(%q: QT, %k: KT, %v: VT, %table: tensor<?x?xf32>, %lengths: tensor<?xi32>)
    -> (OT, tensor<?x?xSQxf32>) {
  %o, %lse = attn.attention %q, %k, %v CAPTURES BODY
    : (QT, KT, VT TYPE) -> (OT, tensor<?x?xSQxf32>)
  return %o, %lse : OT, tensor<?x?xSQxf32>
})";
  text = replaceAll(text, "QT", "tensor<?x?xSQx24xE>");
  text = replaceAll(text, "KT", "tensor<?x?xSKx24xE>");
  text = replaceAll(text, "VT", "tensor<?x?xSKx40xE>");
  text = replaceAll(text, "OT", "tensor<?x?xSQx40xE>");
  text = replaceAll(text, "SQ", size(queries));
  text = replaceAll(text, "SK", size(keys));
  text = replaceAll(text, "xE>", std::string("x") + element + ">");
  text = replaceAll(text, "CAPTURES", captured);
  text = replaceAll(text, "TYPE", type);
  text = replaceAll(text, "BODY", variant.body);
  return replaceAll(text, "PLAN",
                    std::string("plan = #attn.plan<target = cpu, ") + plan +
                        ">");
}

void PrintTo(const Variant &variant, std::ostream *os) { *os << variant.name; }

class TilePassesTest : public ::testing::TestWithParam<Variant> {
protected:
  TilePassesTest() : context(registry()) { context.loadAllAvailableDialects(); }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  mlir::FailureOr<HostProgram> compile(const std::string &source, bool peel,
                                       bool fold, bool overlap = false,
                                       bool lazy = false,
                                       bool reverse = false) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    if (!module)
      return mlir::failure();
    HostOptions options;
    options.optimization = 0;
    options.processor = testProcessor();
    options.passes.add("tile-order-blocks", peel);
    options.passes.add("tile-peel-masks", peel);
    options.passes.add("tile-peel-scores", peel);
    options.passes.add("tile-reverse-keys", reverse);
    options.passes.add("tile-fold-exp2", fold);
    options.passes.add("tile-overlap-products", overlap);
    options.passes.add("tile-lazy-max", lazy);
    return HostProgram::compile(*module, "", options);
  }

  mlir::MLIRContext context;
};

/// Inputs of @f with two batches, four heads over two key heads.
struct Inputs {
  Inputs(ElementKind element, int64_t queries, int64_t keys)
      : q(element, {2, 4, queries, 24}, {0, 2, 1, 3}, 3),
        k(element, {2, 2, keys, 24}, {}, 5),
        v(element, {2, 2, keys, 40}, {0, 2, 1, 3}, 1),
        table(ElementKind::F32,
              {std::max<int64_t>(queries, 2), std::max<int64_t>(keys, 6)}),
        lengths(ElementKind::I32, {2}) {
    unsigned state = 7;
    auto next = [&] {
      state = state * 1664525u + 1013904223u;
      return (state >> 8) / double(1 << 23) - 1;
    };
    for (HostTensor *tensor : {&q, &k, &v, &table})
      tensor->assign(next);
    lengths.assign({double(keys / 3), double(keys + 2)});
  }
  HostTensor q, k, v, table, lengths;
};

struct Outputs {
  Outputs(ElementKind element, int64_t queries)
      : o(element, {2, 4, queries, 40}),
        lse(ElementKind::F32, {2, 4, queries}) {
    o.poison();
    lse.poison();
  }
  HostTensor o, lse;
};

void run(const HostProgram &program, Inputs &in, Outputs &out) {
  runtime::Status status = program.invoke(
      {in.q.argument(), in.k.argument(), in.v.argument(), in.table.argument(),
       in.lengths.argument(), out.o.argument(), out.lse.argument()});
  ASSERT_TRUE(status.ok()) << status.message();
}

void expectNear(const HostTensor &got, const HostTensor &wanted,
                double tolerance, const char *what) {
  std::vector<double> a = got.values(), b = wanted.values();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isinf(b[i]))
      ASSERT_EQ(a[i], b[i]) << what << " element " << i;
    else
      ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(b[i])))
          << what << " element " << i;
  }
}

TEST_P(TilePassesTest, LeaveTheResult) {
  std::string source =
      program(GetParam(), "f32", "block_q = 7, block_k = 5", -1, -1);
  auto base = compile(source, false, false);
  auto peeled = compile(source, true, false);
  auto folded = compile(source, true, true);
  auto overlapped = compile(source, true, false, true);
  auto lazy = compile(source, true, true, true, true);
  auto reversed = compile(source, true, false, false, false, true);
  auto reversedToo = compile(source, true, true, true, true, true);
  ASSERT_TRUE(mlir::succeeded(base) && mlir::succeeded(peeled) &&
              mlir::succeeded(folded) && mlir::succeeded(overlapped) &&
              mlir::succeeded(lazy) && mlir::succeeded(reversed) &&
              mlir::succeeded(reversedToo));
  int64_t lengths[][2] = {{1, 1},   {7, 5},   {33, 47}, {47, 33}, {14, 10},
                          {35, 35}, {20, 15}, {3, 0},   {0, 5},   {5, 70}};
  for (auto [queries, keys] : lengths) {
    SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) +
                 " keys");
    Inputs in(ElementKind::F32, queries, keys);
    Outputs first(ElementKind::F32, queries), second(ElementKind::F32, queries),
        third(ElementKind::F32, queries), fourth(ElementKind::F32, queries),
        fifth(ElementKind::F32, queries), sixth(ElementKind::F32, queries),
        seventh(ElementKind::F32, queries);
    run(*base, in, first);
    run(*peeled, in, second);
    run(*folded, in, third);
    run(*overlapped, in, fourth);
    run(*lazy, in, fifth);
    run(*reversed, in, sixth);
    run(*reversedToo, in, seventh);
    EXPECT_EQ(first.o.bits(), second.o.bits());
    EXPECT_EQ(first.lse.bits(), second.lse.bits());
    EXPECT_EQ(first.o.bits(), fourth.o.bits());
    EXPECT_EQ(first.lse.bits(), fourth.lse.bits());
    expectNear(third.o, first.o, 2e-5, "o");
    expectNear(third.lse, first.lse, 2e-5, "lse");
    expectNear(fifth.o, first.o, 2e-5, "o, lazy");
    expectNear(fifth.lse, first.lse, 2e-5, "lse, lazy");
    expectNear(sixth.o, first.o, 2e-5, "o, reversed");
    expectNear(sixth.lse, first.lse, 2e-5, "lse, reversed");
    expectNear(seventh.o, first.o, 2e-5, "o, reversed and lazy");
    expectNear(seventh.lse, first.lse, 2e-5, "lse, reversed and lazy");
  }
}

// Static lengths fold the bounds; 16-bit elements round P.
TEST_P(TilePassesTest, LeaveTheResultOfStaticLengths) {
  int64_t queries = 45, keys = 32;
  std::string source =
      program(GetParam(), "bf16", "block_q = 16, block_k = 16", queries, keys);
  auto base = compile(source, false, true);
  auto peeled = compile(source, true, true);
  auto overlapped = compile(source, true, true, true);
  auto unpeeled = compile(source, false, true, true);
  ASSERT_TRUE(mlir::succeeded(base) && mlir::succeeded(peeled) &&
              mlir::succeeded(overlapped) && mlir::succeeded(unpeeled));
  Inputs in(ElementKind::BF16, queries, keys);
  Outputs first(ElementKind::BF16, queries), second(ElementKind::BF16, queries),
      third(ElementKind::BF16, queries), fourth(ElementKind::BF16, queries);
  run(*base, in, first);
  run(*peeled, in, second);
  run(*overlapped, in, third);
  run(*unpeeled, in, fourth);
  EXPECT_EQ(first.o.bits(), third.o.bits());
  EXPECT_EQ(first.o.bits(), fourth.o.bits());
  EXPECT_EQ(first.o.bits(), second.o.bits());
  EXPECT_EQ(first.lse.bits(), second.lse.bits());
}

INSTANTIATE_TEST_SUITE_P(Variants, TilePassesTest,
                         ::testing::ValuesIn(variants), [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
