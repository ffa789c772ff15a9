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

#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Simulator/WarpSimulator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Two roles that copy and two that compute. Each of the latter drains a ring
/// of each of the former: out0 = sum of x x^T over the tiles of a and b, out1
/// of c and d. Both drain the ring of e.
static const char *const fourRoles = R"mlir(
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!ring = !warp.ring<1, 64x64xbf16, panels<128>>
!two = !warp.ring<2, 64x64xbf16, panels<128>>
!tile = !warp.slot<64x64xbf16, panels<128>>
!acc = !warp.frag<64x64xf32, acc, 4>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(16) {
    %A = warp.ring fills(@left) drains(@first) : !two
    %B = warp.ring fills(@right) drains(@first) : !ring
    %C = warp.ring fills(@right) drains(@second) : !ring
    %D = warp.ring fills(@left) drains(@second) : !ring
    %E = warp.ring fills(@right) drains(@first, @second) : !two
    warp.role @left copy warps(4) registers(24) {
      warp.copy_async %a[%c0, %c0] to %A[%c0] : !view, !two
      warp.copy_async %a[%c64, %c0] to %A[%c1] : !view, !two
      warp.copy_async %a[%c0, %c0] to %A[%c2] : !view, !two
      warp.copy_async %d[%c0, %c0] to %D[%c0] : !view, !ring
      warp.copy_async %d[%c64, %c0] to %D[%c1] : !view, !ring
    }
    warp.role @right copy warps(4) registers(24) {
      warp.copy_async %c[%c0, %c0] to %C[%c0] : !view, !ring
      warp.copy_async %c[%c64, %c0] to %C[%c1] : !view, !ring
      warp.copy_async %b[%c0, %c0] to %B[%c0] : !view, !ring
      warp.copy_async %b[%c64, %c0] to %B[%c1] : !view, !ring
      %n = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0) -> (index) {
        %row = arith.muli %i, %c64 : index
        warp.copy_async %e[%row, %c0] to %E[%item] : !view, !two
        %next = arith.addi %item, %c1 : index
        scf.yield %next : index
      }
    }
    warp.role @first compute warps(4) registers(232) {
      %s0 = warp.splat %zero : !acc
      %a0 = warp.await %A[%c0] : !two -> !tile
      %s1 = warp.mma %a0, %a0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %a0 : !tile
      %a1 = warp.await %A[%c1] : !two -> !tile
      %sa = warp.mma %a1, %a1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %a1 : !tile
      %a2 = warp.await %A[%c2] : !two -> !tile
      %s2 = warp.mma %a2, %a2, %sa transpose_b : !tile, !tile, !acc
      warp.release %a2 : !tile
      %b0 = warp.await %B[%c0] : !ring -> !tile
      %s3 = warp.mma %b0, %b0, %s2 transpose_b : !tile, !tile, !acc
      warp.release %b0 : !tile
      %b1 = warp.await %B[%c1] : !ring -> !tile
      %s4 = warp.mma %b1, %b1, %s3 transpose_b : !tile, !tile, !acc
      warp.release %b1 : !tile
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %s = %s4) -> (index, !acc) {
        %t = warp.await %E[%item] : !two -> !tile
        %next = arith.addi %item, %c1 : index
        %sum = warp.mma %t, %t, %s transpose_b : !tile, !tile, !acc
        warp.release %t : !tile
        scf.yield %next, %sum : index, !acc
      }
      warp.store %r#1, %out0[%c0, %c0] : !acc, !out
    }
    warp.role @second compute warps(4) registers(232) {
      %s0 = warp.splat %zero : !acc
      %d0 = warp.await %D[%c0] : !ring -> !tile
      %s1 = warp.mma %d0, %d0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %d0 : !tile
      %d1 = warp.await %D[%c1] : !ring -> !tile
      %s2 = warp.mma %d1, %d1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %d1 : !tile
      %t0 = warp.await %C[%c0] : !ring -> !tile
      %s3 = warp.mma %t0, %t0, %s2 transpose_b : !tile, !tile, !acc
      warp.release %t0 : !tile
      %t1 = warp.await %C[%c1] : !ring -> !tile
      %s4 = warp.mma %t1, %t1, %s3 transpose_b : !tile, !tile, !acc
      warp.release %t1 : !tile
      %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%item = %c0, %s = %s4) -> (index, !acc) {
        %t = warp.await %E[%item] : !two -> !tile
        %next = arith.addi %item, %c1 : index
        %sum = warp.mma %t, %t, %s transpose_b : !tile, !tile, !acc
        warp.release %t : !tile
        scf.yield %next, %sum : index, !acc
      }
      warp.store %r#1, %out1[%c0, %c0] : !acc, !out
    }
  }
  return
}
)mlir";

/// Two groups that take turns to await.
static const char *const twoGroups = R"mlir(
!view = memref<?x64xbf16, strided<[?, 1]>>
!out = memref<?x64xf32, strided<[?, 1]>>
!ring = !warp.ring<1, 128x64xbf16, panels<128>>
!tile = !warp.slot<128x64xbf16, panels<128>>
!acc = !warp.frag<128x128xf32, acc, 8>
func.func @f(%a: !view, %b: !view, %c: !view, %d: !view, %e: !view,
             %out0: !out, %out1: !out) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  warp.kernel @k blocks(%x, %y, %z) in (%c1, %c1, %c1) warps(12) {
    %A = warp.ring fills(@load) drains(@softmax) : !ring
    warp.role @load copy warps(4) registers(24) {
      warp.copy_async %a[%c0, %c0] to %A[%c0] : !view, !ring
      warp.copy_async %a[%c0, %c0] to %A[%c1] : !view, !ring
    }
    warp.role @softmax compute warps(8) registers(232) {
      %s0 = warp.splat %zero : !acc
      %a0 = warp.turn {
        %1 = warp.await %A[%c0] : !ring -> !tile
        warp.yield %1 : !tile
      } : !tile
      %s1 = warp.mma %a0, %a0, %s0 transpose_b : !tile, !tile, !acc
      warp.release %a0 : !tile
      %a1 = warp.turn {
        %1 = warp.await %A[%c1] : !ring -> !tile
        warp.yield %1 : !tile
      } : !tile
      %s2 = warp.mma %a1, %a1, %s1 transpose_b : !tile, !tile, !acc
      warp.release %a1 : !tile
    }
  }
  return
}
)mlir";

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
};

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

namespace {
class Roles : public ::testing::Test {
protected:
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
  LogicalResult run(ModuleOp module, uint64_t seed);

  static constexpr int64_t size = 64;
  std::vector<Tensor> inputs;
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

LogicalResult Roles::run(ModuleOp module, uint64_t seed) {
  inputs.clear();
  for (int number = 0; number < 5; ++number)
    inputs.push_back(makeInput(2 * size));
  std::vector<simulator::Argument> arguments;
  for (Tensor &input : inputs)
    arguments.push_back({input.bf16.data(), {2 * size, size}, {size, 1}, 0});
  for (std::vector<float> &result : out) {
    result.assign(size * size, NAN);
    arguments.push_back({result.data(), {size, size}, {size, 1}, 0});
  }
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
