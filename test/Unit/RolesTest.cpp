//===- RolesTest.cpp - kernels of more than two roles -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hand-written kernels whose roles the forward kernels do not have: what they
// compute, under several schedules, and bugs of protocol planted in them. As in
// WarpProtocolTest the table says who sees a bug, the verifier (W3 of
// warp.kernel) or the simulator, and in what words. Inputs are small integers,
// so results are exact.
//
//===----------------------------------------------------------------------===//

#include "Inputs/RoleKernels.h"
#include "Simulator/WarpSimulator.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Finding and changing operations
//===----------------------------------------------------------------------===//

/// The uses of a role in order: fills, awaits or releases.
template <typename OpTy>
static SmallVector<OpTy> listIn(KernelOp kernel, StringRef role) {
  SmallVector<OpTy> ops;
  kernel.getRole(role).walk([&](OpTy op) { ops.push_back(op); });
  return ops;
}

/// Moves operations to just before another, in order.
static void moveBefore(Operation *first, Operation *last, Operation *place) {
  Operation *next;
  for (Operation *op = first;; op = next) {
    next = op->getNextNode();
    op->moveBefore(place);
    if (op == last)
      return;
  }
}

static ArrayAttr namesOf(KernelOp kernel, ArrayRef<StringRef> names) {
  Builder builder(kernel.getContext());
  return builder.getArrayAttr(
      llvm::map_to_vector(names, [&](StringRef name) -> Attribute {
        return FlatSymbolRefAttr::get(kernel.getContext(), name);
      }));
}

static RingOp ringOf(KernelOp kernel, int64_t number) {
  return *std::next(kernel.getBodyBlock()->getOps<RingOp>().begin(), number);
}

namespace {
struct Plant {
  const char *name;
  const char *kernel;
  void (*damage)(KernelOp);
  /// What each says; null: it sees nothing.
  const char *verifier;
  const char *simulator;
};

/// For the name of a failing test.
void PrintTo(const Plant &plant, std::ostream *stream) {
  *stream << plant.name;
}
} // namespace

static const char *const deadlock = "is where no warp can go on";

static const Plant plants[] = {
    {"AnotherRoleFills", fourRoles,
     [](KernelOp kernel) {
       auto copies = listIn<CopyAsyncOp>(kernel, "left");
       copies[4]->moveBefore(listIn<CopyAsyncOp>(kernel, "right")[0]);
     },
     "fills a ring in @right, expected it in @left",
     "fills a ring that @left fills"},
    {"AnotherRoleDrains", fourRoles,
     [](KernelOp kernel) {
       ringOf(kernel, 4).setDrainersAttr(namesOf(kernel, {"first"}));
     },
     "drains a ring in @second, expected it in @first",
     "waits for an item of a ring that its role does not drain"},
    {"DrainedByOneMore", fourRoles,
     [](KernelOp kernel) {
       ringOf(kernel, 0).setDrainersAttr(namesOf(kernel, {"first", "second"}));
     },
     "does not meet its counterpart: @left and @second", deadlock},
    {"OneOfTwoDrainersStopsSooner", fourRoles,
     [](KernelOp kernel) {
       auto loop = *kernel.getRole("second")
                        .getBodyBlock()
                        ->getOps<scf::ForOp>()
                        .begin();
       loop.setUpperBound(
           loop.getStep()); // one iteration, as it starts at zero
     },
     "does not meet its counterpart: @right and @second",
     "that warp 4 never awaited"},
    {"OneOfTwoDrainersReleasesNothing", fourRoles,
     [](KernelOp kernel) {
       listIn<ReleaseOp>(kernel, "second").back()->erase();
     },
     "gives a slot that is never released", "that warp 4 never released"},
    // Each two roles agree on an order, the four of them do not: @left comes to
    // d only when @first has released a, which it does after b, for which
    // @right needs @second to release c, which it does after d.
    {"CycleOfFourRoles", fourRoles,
     [](KernelOp kernel) {
       auto loop = *kernel.getRole("first")
                        .getBodyBlock()
                        ->getOps<scf::ForOp>()
                        .begin();
       SmallVector<Operation *> uses;
       for (Operation &op : *loop->getBlock())
         if (isa<AwaitOp, ReleaseOp, MmaOp>(op))
           uses.push_back(&op);
       Value sum = cast<MmaOp>(uses[1]).getAcc();
       moveBefore(uses[9], uses.back(), uses[0]);
       for (auto product : loop->getBlock()->getOps<MmaOp>()) {
         product.getAccMutable().assign(sum);
         sum = product.getResult();
       }
       loop.getInitArgsMutable()[1].assign(sum);
     },
     "is where roles wait for each other in a cycle", deadlock},
    {"ItemHeldPastItsTurn", fourRoles,
     [](KernelOp kernel) {
       // No more than one other is held anywhere, in a ring of two.
       auto releases = listIn<ReleaseOp>(kernel, "first");
       releases[0]->moveAfter(listIn<AwaitOp>(kernel, "first")[2]);
     },
     "is later by 2 than an item that is still held", deadlock},
    {"ReleasedInTheNextTurn", twoGroups,
     [](KernelOp kernel) {
       listIn<ReleaseOp>(kernel, "softmax")[0]->moveBefore(
           listIn<AwaitOp>(kernel, "softmax")[1]);
     },
     "is later by 1 than an item that is still held", deadlock},
    {"NumbersOfOneDrainerDiffer", fourRoles,
     [](KernelOp kernel) {
       auto awaits = listIn<AwaitOp>(kernel, "second");
       awaits[1].getItemMutable().assign(awaits[0].getItem());
     },
     "is out of order", "the next of this ring is item"},
    {"AnotherRoleStores", passedOn,
     [](KernelOp kernel) {
       ringOf(kernel, 2).setFillerAttr(
           FlatSymbolRefAttr::get(kernel.getContext(), "other"));
     },
     "fills a ring in @scores, expected it in @other",
     "fills a ring that @other fills"},
    {"NothingStored", passedOn,
     [](KernelOp kernel) {
       listIn<StoreFragOp>(kernel, "scores").front()->erase();
     },
     "does not meet its counterpart: @scores and @other", deadlock},
    {"AwaitedBeforeItIsStored", passedOn,
     [](KernelOp kernel) {
       listIn<AwaitOp>(kernel, "scores")[2]->moveBefore(
           listIn<StoreFragOp>(kernel, "scores").front());
     },
     "waits for an item that its own role has not filled before", deadlock},
    {"TwoItemsAtOnce", passedOn,
     [](KernelOp kernel) {
       // Both items before both are awaited, in a ring of one.
       auto store = listIn<StoreFragOp>(kernel, "scores").front();
       OpBuilder builder(store);
       builder.setInsertionPointAfter(store);
       Location loc = store.getLoc();
       Value one = arith::ConstantIndexOp::create(builder, loc, 1);
       Value next = arith::AddIOp::create(builder, loc, store.getItem(), one);
       StoreFragOp::create(builder, loc, store.getValue(), store.getTarget(),
                           next);
     },
     "does not meet its counterpart: @scores and @other", deadlock},
    {"ReleasedByOneOfTwo", passedOn,
     [](KernelOp kernel) {
       listIn<ReleaseOp>(kernel, "other").front()->erase();
     },
     "gives a slot that is never released", deadlock},
    {"StoredTwice", passedOn,
     [](KernelOp kernel) {
       auto store = listIn<StoreFragOp>(kernel, "scores").front();
       OpBuilder(store).clone(*store);
     },
     "does not meet its counterpart: @scores and @other", "a second time"},
    // The slots have room for it; refused nevertheless.
    {"OrderOfThreeRoles", passedOn,
     [](KernelOp kernel) {
       auto awaits = listIn<AwaitOp>(kernel, "other");
       awaits[1]->moveBefore(awaits[0]);
     },
     "is where roles wait for each other in a cycle", nullptr},
    {"WrittenAndAddedTo", passedOn,
     [](KernelOp kernel) {
       listIn<StoreOp>(kernel, "scores").front().setAccumulate(false);
     },
     nullptr, "writes an element that was written before"},
    {"ReadAfterItsRelease", passedOn,
     [](KernelOp kernel) {
       auto products = listIn<MmaOp>(kernel, "scores");
       products[1]->moveBefore(listIn<StoreOp>(kernel, "scores").front());
     },
     "reads a slot that is already released", "which this warp has released"},
};

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

namespace {
class Roles : public ::testing::Test {
protected:
  static void SetUpTestSuite() { registerPassesAndPipelines(); }

  Roles() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  /// Tiles of 64x64 below each other.
  struct Tensor {
    std::vector<int> numbers;
    std::vector<uint16_t> bf16;
  };
  Tensor makeInput(int64_t rows);
  /// Adds x x^T of a tile.
  static void addSquare(const Tensor &tensor, int64_t tile,
                        std::vector<float> &sum);
  /// What a step says; it must fail if `wanted` is there, else succeed.
  void expect(const char *wanted, llvm::function_ref<LogicalResult()> step);
  LogicalResult runFourRoles(ModuleOp module, uint64_t seed);
  /// Runs a module on any input.
  LogicalResult run(ModuleOp module, uint64_t seed, float before = NAN);
  LogicalResult runPassedOn(ModuleOp module, uint64_t seed);
  /// What the tiles of the first `tiles` pairs give, by `passedOn`.
  void judgePassedOn(int64_t tiles);
  OwningOpRef<ModuleOp> parseInSlots(StringRef panels, StringRef add);

  void prepare(float before);

  static constexpr int64_t size = 64;
  std::vector<Tensor> inputs;
  std::vector<simulator::HostArgument> arguments;
  std::vector<float> out[2];
  MLIRContext context;
  std::mt19937 random{20u};
};

class PlantedInRoles : public Roles,
                       public ::testing::WithParamInterface<Plant> {};
} // namespace

Roles::Tensor Roles::makeInput(int64_t rows) {
  Tensor tensor;
  for (int64_t number = 0; number < rows * size; ++number) {
    tensor.numbers.push_back(int(random() % 5) - 2);
    llvm::APFloat value(float(tensor.numbers.back()));
    bool loses;
    value.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven,
                  &loses);
    tensor.bf16.push_back(value.bitcastToAPInt().getZExtValue());
  }
  return tensor;
}

void Roles::addSquare(const Tensor &tensor, int64_t tile,
                      std::vector<float> &sum) {
  const int *x = tensor.numbers.data() + tile * size * size;
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j)
      for (int64_t k = 0; k < size; ++k)
        sum[i * size + j] += float(x[i * size + k] * x[j * size + k]);
}

void Roles::expect(const char *wanted,
                   llvm::function_ref<LogicalResult()> step) {
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    text += diagnostic.str() + "\n";
    return success();
  });
  bool isRefused = failed(step());
  EXPECT_EQ(isRefused, wanted != nullptr) << text;
  if (wanted)
    EXPECT_NE(text.find(wanted), std::string::npos) << text;
}

void Roles::prepare(float before) {
  inputs.clear();
  arguments.clear();
  for (int number = 0; number < 5; ++number)
    inputs.push_back(makeInput(2 * size));
  for (Tensor &input : inputs)
    arguments.push_back({input.bf16.data(), {2 * size, size}, {size, 1}, 0});
  for (std::vector<float> &result : out) {
    result.assign(size * size, before);
    arguments.push_back({result.data(), {size, size}, {size, 1}, 0});
  }
}

LogicalResult Roles::run(ModuleOp module, uint64_t seed, float before) {
  prepare(before);
  return simulator::simulateWarps(module.lookupSymbol<func::FuncOp>("f"),
                                  arguments, seed);
}

LogicalResult Roles::runFourRoles(ModuleOp module, uint64_t seed) {
  if (failed(run(module, seed)))
    return failure();
  std::vector<float> expected[2];
  for (int number : {0, 1}) {
    expected[number].assign(size * size, 0);
    for (int input : {2 * number, 2 * number + 1, 4})
      for (int64_t tile : {0, 1})
        addSquare(inputs[input], tile, expected[number]);
    if (number == 0)
      addSquare(inputs[0], 0, expected[0]); // item 2 of a
  }
  for (int number : {0, 1})
    EXPECT_EQ(out[number], expected[number]) << "seed " << seed;
  return success();
}

void Roles::judgePassedOn(int64_t tiles) {
  std::vector<float> expected[2];
  for (std::vector<float> &result : expected)
    result.assign(size * size, 0);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int *a = inputs[0].numbers.data() + tile * size * size;
    const int *b = inputs[1].numbers.data() + tile * size * size;
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = 0; j < size; ++j) {
        int score = 0;
        for (int64_t k = 0; k < size; ++k)
          score += a[i * size + k] * b[j * size + k];
        for (int64_t k = 0; k < size; ++k) {
          expected[0][j * size + k] += float(score * a[i * size + k]);
          expected[1][i * size + k] += float(score * b[j * size + k]);
        }
      }
  }
  EXPECT_EQ(out[0], expected[0]);
  EXPECT_EQ(out[1], expected[1]);
}

LogicalResult Roles::runPassedOn(ModuleOp module, uint64_t seed) {
  if (failed(run(module, seed, /*before=*/0)))
    return failure();
  judgePassedOn(/*tiles=*/2);
  return success();
}

OwningOpRef<ModuleOp> Roles::parseInSlots(StringRef panels, StringRef add) {
  std::string text = storedInSlots;
  text.replace(text.find("PANELS"), 6, panels.str());
  text.replace(text.find("ADD"), 3, add.str());
  for (size_t at; (at = text.find("ATOM")) != std::string::npos;)
    text.replace(at, 4, panels.empty() ? "mma_sync" : "wgmma");
  return parseSourceString<ModuleOp>(text, &context);
}

TEST_F(Roles, PassedOn) {
  auto module = parseSourceString<ModuleOp>(passedOn, &context);
  ASSERT_TRUE(module);
  for (uint64_t seed = 0; seed < 16; ++seed)
    EXPECT_TRUE(succeeded(runPassedOn(*module, seed)));
}

TEST_F(Roles, StoredInSlots) {
  for (const char *panels : {"", ", panels<128>"}) {
    auto module = parseInSlots(panels, "accumulate");
    ASSERT_TRUE(module);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      ASSERT_TRUE(succeeded(run(*module, seed, /*before=*/0)));
      judgePassedOn(/*tiles=*/1);
    }
  }
}

// The lanes of sm_80: where they write, and how they read what is transposed.
TEST_F(Roles, LanesOfSlots) {
  auto module = parseInSlots("", "");
  ASSERT_TRUE(module);
  PassManager manager(&context);
  ASSERT_TRUE(succeeded(parsePassPipeline(
      "func.func(warp-assign-resources),convert-warp-to-gpu", manager)));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  prepare(/*before=*/NAN);
  ASSERT_TRUE(succeeded(
      simulator::simulate(module->lookupSymbol<func::FuncOp>("f"), arguments)));
  judgePassedOn(/*tiles=*/1);
}

// A product that reads a slot while the slot is stored to.
TEST_F(Roles, StoredBesideAProductInFlight) {
  auto module = parseInSlots(", panels<128>", "");
  ASSERT_TRUE(module);
  StoreFragOp store;
  MmaOp last;
  module->walk([&](StoreFragOp op) { store = op; });
  module->walk([&](MmaOp op) { last = op; });
  OpBuilder builder(last);
  auto issue = MmaAsyncOp::create(builder, last.getLoc(), last.getAtom(),
                                  last.getA(), last.getB(), last.getAcc(),
                                  last.getTransposeA(), last.getTransposeB());
  builder.clone(*store);
  auto wait = WaitOp::create(builder, last.getLoc(), last.getAcc().getType(),
                             issue.getResult());
  last.replaceAllUsesWith(wait.getResult());
  last.erase();
  expect("writes a slot that a product in flight still reads",
         [&] { return verify(*module); });
  expect("overwrites a slot that a product in flight of warp",
         [&] { return run(*module, 0); });
}

TEST_F(Roles, FourRoles) {
  auto module = parseSourceString<ModuleOp>(fourRoles, &context);
  ASSERT_TRUE(module);
  for (uint64_t seed = 0; seed < 16; ++seed)
    EXPECT_TRUE(succeeded(runFourRoles(*module, seed)));
}

TEST_P(PlantedInRoles, IsSeen) {
  const Plant &plant = GetParam();
  auto module = parseSourceString<ModuleOp>(plant.kernel, &context);
  ASSERT_TRUE(module);
  KernelOp kernel;
  module->walk([&](KernelOp op) { kernel = op; });
  plant.damage(kernel);
  ASSERT_TRUE(plant.verifier || plant.simulator);
  expect(plant.verifier, [&] { return verify(*module); });
  expect(plant.simulator, [&]() -> LogicalResult {
    for (uint64_t seed = 0; seed < 8; ++seed)
      if (failed(run(*module, seed)))
        return failure();
    return success();
  });
}

INSTANTIATE_TEST_SUITE_P(Planted, PlantedInRoles, ::testing::ValuesIn(plants),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
