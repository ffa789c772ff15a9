//===- ProgramsTest.cpp - programs written in the Warp room -----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The programs of test/Programs run under several schedules, those of sm_80
// also lane by lane, and their numbers are compared with float64. Then bugs are
// planted in them: the table says who sees them, the verifier, the simulator or
// the numbers.
//
//===----------------------------------------------------------------------===//

#include "Inputs/ProgramRuns.h"
#include "Simulator/WarpSimulator.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
class Programs : public ::testing::Test {
protected:
  static void SetUpTestSuite() { registerPassesAndPipelines(); }

  Programs() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  OwningOpRef<ModuleOp> load(StringRef file, bool isF16);
  LogicalResult simulate(ModuleOp module, ProgramRun &run, uint64_t seed);
  void check(StringRef file, ProgramRun run, bool isF16);

  MLIRContext context;
};

} // namespace

OwningOpRef<ModuleOp> Programs::load(StringRef file, bool isF16) {
  std::string path = (ATTN_PROGRAMS_DIR "/" + file + ".mlir").str();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return nullptr;
  std::string text = (*buffer)->getBuffer().str();
  for (size_t at; isF16 && (at = text.find("bf16")) != std::string::npos;)
    text.erase(at, 1);
  return parseSourceString<ModuleOp>(text, &context);
}

LogicalResult Programs::simulate(ModuleOp module, ProgramRun &run,
                                 uint64_t seed) {
  SmallVector<simulator::HostArgument> arguments;
  for (auto [tensor, expected] : llvm::zip_equal(run.tensors, run.expected)) {
    if (!expected.empty()) {
      tensor.values.assign(tensor.count(), std::nan(""));
      tensor.write();
    }
    arguments.push_back(tensor.argument());
  }
  return simulator::simulateWarps(*module.getOps<func::FuncOp>().begin(),
                                  arguments, seed);
}

void Programs::check(StringRef file, ProgramRun run, bool isF16) {
  SCOPED_TRACE(file.str() + (isF16 ? " f16" : " bf16"));
  OwningOpRef<ModuleOp> module = load(file, isF16);
  ASSERT_TRUE(module);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    ASSERT_TRUE(succeeded(simulate(*module, run, seed)));
    EXPECT_LE(run.judge(), 1);
  }
}

TEST_F(Programs, SplitKeys) {
  for (const char *file : {"split-keys-sm80", "split-keys-sm90"})
    for (bool half : {false, true}) {
      check(file, splitKeys(/*queries=*/100, /*keys=*/300, half), half);
      // The last part has no keys; there are none at all.
      check(file, splitKeys(/*queries=*/64, /*keys=*/70, half), half);
      check(file, splitKeys(/*queries=*/3, /*keys=*/0, half), half);
    }
}

TEST_F(Programs, PagedKeys) {
  for (const char *file : {"paged-keys-sm80", "paged-keys-sm90"})
    for (bool half : {false, true}) {
      check(file, pagedKeys(half), half);
    }
}

TEST_F(Programs, Backward) {
  for (const char *file : {"backward-sm80", "backward-sm90"})
    for (bool half : {false, true}) {
      check(file, backward(half), half);
    }
}

// Where lanes read and write.
TEST_F(Programs, LanesOfAmpere) {
  for (const char *file :
       {"split-keys-sm80", "paged-keys-sm80", "backward-sm80"}) {
    SCOPED_TRACE(file);
    OwningOpRef<ModuleOp> module = load(file, /*isF16=*/false);
    ASSERT_TRUE(module);
    PassManager manager(&context);
    ASSERT_TRUE(succeeded(parsePassPipeline(
        "func.func(warp-assign-resources),convert-warp-to-gpu", manager)));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    ProgramRun run = makeRun(file);
    SmallVector<simulator::HostArgument> arguments;
    for (Tensor &tensor : run.tensors)
      arguments.push_back(tensor.argument());
    ASSERT_TRUE(succeeded(simulator::simulate(
        *module->getOps<func::FuncOp>().begin(), arguments)));
    EXPECT_LE(run.judge(), 1);
  }
}

//===----------------------------------------------------------------------===//
// Planted bugs
//===----------------------------------------------------------------------===//

template <typename OpTy> static OpTy opOf(ModuleOp module, int64_t number) {
  SmallVector<OpTy> ops;
  module.walk([&](OpTy op) { ops.push_back(op); });
  return ops[number < 0 ? ops.size() + number : number];
}

namespace {
struct Plant {
  const char *name;
  const char *file;
  void (*damage)(ModuleOp);
  /// What each says; null: nothing. If neither says anything, numbers are
  /// wrong.
  const char *verifier;
  const char *simulator;
};

void PrintTo(const Plant &plant, std::ostream *stream) {
  *stream << plant.name;
}

class PlantedInPrograms : public Programs,
                          public ::testing::WithParamInterface<Plant> {};
} // namespace

static ReleaseOp releaseOf(LoadFragOp load) {
  for (Operation *user : load.getSlot().getUsers())
    if (auto release = dyn_cast<ReleaseOp>(user))
      return release;
  return {};
}

static const char *const deadlock = "is where no warp can go on";

static const Plant plants[] = {
    {"RowReadAfterItsRelease", "split-keys-sm90",
     [](ModuleOp module) {
       auto load = opOf<LoadFragOp>(module, 0);
       load->moveAfter(releaseOf(load));
     },
     "reads a slot that is already released", "which this warp has released"},
    {"RowNeverReleased", "backward-sm90",
     [](ModuleOp module) { releaseOf(opOf<LoadFragOp>(module, 0))->erase(); },
     "gives a slot that is never released", "never released"},
    {"RowOfOneOfTwoCopies", "backward-sm90",
     [](ModuleOp module) { opOf<CopyAsyncOp>(module, 5)->erase(); },
     "does not meet its counterpart: @load and @scores", deadlock},
    {"RowBesideTheWrongTile", "backward-sm90",
     [](ModuleOp module) {
       auto lse = opOf<CopyAsyncOp>(module, 3);
       auto delta = opOf<CopyAsyncOp>(module, 5);
       Value view = lse.getView();
       lse.getViewMutable().assign(delta.getView());
       delta.getViewMutable().assign(view);
     },
     nullptr, nullptr},
    {"PagesInAnotherOrder", "paged-keys-sm90",
     [](ModuleOp module) {
       auto copy = opOf<CopyAsyncOp>(module, 1);
       Value first = copy.getBox(0)[0], second = copy.getBox(1)[0];
       copy->replaceUsesOfWith(first, second);
       copy.getIndicesMutable()[4].assign(first);
     },
     nullptr, nullptr},
    {"PagesInUnequalParts", "paged-keys-sm90",
     [](ModuleOp module) {
       auto copy = opOf<CopyAsyncOp>(module, 1);
       copy.getIndicesMutable().erase(12, 4);
       copy.setBoxes(3);
     },
     "fills 64 rows from 3 boxes", nullptr},
    {"LoadedBeforeItIsStored", "split-keys-sm90",
     [](ModuleOp module) {
       opOf<KernelOp>(module, 1)->moveBefore(opOf<KernelOp>(module, 0));
     },
     nullptr, nullptr},
    {"NotZeroed", "backward-sm90",
     [](ModuleOp module) {
       opOf<memref::AllocOp>(module, 0)->removeAttr(
           WarpDialect::kZeroedAttrName);
     },
     nullptr, nullptr},
    {"StoredInPlaceOfAdded", "backward-sm90",
     [](ModuleOp module) {
       module.walk([](StoreOp store) { store.setAccumulate(false); });
     },
     nullptr, "writes an element that was written before"},
    {"StagedInAReleasedSlot", "backward-sm90",
     [](ModuleOp module) {
       auto store = opOf<StoreOp>(module, -1);
       OpBuilder builder(store);
       StoreOp::create(
           builder, store.getLoc(), opOf<LoadFragOp>(module, -1).getResult(),
           opOf<memref::AllocOp>(module, 0),
           ValueRange(opOf<CopyAsyncOp>(module, -1).getIndices()),
           /*sliceEnd=*/Value(), opOf<AwaitOp>(module, -1).getSlot(),
           /*rows=*/false,
           /*accumulate=*/true, /*packed=*/false, /*slices=*/1, CopyAtom::TMA);
     },
     "reads a slot that is already released", "which this warp does not hold"},
    {"FilledByTheOtherRole", "backward-sm90",
     [](ModuleOp module) {
       auto kernel = opOf<KernelOp>(module, 0);
       for (auto ring : kernel.getBodyBlock()->getOps<RingOp>())
         if (getFiller(ring.getRing()) == "scores")
           ring.setFillerAttr(
               FlatSymbolRefAttr::get(module.getContext(), "queries"));
     },
     "fills a ring in @scores, expected it in @queries",
     "fills a ring that @queries fills"},
};

TEST_P(PlantedInPrograms, IsSeen) {
  const Plant &plant = GetParam();
  OwningOpRef<ModuleOp> module = load(plant.file, /*isF16=*/false);
  ASSERT_TRUE(module);
  plant.damage(*module);
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    text += diagnostic.str() + "\n";
    return success();
  });
  auto expect = [&](const char *wanted, bool isRefused) {
    EXPECT_EQ(isRefused, wanted != nullptr) << text;
    if (wanted)
      EXPECT_NE(text.find(wanted), std::string::npos) << text;
    text.clear();
  };
  bool isRefused = failed(verify(*module));
  expect(plant.verifier, isRefused);
  if (plant.verifier && !plant.simulator)
    return; // no program
  ProgramRun run = makeRun(plant.file);
  isRefused = failed(simulate(*module, run, /*seed=*/0));
  expect(plant.simulator, isRefused);
  if (!plant.simulator)
    EXPECT_GT(run.judge(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedInPrograms, ::testing::ValuesIn(plants));
