//===- VisitSetTest.cpp - visit sets against brute force ------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For many masks, random lengths, captured data and block sizes: the loops that
// tile-peel-masks makes are run block by block, with an evaluator of scalar
// code, and compared with the mask itself at every row and key. No block that
// shows anything may be missing, none may come twice, a loop without a mask may
// see no block that hides anything; where the mask is exact (coefficients of 1)
// no block is visited or masked in vain.
//
//===----------------------------------------------------------------------===//

#include "Inputs/MaskCode.h"
#include "Inputs/TileEvaluator.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace attn;
using namespace attn::test;

namespace {

constexpr unsigned seed = 77;
constexpr int plansPerMask = 3;
constexpr int runsPerPlan = 3;
constexpr int numRandomMasks = 30;

struct Mask {
  const char *name;
  /// No block is visited or masked in vain.
  bool isExact;
  std::function<Bool(const Place &)> write;
};

const Mask masks[] = {
    {"all", true, [](const Place &p) { return p.j >= 0; }},
    {"none", true, [](const Place &p) { return p.j < 0; }},
    {"contradiction", true,
     [](const Place &p) { return (p.j < p.i) & (p.j > p.i + 9); }},
    {"causal", true, [](const Place &p) { return p.j <= p.i; }},
    {"causal_offset", true,
     [](const Place &p) { return p.j <= p.i + p.scalar("-20..20"); }},
    {"anticausal", true, [](const Place &p) { return p.j >= p.i; }},
    {"strictly_causal", true, [](const Place &p) { return p.i > p.j; }},
    {"window", true,
     [](const Place &p) { return (p.j <= p.i) & (p.i - p.j < 9); }},
    {"window_abs", true, [](const Place &p) { return abs(p.i - p.j) <= 7; }},
    {"window_scalar", true,
     [](const Place &p) {
       return (p.j <= p.i) & (p.i - p.j <= p.scalar("0..30"));
     }},
    {"prefix_causal", true,
     [](const Place &p) { return (p.j <= p.i) | (p.j < 11); }},
    {"prefix_per_batch", true,
     [](const Place &p) {
       return (p.j <= p.i) | (p.j < p.load(p.tensor("b", "0..40"), {p.b}));
     }},
    {"global_and_window", true,
     [](const Place &p) { return (p.j < 5) | (abs(p.i - p.j) <= 6); }},
    {"global_rows_too", false,
     [](const Place &p) {
       return (p.j < 5) | (p.i < 3) | (abs(p.i - p.j) <= 6);
     }},
    {"sinks_and_window", true,
     [](const Place &p) {
       return (p.j <= p.i) & ((p.j < 4) | (p.i - p.j < 10));
     }},
    {"diagonal", true, [](const Place &p) { return p.i == p.j; }},
    {"not_diagonal", true, [](const Place &p) { return p.i != p.j; }},
    {"two_bands", true,
     [](const Place &p) {
       return (abs(p.i - p.j) <= 2) | (abs(p.i - p.j - 17) <= 2);
     }},
    {"xor_of_bands", false,
     [](const Place &p) {
       return (abs(p.i - p.j) <= 12) ^ (abs(p.i - p.j) <= 4);
     }},
    {"not_of_window", true,
     [](const Place &p) { return !((p.j <= p.i) & (p.i - p.j < 9)); }},
    {"select_of_masks", false,
     [](const Place &p) {
       return select(p.j < 13, p.j <= p.i, abs(p.i - p.j) <= 3);
     }},
    {"min_of_rows", true,
     [](const Place &p) {
       return p.j <= binary("minsi", p.i, number(p.code, 17));
     }},
    {"max_of_rows", true,
     [](const Place &p) {
       return p.j <= binary("maxsi", p.i, number(p.code, 17));
     }},
    {"chunks", false, [](const Place &p) { return p.i / 8 == p.j / 8; }},
    {"chunks_causal", false,
     [](const Place &p) { return (p.j / 8 <= p.i / 8); }},
    {"chunks_shifted", false,
     [](const Place &p) {
       return with("shrsi", p.i + 3, 3) == with("shrsi", p.j + 3, 3);
     }},
    {"dilated", false, [](const Place &p) { return (p.i - p.j) % 3 == 0; }},
    {"dilated_window", false,
     [](const Place &p) {
       return (with("andi", p.i - p.j, 3) == 0) & (abs(p.i - p.j) <= 12);
     }},
    {"even_keys", false,
     [](const Place &p) { return with("remui", p.j, 2) == 0; }},
    {"neighbourhood_2d", false,
     [](const Place &p) {
       return (abs(p.i / 8 - p.j / 8) <= 1) & (abs(p.i % 8 - p.j % 8) <= 2);
     }},
    {"neighbourhood_2d_wide", false,
     [](const Place &p) {
       return (abs(with("divui", p.i, 16) - with("divui", p.j, 16)) <= 1) &
              (abs(with("remui", p.i, 16) - with("remui", p.j, 16)) <= 1);
     }},
    {"neighbourhood_3d", false,
     [](const Place &p) {
       return (abs(p.i / 16 - p.j / 16) <= 1) &
              (abs(p.i / 4 % 4 - p.j / 4 % 4) <= 1) &
              (abs(p.i % 4 - p.j % 4) <= 1);
     }},
    {"key_lengths", true,
     [](const Place &p) {
       return p.j < p.load(p.tensor("b", "0..60"), {p.b});
     }},
    {"query_and_key_lengths", true,
     [](const Place &p) {
       Int length = p.load(p.tensor("b", "0..60"), {p.b});
       return (p.j < length) & (p.i < length);
     }},
    {"left_padding", true,
     [](const Place &p) {
       return (p.j >= p.load(p.tensor("b", "0..20"), {p.b})) & (p.j <= p.i);
     }},
    {"start_and_end_per_batch", true,
     [](const Place &p) {
       Int start = p.load(p.tensor("b", "0..20"), {p.b});
       Int end = p.load(p.tensor("b", "10..60"), {p.b});
       return (p.j >= start) & (p.j < end);
     }},
    {"documents_by_ids", true,
     [](const Place &p) {
       std::string ids = p.tensor("bx", "sorted");
       return p.load(ids, {p.b, p.i}) == p.load(ids, {p.b, p.j});
     }},
    {"documents_by_ids_causal", true,
     [](const Place &p) {
       std::string ids = p.tensor("x", "sorted");
       return (p.load(ids, {p.i}) == p.load(ids, {p.j})) & (p.j <= p.i);
     }},
    {"documents_by_short_ids", false,
     [](const Place &p) {
       std::string ids = p.tensor("9", "sorted");
       return p.load(ids, {p.i}) == p.load(ids, {p.j});
     }},
    {"documents_of_queries_and_keys", false,
     [](const Place &p) {
       std::string rows = p.tensor("x", "sorted");
       std::string keys = p.tensor("x", "sorted");
       return p.load(rows, {p.i}) == p.load(keys, {p.j});
     }},
    {"documents_by_unsorted_ids", false,
     [](const Place &p) {
       std::string ids = p.tensor("x", "0..3");
       return (p.load(ids, {p.i}) == p.load(ids, {p.j})) & (p.j <= p.i);
     }},
    {"documents_by_offsets", true,
     [](const Place &p) {
       std::string offsets = p.tensor("7", "offsets");
       return p.search(offsets, {}, p.i) == p.search(offsets, {}, p.j);
     }},
    {"documents_by_offsets_causal", true,
     [](const Place &p) {
       std::string offsets = p.tensor("b7", "offsets");
       return (p.search(offsets, {p.b}, p.i) == p.search(offsets, {p.b}, p.j)) &
              (p.j <= p.i);
     }},
    {"documents_by_offsets_window", false,
     [](const Place &p) {
       std::string offsets = p.tensor("7", "offsets");
       return (p.search(offsets, {}, p.i) == p.search(offsets, {}, p.j)) &
              (abs(p.i - p.j) <= 5);
     }},
    {"packed_queries_and_keys", false,
     [](const Place &p) {
       std::string rows = p.tensor("6", "offsets");
       std::string keys = p.tensor("6", "offsets");
       return p.search(rows, {}, p.i) == p.search(keys, {}, p.j);
     }},
    {"earlier_documents", true,
     [](const Place &p) {
       std::string offsets = p.tensor("7", "offsets");
       return p.search(offsets, {}, p.j) <= p.search(offsets, {}, p.i);
     }},
    {"start_per_row", false,
     [](const Place &p) {
       return (p.j >= p.load(p.tensor("x", "sorted"), {p.i})) & (p.j <= p.i);
     }},
    {"end_per_row", false,
     [](const Place &p) {
       return p.j < p.load(p.tensor("x", "sorted"), {p.i}) * 4;
     }},
    {"end_by_chunk_of_rows", false,
     [](const Place &p) {
       return p.j < p.load(p.tensor("x", "sorted"), {p.i / 4}) * 3;
     }},
    {"unsorted_end_per_row", false,
     [](const Place &p) {
       return (p.j < p.load(p.tensor("x", "0..40"), {p.i})) & (p.j <= p.i);
     }},
    {"flags", false,
     [](const Place &p) {
       return p.flag(p.tensor("ij", "0..1", "i1"), {p.i, p.j}) & (p.j <= p.i);
     }},
    {"flag_per_batch", true,
     [](const Place &p) {
       return p.flag(p.tensor("b", "0..1", "i1"), {p.b}) | (p.j <= p.i);
     }},
    {"heads_differ", true,
     [](const Place &p) { return (p.h == 1) | (p.j <= p.i); }},
    {"window_per_head", true,
     [](const Place &p) {
       return abs(p.i - p.j) <= p.load(p.tensor("h", "0..20"), {p.h});
     }},
    {"triangle", false,
     [](const Place &p) {
       return (p.j * 3 <= p.i * 2 + 5) & (p.j * 2 >= p.i - 4);
     }},
    {"stripes_by_block_map", false,
     [](const Place &p) {
       return p.flag(p.tensor("xx", "0..1", "i1"), {p.i / 8, p.j / 8});
     }},
    {"unsigned_window", true,
     [](const Place &p) {
       return compare("ult", p.i - p.j, number(p.code, 9));
     }},
    {"rows_of_a_range", true,
     [](const Place &p) { return (p.i >= 7) & (p.i < 23); }},
};

//===----------------------------------------------------------------------===//
// The test
//===----------------------------------------------------------------------===//

class Choice {
public:
  explicit Choice(unsigned seed) : engine(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % (high - low + 1));
  }

private:
  std::mt19937 engine;
};

/// Lengths of one run.
struct Sizes {
  int64_t batch = 2, heads = 2, queries, keys;

  int64_t of(char letter) const {
    switch (letter) {
    case 'b':
      return batch;
    case 'h':
      return heads;
    case 'i':
      return queries;
    case 'j':
      return keys;
    case 'x':
      return std::max(queries, keys);
    default:
      return letter - '0';
    }
  }
};

/// --gtest_random_seed gives other cases.
unsigned getSeed(size_t number) {
  return seed + number + 1000 * GTEST_FLAG_GET(random_seed);
}

/// A formula of random comparisons.
class RandomMask {
public:
  RandomMask(Choice &choice, const Place &place)
      : choice(choice), place(place) {}

  Bool formula(int depth) {
    if (depth == 0)
      return comparison();
    Bool a = formula(depth - 1);
    switch (choice.between(0, 5)) {
    case 0:
      return a | formula(depth - 1);
    case 1:
      return !a | formula(choice.between(0, depth - 1));
    case 2:
      return a ^ formula(0);
    case 3:
      return select(comparison(), a, formula(0));
    default:
      return a & formula(depth - 1);
    }
  }

private:
  Bool comparison() {
    Int a = integer(2), b = integer(1);
    switch (choice.between(0, 6)) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return compare("ult", a, b);
    case 4:
      return a >= b;
    default:
      return a <= b;
    }
  }

  Int integer(int depth) {
    if (depth == 0)
      return leaf();
    Int a = integer(depth - 1);
    int64_t constant = choice.between(1, 9);
    switch (choice.between(0, 13)) {
    case 0:
      return a + leaf();
    case 1:
      return a - leaf();
    case 2:
      return a * choice.between(-3, 3);
    case 3:
      return a / constant;
    case 4:
      return a % constant;
    case 5:
      return abs(a);
    case 6:
      return binary("minsi", a, leaf());
    case 7:
      return binary("maxsi", a, leaf());
    case 8:
      return with("shrsi", a, choice.between(0, 3));
    case 9:
      return with("andi", a, (1 << choice.between(0, 4)) - 1);
    case 10:
      return with(choice.between(0, 1) ? "divui" : "remui", a, constant);
    case 11:
      return with("floordivsi", a, constant);
    case 12:
      return a + choice.between(-20, 20);
    default:
      return a;
    }
  }

  Int leaf() {
    switch (choice.between(0, 11)) {
    case 0:
      return number(place.code, choice.between(-5, 40));
    case 1:
      return place.scalar("-5..40");
    case 2:
      return place.load(capture("x", "sorted"),
                        {choice.between(0, 1) ? place.i : place.j});
    case 3:
      return place.search(capture("7", "offsets"), {},
                          choice.between(0, 1) ? place.i : place.j);
    case 4:
      return place.load(capture("b", "0..40"), {place.b});
    case 5:
      return place.load(capture("x", "0..40"), {place.i});
    case 6:
    case 7:
    case 8:
      return place.i;
    default:
      return place.j;
    }
  }

  /// One tensor of a kind in all of the mask.
  std::string capture(const std::string &shape, const std::string &contents) {
    std::string &name = captures[shape + contents];
    if (name.empty())
      name = place.tensor(shape, contents);
    return name;
  }

  Choice &choice;
  const Place &place;
  std::map<std::string, std::string> captures;
};

class VisitSetTestBase : public ::testing::Test {
protected:
  VisitSetTestBase() : context(registry()) {
    context.loadAllAvailableDialects();
  }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }

  std::string write(const Code &code, const std::string &result,
                    const std::string &plan) {
    std::string arguments, names, types, region;
    for (size_t n = 0; n < code.types.size(); ++n) {
      std::string number = std::to_string(n);
      arguments += ", %a" + number + ": " + code.types[n];
      names += (n ? ", %a" : "%a") + number;
      types += ", " + code.types[n];
      region += ", %c" + number + ": " + code.types[n];
    }
    std::string text = "!t = tensor<?x?x?x8xf32>\n"
                       "func.func @f(%q: !t, %k: !t, %v: !t" +
                       arguments +
                       ") -> !t {\n  %o, %lse = attn.attention %q, %k, %v";
    if (!names.empty())
      text += " captures(" + names + ")";
    text += " {plan = " + plan;
    if (!code.sorted.empty())
      text += ", sorted_captures = array<i64: " + code.sorted + ">";
    return text + "}\n  mask(%b: i32, %h: i32, %i: i32, %j: i32" + region +
           ") {\n" + code.lines + "    attn.yield " + result +
           " : i1\n  }\n  : (!t, !t, !t" + types +
           ") -> (!t, tensor<?x?x?xf32>)\n  return %o : !t\n}\n";
  }

  mlir::OwningOpRef<mlir::ModuleOp> compile(const std::string &source,
                                            bool orderBlocks, bool peel) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    mlir::PassManager manager(&context);
    manager.addPass(createAttnExpandVariantsPass());
    manager.addPass(createConvertAttnToTile());
    if (orderBlocks)
      manager.addNestedPass<mlir::func::FuncOp>(tile::createTileOrderBlocks());
    if (peel)
      manager.addNestedPass<mlir::func::FuncOp>(tile::createTilePeelMasks());
    manager.addNestedPass<mlir::func::FuncOp>(tile::createTileExpandScores());
    if (!module || failed(manager.run(*module))) {
      ADD_FAILURE() << "does not compile:\n" << source;
      return nullptr;
    }
    return module;
  }

  /// Memory for the arguments of a kernel.
  std::vector<test::Argument>
  makeArguments(const Code &code, const Sizes &sizes, Choice &choice) {
    std::vector<test::Argument> arguments;
    auto addTensor = [&](std::vector<int64_t> shape) {
      test::Argument argument;
      argument.shape = std::move(shape);
      arguments.push_back(std::move(argument));
      return &arguments.back();
    };
    addTensor({sizes.batch, sizes.heads, sizes.queries, 8});
    addTensor({sizes.batch, sizes.heads, sizes.keys, 8});
    addTensor({sizes.batch, sizes.heads, sizes.keys, 8});
    for (const std::string &contents : code.contents)
      fill(contents, sizes, choice, addTensor({}));
    addTensor({sizes.batch, sizes.heads, sizes.queries, 8});
    return arguments;
  }

  static void fill(const std::string &contents, const Sizes &sizes,
                   Choice &choice, test::Argument *argument) {
    size_t colon = contents.find(':');
    std::string kind =
        colon == std::string::npos ? contents : contents.substr(colon + 1);
    int64_t count = 1;
    if (colon != std::string::npos)
      for (char letter : contents.substr(0, colon)) {
        argument->shape.push_back(sizes.of(letter));
        count *= argument->shape.back();
      }
    int64_t rowLength = argument->shape.empty() ? 1 : argument->shape.back();
    int64_t dots = kind.find("..");
    for (int64_t n = 0; n < count; ++n) {
      int64_t place = rowLength == 0 ? 0 : n % rowLength;
      int64_t before = place == 0 ? 0 : argument->data.back();
      if (kind == "sorted")
        argument->data.push_back(before + (choice.between(0, 3) == 0));
      else if (kind == "offsets")
        argument->data.push_back(place == 0 ? 0
                                            : before + choice.between(0, 14));
      else
        argument->data.push_back(
            choice.between(std::stoll(kind.substr(0, dots)),
                           std::stoll(kind.substr(dots + 2))));
    }
  }

  /// Compares the visits of one run with the mask.
  void check(mlir::ModuleOp plain, mlir::ModuleOp peeled,
             const std::vector<test::Argument> &arguments, const Mask &mask) {
    auto expected = test::runKernel(plain, arguments);
    auto actual = test::runKernel(peeled, arguments);
    ASSERT_EQ(expected.size(), actual.size());
    for (const auto &[queryBlock, all] : expected) {
      std::set<int64_t> seen;
      for (const test::Visit &visit : actual[queryBlock]) {
        SCOPED_TRACE("query block " + queryBlock + ", key block " +
                     std::to_string(visit.keyBlock));
        ASSERT_TRUE(seen.insert(visit.keyBlock).second) << "visited twice";
        ASSERT_GE(visit.keyBlock, 0);
        ASSERT_LT(visit.keyBlock, static_cast<int64_t>(all.size()))
            << "no such block";
        const test::Visit &truth = all[visit.keyBlock];
        if (!visit.isMasked) {
          ASSERT_TRUE(truth.isFull) << "hides something";
        }
        numMaskedInVain += visit.isMasked && truth.isFullInAllRows;
        numVisitedInVain += !truth.showsInAnyRow;
        ++numVisited;
        if (mask.isExact) {
          ASSERT_TRUE(truth.showsInAnyRow) << "shows nothing";
          ASSERT_FALSE(visit.isMasked && truth.isFullInAllRows)
              << "masked in vain";
        }
      }
      for (const test::Visit &truth : all) {
        ++numBlocks;
        ASSERT_TRUE(!truth.shows || seen.count(truth.keyBlock))
            << "query block " << queryBlock << ", key block " << truth.keyBlock
            << " is missing";
      }
    }
  }

  /// Compares the visits for random plans, lengths and data.
  void run(const Mask &mask, Choice &choice, int numPlans) {
    Code code;
    Place place = {
        &code, {&code, "%b"}, {&code, "%h"}, {&code, "%i"}, {&code, "%j"}};
    std::string result = mask.write(place).name;
    for (int p = 0; p < numPlans; ++p) {
      std::string plan =
          "#attn.plan<target = cpu, block_q = " +
          std::to_string(p == 0 ? 8 : choice.between(1, 20)) +
          ", block_k = " + std::to_string(p == 0 ? 4 : choice.between(1, 12)) +
          ">";
      std::string source = write(code, result, plan);
      auto plain = compile(source, false, false);
      auto peeled = compile(source, p % 2, true);
      ASSERT_TRUE(plain && peeled);
      for (int r = 0; r < runsPerPlan; ++r) {
        Sizes sizes;
        sizes.queries = choice.between(1, 40);
        sizes.keys =
            choice.between(0, 2) == 0 ? sizes.queries : choice.between(0, 45);
        SCOPED_TRACE(source + std::to_string(sizes.queries) + " queries, " +
                     std::to_string(sizes.keys) + " keys");
        check(*plain, *peeled, makeArguments(code, sizes, choice), mask);
        if (HasFailure())
          return;
      }
    }
  }

  mlir::MLIRContext context;
  int64_t numBlocks = 0, numVisited = 0, numVisitedInVain = 0,
          numMaskedInVain = 0;
};

class VisitSetTest : public VisitSetTestBase,
                     public ::testing::WithParamInterface<size_t> {};
using RandomVisitSetTest = VisitSetTestBase;

TEST_P(VisitSetTest, EqualsEnumeration) {
  const Mask &mask = masks[GetParam()];
  Choice choice(getSeed(GetParam()));
  run(mask, choice, plansPerMask);
  std::printf("%s: %ld of %ld blocks visited, %ld in vain, %ld masked in "
              "vain\n",
              mask.name, numVisited, numBlocks, numVisitedInVain,
              numMaskedInVain);
}

INSTANTIATE_TEST_SUITE_P(Masks, VisitSetTest,
                         ::testing::Range<size_t>(0, std::size(masks)),
                         [](const auto &info) {
                           return masks[info.param].name;
                         });

/// Masks that nobody would write.
TEST_F(RandomVisitSetTest, EqualsEnumeration) {
  Choice choice(getSeed(500));
  for (int n = 0; n < numRandomMasks && !HasFailure(); ++n) {
    Mask mask = {
        "random", false, [&](const Place &place) {
          return RandomMask(choice, place).formula(choice.between(0, 3));
        }};
    run(mask, choice, 2);
  }
  std::printf("%ld of %ld blocks visited, %ld in vain, %ld masked in vain\n",
              numVisited, numBlocks, numVisitedInVain, numMaskedInVain);
}

TEST(VisitSetTable, HasManyMasks) { EXPECT_GE(std::size(masks), 40u); }

} // namespace
