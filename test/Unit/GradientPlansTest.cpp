//===- GradientPlansTest.cpp - plans for gradients by one program or two --===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Execute/Session.h"
#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;

namespace {
/// Gradients whose sums may be in any order, and what is said of them.
struct Gradients {
  int64_t dim = 128;
  std::string queries = "?", attributes = "", element = "bf16";
  bool isMasked = false;
  std::string mask; // in place of the causal one
  TargetKind target = TargetKind::SM90A;

  std::string print() const {
    std::string tensor =
        "tensor<2x8x" + queries + "x" + std::to_string(dim) + "x" + element;
    std::string conditions =
        mask.empty() ? "%m = arith.cmpi sge, %i, %j : i32\n" : mask;
    std::string region = "mask(%b: i32, %h: i32, %i: i32, %j: i32) {\n" +
                         conditions + "attn.yield %m : i1\n}";
    return "!t = " + tensor + ">\n!l = tensor<2x8x" + queries + "xf32>\n" + R"(
      func.func @f(%q: !t, %l: !l) -> (!t, !t, !t) {
        %a, %b, %c = attn.attention_backward %q, %q, %q, %q, %l, %q
          {numerics = #attn.numerics<deterministic = false>)" +
           attributes + "} " + (isMasked || !mask.empty() ? region : "") + R"(
          : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
        return %a, %b, %c : !t, !t, !t
      })";
  }

  /// "query_length <= 64 -> twice 2; auto 3": scores and stages of each case.
  std::string plans() const {
    Session session;
    auto module = session.parse(print());
    if (!module.ok())
      return module.message();
    plan::PlanRequest request;
    request.target = target;
    std::string text;
    (*module)->walk([&](ScoredOp op) {
      auto cases = plan::choosePlans(op, request);
      if (failed(cases))
        return;
      for (const plan::PlanCase &entry : *cases) {
        std::string condition = entry.condition.print();
        text += (text.empty() ? "" : "; ") + condition +
                (condition.empty() ? "" : " -> ") +
                stringifyRecomputedScores(entry.plan.getScores()).str() + " " +
                std::to_string(entry.plan.getStages());
      }
    });
    return text;
  }
};
} // namespace

/// What stands before the other cases: two programs with so many stages for few
/// keys and where they run beside each other, one where there are few tiles.
static std::string small(int twice, int once, bool isMasked = false,
                         bool canRunBeside = true, bool isNarrow = false) {
  std::string one = " -> auto " + std::to_string(once) + "; ";
  std::string two = " -> twice " + std::to_string(twice) + "; ";
  std::string beside =
      std::string(
          "key_length <= query_length and batch_heads * key_length <= ") +
      (isMasked ? "128" : "64") +
      " * multiprocessors and batch_heads * query_length <= " +
      (isMasked ? "256" : "128") + " * multiprocessors" + two;
  return "key_length <= " +
         std::string(isMasked && canRunBeside ? "512" : "192") + two +
         (canRunBeside ? beside : "") +
         "batch_heads * key_length <= 128 * multiprocessors" + one +
         "key_length >= 512 and batch_heads * key_length <= 256 * "
         "multiprocessors" +
         one +
         "key_length >= 512 and batch_heads * query_length <= 128 * "
         "multiprocessors and " +
         (isNarrow ? "6" : "3") + " * batch_heads <= multiprocessors" + one +
         (canRunBeside ? "query_length <= 384" + two : "");
}

/// Up to so many queries and keys two programs.
static std::string two(int queries, int keys, int stages = 2) {
  return "query_length <= " + std::to_string(queries) +
         " and key_length <= " + std::to_string(keys) + " -> twice " +
         std::to_string(stages) + "; ";
}

TEST(GradientPlans, TwoProgramsForFewQueriesAndKeys) {
  Gradients full, masked, narrow, narrowMasked;
  masked.isMasked = narrowMasked.isMasked = true;
  narrow.dim = narrowMasked.dim = 64;
  EXPECT_EQ(full.plans(), small(2, 2) + two(856, 856) + "auto 2");
  EXPECT_EQ(masked.plans(), small(2, 2, true) + two(2245, 2245) + "auto 2");
  std::string many = "query_length <= 4096 -> auto 2; auto 3";
  EXPECT_EQ(narrow.plans(),
            small(3, 3, false, true, true) + two(866, 866, 3) + many);
  EXPECT_EQ(narrowMasked.plans(), small(3, 3, true, true, true) +
                                      two(1024, 1739, 3) + two(1739, 1739) +
                                      many);
  for (Gradients *each : {&full, &masked, &narrow, &narrowMasked}) {
    each->target = TargetKind::SM80;
    each->element = "f16";
  }
  EXPECT_EQ(full.plans(), small(2, 2, false, false) + two(660, 660) + "auto 2");
  EXPECT_EQ(masked.plans(),
            small(2, 2, true, false) + two(1248, 1248) + "auto 2");
  EXPECT_EQ(narrow.plans(),
            small(2, 2, false, false, true) + two(565, 565) + "auto 2");
  EXPECT_EQ(narrowMasked.plans(),
            small(2, 2, true, false, true) + two(942, 942) + "auto 2");
}

TEST(GradientPlans, DimensionsBetweenAreAsTheNextOne) {
  Gradients between, next;
  between.dim = 88;
  next.dim = 96;
  EXPECT_EQ(next.plans(), small(3, 3) + two(811, 811, 3) + "auto 3");
  EXPECT_EQ(between.plans(), next.plans());
  // Code for sm_80 has no form with parts of 48 columns.
  between.target = next.target = TargetKind::SM80;
  EXPECT_EQ(next.plans(), "auto 2");
  EXPECT_EQ(between.plans(), "auto 2");
}

/// A window that ends at the query, and the first four keys.
static std::string nearAndFirst(int64_t keys) {
  return R"(%above = arith.cmpi sge, %i, %j : i32
        %distance = arith.subi %i, %j : i32
        %reach = arith.constant )" +
         std::to_string(keys) + R"( : i32
        %near = arith.cmpi slt, %distance, %reach : i32
        %four = arith.constant 4 : i32
        %isFirst = arith.cmpi slt, %j, %four : i32
        %either = arith.ori %near, %isFirst : i1
        %m = arith.andi %above, %either : i1
)";
}

TEST(GradientPlans, TwoProgramsWhereQueriesSeeFewKeys) {
  Gradients window;
  window.mask = nearAndFirst(855 - 4); // and the query's own key
  std::string any = small(2, 2, true);
  EXPECT_EQ(window.plans(),
            any.substr(0, any.find("query_length <= 384")) + "twice 2");
  window.queries = "4096";
  EXPECT_EQ(window.plans(), "twice 2");
  window.mask = nearAndFirst(855 - 3);
  EXPECT_EQ(window.plans(), "auto 2");
  window.queries = "?";
  EXPECT_EQ(window.plans(), any + two(2245, 2245) + "auto 2");
}

/// To both sides, and so many tokens that see and are seen.
static std::string nearAndGlobal(int64_t tokens) {
  return R"(%distance = arith.subi %i, %j : i32
        %positive = math.absi %distance : i32
        %reach = arith.constant 256 : i32
        %near = arith.cmpi sle, %positive, %reach : i32
        %tokens = arith.constant )" +
         std::to_string(tokens) + R"( : i32
        %sees = arith.cmpi slt, %i, %tokens : i32
        %isSeen = arith.cmpi slt, %j, %tokens : i32
        %either = arith.ori %near, %sees : i1
        %m = arith.ori %either, %isSeen : i1
)";
}

TEST(GradientPlans, SeveralIntervalsOfFewKeys) {
  Gradients gradients;
  gradients.queries = "4096";
  gradients.mask = nearAndGlobal(64);
  EXPECT_EQ(gradients.plans(), "twice 2");
  gradients.mask = nearAndGlobal(257); // many queries see all keys
  EXPECT_EQ(gradients.plans(), "auto 2");
  // Every eighth key is among all that there are.
  gradients.mask = R"(%distance = arith.subi %i, %j : i32
        %reach = arith.constant 128 : i32
        %near = arith.cmpi slt, %distance, %reach : i32
        %eight = arith.constant 8 : i32
        %rest = arith.remsi %j, %eight : i32
        %zero = arith.constant 0 : i32
        %every = arith.cmpi eq, %rest, %zero : i32
        %either = arith.ori %near, %every : i1
        %above = arith.cmpi sge, %i, %j : i32
        %m = arith.andi %above, %either : i1
)";
  EXPECT_EQ(gradients.plans(), "auto 2");
}

TEST(GradientPlans, TwoProgramsOfF32WhereEachTileHasAMultiprocessor) {
  Gradients gradients;
  gradients.element = "f32";
  gradients.dim = 64;
  std::string beside = "key_length <= query_length and batch_heads * "
                       "key_length <= 64 * multiprocessors -> twice 2; ";
  EXPECT_EQ(gradients.plans(), beside + "auto 2");
  gradients.queries = "512";
  EXPECT_EQ(gradients.plans(), "auto 2");
  gradients.queries = "?";
  gradients.target = TargetKind::SM80;
  EXPECT_EQ(gradients.plans(), "auto 2");
  // Wide tiles of one program are faster.
  gradients.target = TargetKind::SM90A;
  gradients.dim = 128;
  EXPECT_EQ(gradients.plans(), "auto 1");
}

TEST(GradientPlans, OneFormWhereTheLengthIsKnown) {
  Gradients few, many;
  few.dim = many.dim = 64;
  few.queries = "866";
  many.queries = "867";
  EXPECT_EQ(few.plans(), "auto 3"); // of two programs
  EXPECT_EQ(many.plans(), "auto 2");
}

TEST(GradientPlans, OneFormWhereItIsSaid) {
  Gradients asked, lse;
  asked.attributes = ", recompute = #attn.recompute<scores = twice>";
  lse.attributes = ", recompute = #attn.recompute<lse = always>";
  EXPECT_EQ(asked.plans(), "auto 2");
  EXPECT_EQ(lse.plans(), small(2, 2) + two(856, 856) + "auto 2");
}

TEST(GradientPlans, OneFormWhereNothingWasMeasured) {
  Gradients other, wide, host;
  other.dim = 160;
  wide.element = "f32";
  host.target = TargetKind::CPU;
  EXPECT_EQ(other.plans(), "auto 2");
  EXPECT_EQ(wide.plans(), "auto 1");
  EXPECT_EQ(host.plans(), "auto 1");
}
