//===- WarpProtocolTest.cpp - planted bugs and who sees them ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bugs of protocol planted in good warp kernels. The verifier (W1 to W5 of
// warp.kernel) or the simulator has to see each; the table says who, in what
// words.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"
#include "Simulator/WarpSimulator.h"
#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Pipelines/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Finding operations
//===----------------------------------------------------------------------===//

enum Operand { Query, Key, Value_ };

static RingOp ringOf(KernelOp kernel, Operand operand) {
  return *std::next(kernel.getBodyBlock()->getOps<RingOp>().begin(), operand);
}

static bool isInLoop(Operation *op) {
  return op->getParentOfType<scf::ForOp>() != nullptr;
}

/// The first use of a ring by an operation of a kind, in a loop or not.
template <typename OpTy>
static OpTy find(KernelOp kernel, Operand operand, bool inLoop = true) {
  OpTy found;
  kernel.walk([&](OpTy op) {
    if (!found && op.getRing() == ringOf(kernel, operand).getRing() &&
        isInLoop(op) == inLoop)
      found = op;
  });
  return found;
}

template <typename OpTy> static OpTy findUser(Value value) {
  for (Operation *user : value.getUsers())
    if (auto op = dyn_cast<OpTy>(user))
      return op;
  return {};
}

static ReleaseOp findRelease(KernelOp kernel, Operand operand,
                             bool inLoop = true) {
  return findUser<ReleaseOp>(find<AwaitOp>(kernel, operand, inLoop).getSlot());
}

/// The first operation of a kind in a loop over tiles that are handed out.
template <typename OpTy> static OpTy findInTiles(KernelOp kernel) {
  OpTy found;
  kernel.walk([&](OpTy op) {
    if (!found && op->template getParentOfType<scf::WhileOp>())
      found = op;
  });
  return found;
}

static scf::WhileOp findTileLoop(KernelOp kernel, StringRef role) {
  return *kernel.getRole(role).getBodyBlock()->getOps<scf::WhileOp>().begin();
}

/// The loop over blocks that a group of the consumer passes over.
static scf::ForOp findPassedBlocks(KernelOp kernel) {
  scf::ForOp found;
  kernel.walk([&](scf::ForOp loop) {
    if (!found && getPassedEnd(loop))
      found = loop;
  });
  return found;
}

/// The store of the output.
static StoreOp findStore(KernelOp kernel) {
  StoreOp found;
  kernel.walk([&](StoreOp op) {
    if (!op.getRows())
      found = op;
  });
  return found;
}

/// The first operation of a kind in a loop.
template <typename OpTy> static OpTy findInLoop(KernelOp kernel) {
  OpTy found;
  kernel.walk([&](OpTy op) {
    if (!found && isInLoop(op))
      found = op;
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Changing them
//===----------------------------------------------------------------------===//

static void addToItem(OpOperand &item, int64_t number) {
  OpBuilder builder(item.getOwner());
  Location loc = item.getOwner()->getLoc();
  Value constant = arith::ConstantIndexOp::create(builder, loc, number);
  item.set(arith::AddIOp::create(builder, loc, item.get(), constant));
}

static void setDepth(RingOp ring, int64_t depth) {
  RingType type = ring.getRing().getType();
  ring.getRing().setType(RingType::get(type.getContext(), depth,
                                       type.getShape(), type.getElementType(),
                                       type.getPanelBytes()));
}

/// Whether this warp holds a row of the tile from `first` on.
static Value voteOnRows(OpBuilder &builder, Location loc, int64_t first,
                        int64_t warps) {
  Type i32 = builder.getI32Type();
  auto type =
      FragType::get(builder.getContext(), {128, 1}, i32, FragKind::Acc, warps);
  Value zero = arith::ConstantIntOp::create(builder, loc, 0, 32);
  Value limit = arith::ConstantIntOp::create(builder, loc, first, 32);
  Value rows = CoordsOp::create(builder, loc, type, zero, 0);
  Value limits = SplatOp::create(builder, loc, type, limit);
  auto bits = FragType::get(builder.getContext(), {128, 1}, builder.getI1Type(),
                            FragKind::Acc, warps);
  OperationState state(loc, arith::CmpIOp::getOperationName());
  state.addOperands({rows, limits});
  state.addTypes(bits);
  state.addAttribute("predicate",
                     arith::CmpIPredicateAttr::get(builder.getContext(),
                                                   arith::CmpIPredicate::sge));
  Value late = builder.create(state)->getResult(0);
  return AnyOp::create(builder, loc, builder.getI1Type(), late);
}

/// A turn with nothing in it.
static void addTurn(OpBuilder &builder, Location loc) {
  auto turn = TurnOp::create(builder, loc, TypeRange());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&turn.getBody());
  YieldOp::create(builder, loc);
}

static void erase(Operation *op) { op->erase(); }

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {
/// Roles: TMA, roles, products in flight, turns. Tiles: roles, tiles that are
/// drawn, groups that pass over blocks. Ends: these, with turns at the ends of
/// tiles. Rings: sm_80 with two slots. Slots: sm_90a without rings, products in
/// flight.
enum class Form { Roles, Tiles, Ends, Rings, Slots };

struct Plant {
  const char *name;
  Form form;
  void (*damage)(KernelOp);
  /// What the verifier says; null: it sees nothing.
  const char *verifier;
  /// What the simulator says; null: it sees nothing.
  const char *simulator;
};

/// For the name of a failing test.
void PrintTo(const Plant &plant, std::ostream *stream) {
  *stream << plant.name;
}
} // namespace

static const char *const deadlock = "is where no warp can go on";

static const Plant plants[] = {
    {"MissingRelease", Form::Roles,
     [](KernelOp kernel) { erase(findRelease(kernel, Key)); },
     "gives a slot that is never released", deadlock},
    {"MissingReleaseOfTheLastItem", Form::Roles,
     [](KernelOp kernel) { erase(findRelease(kernel, Query, false)); },
     "gives a slot that is never released",
     "ends with item 0 that warp 0 never released"},
    {"ReleaseBeforeTheWait", Form::Roles,
     [](KernelOp kernel) {
       findRelease(kernel, Key)->moveBefore(findInLoop<WaitOp>(kernel));
     },
     "releases a slot that a product in flight still reads",
     "which a product in flight still reads"},
    {"ReleaseTwice", Form::Roles,
     [](KernelOp kernel) {
       ReleaseOp release = findRelease(kernel, Key);
       OpBuilder(release).clone(*release);
     },
     "releases a slot that is already released", "a second time"},
    {"ReleaseBeforeTheProduct", Form::Roles,
     [](KernelOp kernel) {
       findRelease(kernel, Key)->moveBefore(findInLoop<TurnOp>(kernel));
     },
     "reads a slot that is already released", "reads item"},
    {"MissingArrive", Form::Roles,
     [](KernelOp kernel) { erase(find<CopyAsyncOp>(kernel, Value_)); },
     "does not meet its counterpart", deadlock},
    {"ProducerStopsOneBlockShort", Form::Roles,
     [](KernelOp kernel) {
       auto loop =
           find<CopyAsyncOp>(kernel, Key)->getParentOfType<scf::ForOp>();
       OpBuilder builder(loop);
       Value one = arith::ConstantIndexOp::create(builder, loop.getLoc(), 1);
       loop.setUpperBound(arith::SubIOp::create(builder, loop.getLoc(),
                                                loop.getUpperBound(), one));
     },
     "does not meet its counterpart", deadlock},
    {"TwoProducers", Form::Roles,
     [](KernelOp kernel) {
       RoleOp producer = kernel.getRole("load");
       OpBuilder(producer).clone(*producer);
     },
     "redefinition of symbol named 'load'",
     "copies item 0, the next of this ring is item 1"},
    {"ConsumerSkipsAnItem", Form::Roles,
     [](KernelOp kernel) {
       addToItem(find<AwaitOp>(kernel, Key).getItemMutable(), 1);
     },
     "is out of order", "the next of this ring is item"},
    {"ProducerSkipsAnItem", Form::Roles,
     [](KernelOp kernel) {
       addToItem(find<CopyAsyncOp>(kernel, Value_).getItemMutable(), 1);
     },
     "is out of order", "the next of this ring is item"},
    {"AcquireWithoutRelease", Form::Roles,
     [](KernelOp kernel) {
       AwaitOp await = find<AwaitOp>(kernel, Key);
       Value item = await.getItem();
       OpBuilder builder(await->getBlock()->getTerminator());
       Value one = arith::ConstantIndexOp::create(builder, await.getLoc(), 1);
       Value next = arith::AddIOp::create(builder, await.getLoc(), item, one);
       AwaitOp::create(builder, await.getLoc(), await.getSlot().getType(),
                       await.getRing(), next);
     },
     "gives a slot that is never released", "the next of this ring is item"},
    {"HeldThroughALoop", Form::Roles,
     [](KernelOp kernel) {
       ReleaseOp release = findRelease(kernel, Key, false);
       release->moveBefore(release->getBlock()->getTerminator());
     },
     "while another is held through the loop", deadlock},
    {"TurnOfSomeGroups", Form::Roles,
     [](KernelOp kernel) {
       TurnOp turn = findInLoop<TurnOp>(kernel);
       OpBuilder builder(turn);
       Location loc = turn.getLoc();
       Value late = voteOnRows(builder, loc, 64, 8);
       auto branch = scf::IfOp::create(builder, loc, late, false);
       builder.setInsertionPointToStart(branch.thenBlock());
       addTurn(builder, loc);
     },
     "stands under 'scf.if'", "another group takes another turn"},
    {"SwappedTurns", Form::Roles,
     [](KernelOp kernel) {
       TurnOp turn = findInLoop<TurnOp>(kernel);
       OpBuilder builder(turn);
       Location loc = turn.getLoc();
       Value late = voteOnRows(builder, loc, 64, 8);
       auto branch = scf::IfOp::create(builder, loc, late, true);
       for (Block *block : {branch.thenBlock(), branch.elseBlock()}) {
         builder.setInsertionPointToStart(block);
         addTurn(builder, loc);
       }
     },
     "stands under 'scf.if'", "another group takes another turn"},
    {"ProductOfSomeWarps", Form::Roles,
     [](KernelOp kernel) {
       auto product = findInLoop<MmaAsyncOp>(kernel);
       OpBuilder builder(product->getParentOfType<TurnOp>());
       Location loc = product.getLoc();
       Value late = voteOnRows(builder, loc, 120, 8);
       auto branch = scf::IfOp::create(builder, loc, late, false);
       builder.setInsertionPointToStart(branch.thenBlock());
       MmaOp::create(builder, loc, product.getAcc().getType(),
                     product.getAtom(), product.getA(), product.getB(),
                     product.getAcc(), product.getTransposeA(),
                     product.getTransposeB());
     },
     "stands where some warps may not come",
     "the other warps of its group issue another"},
    {"WaitTwice", Form::Roles,
     [](KernelOp kernel) {
       WaitOp wait = findInLoop<WaitOp>(kernel);
       OpBuilder builder(wait);
       builder.setInsertionPointAfter(wait);
       builder.clone(*wait);
     },
     "waits for a value that was already waited for",
     "waits for a product that was waited for before"},
    {"NeverWaited", Form::Roles,
     [](KernelOp kernel) {
       auto product = findInLoop<MmaAsyncOp>(kernel);
       OpBuilder builder(product);
       builder.clone(*product);
     },
     "gives a pending value that is never waited for",
     "which a product in flight still reads"},
    {"ResultViaAReleasedSlot", Form::Roles,
     [](KernelOp kernel) {
       findStore(kernel).getStagingMutable().assign(
           find<AwaitOp>(kernel, Query, false).getSlot());
     },
     "reads a slot that is already released", "which this warp does not hold"},
    {"ResultViaASlotOfAllWarps", Form::Roles,
     [](KernelOp kernel) {
       AwaitOp await = find<AwaitOp>(kernel, Value_, false);
       StoreOp store = findStore(kernel);
       store.getStagingMutable().assign(await.getSlot());
       findUser<ReleaseOp>(await.getSlot())->moveAfter(store);
     },
     "goes via a slot that all warps read", "slot that a"},
    {"TileNotSent", Form::Tiles,
     [](KernelOp kernel) { erase(findInTiles<SendOp>(kernel)); },
     "does not meet its counterpart", deadlock},
    {"TileTakenTwice", Form::Tiles,
     [](KernelOp kernel) {
       addToItem(findInTiles<ReceiveOp>(kernel).getItemMutable(), -1);
     },
     "is out of order", "the next of this ring is item"},
    {"TileSentTooEarly", Form::Tiles,
     [](KernelOp kernel) {
       addToItem(findInTiles<SendOp>(kernel).getItemMutable(), 1);
     },
     "is out of order", "the next of this ring is item"},
    {"FirstTileNotTaken", Form::Tiles,
     [](KernelOp kernel) {
       auto loop = findTileLoop(kernel, "softmax");
       Value first = loop.getInits().front();
       auto take = first.getDefiningOp<ReceiveOp>();
       for (Value taken : take.getValues())
         taken.replaceAllUsesWith(kernel.getBody().getArgument(0));
       erase(take);
     },
     "does not meet its counterpart", "the next of this ring is item 0"},
    {"AnotherTileSent", Form::Tiles,
     [](KernelOp kernel) {
       auto send = findInTiles<SendOp>(kernel);
       send.getValuesMutable()[0].assign(kernel.getBody().getArgument(0));
     },
     "do not stay the same", deadlock},
    {"BoundsOfAnotherTile", Form::Tiles,
     [](KernelOp kernel) {
       auto send = findInTiles<SendOp>(kernel);
       OpBuilder builder(send);
       unsigned last = send.getValues().size() - 1;
       Value one = arith::ConstantIndexOp::create(builder, send.getLoc(), 1);
       send.getValuesMutable()[last].assign(arith::AddIOp::create(
           builder, send.getLoc(), send.getValues()[last], one));
     },
     "do not stay the same", deadlock},
    {"ConsumerStopsSooner", Form::Tiles,
     [](KernelOp kernel) {
       auto loop = findTileLoop(kernel, "softmax");
       auto compare =
           loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
       compare.setPredicate(arith::CmpIPredicate::ugt);
     },
     "does not meet its counterpart", deadlock},
    {"ConsumerDraws", Form::Tiles,
     [](KernelOp kernel) {
       DrawOp draw = findInTiles<DrawOp>(kernel);
       OpBuilder builder(findInTiles<ReceiveOp>(kernel));
       builder.clone(*draw);
     },
     "may not stand in a role that computes",
     "is drawn by a warp of a role that does not copy"},
    {"BlocksNotPassedOver", Form::Tiles,
     [](KernelOp kernel) {
       scf::ForOp loop = findPassedBlocks(kernel);
       loop.replaceAllUsesWith(loop.getInitArgs());
       erase(loop);
     },
     "does not meet its counterpart", deadlock},
    {"BlocksOfOneRingPassedOver", Form::Tiles,
     [](KernelOp kernel) {
       scf::ForOp loop = findPassedBlocks(kernel);
       AwaitOp await = *loop.getBody()->getOps<AwaitOp>().begin();
       erase(findUser<ReleaseOp>(await.getSlot()));
       erase(await);
     },
     "uses other items or turns", deadlock},
    {"BlocksPassedOverWithoutTurns", Form::Tiles,
     [](KernelOp kernel) {
       scf::ForOp loop = findPassedBlocks(kernel);
       erase(*loop.getBody()->getOps<TurnOp>().begin());
     },
     "uses other items or turns", deadlock},
    {"TurnOfTheFirstGroup", Form::Tiles,
     [](KernelOp kernel) {
       // After the last tile, so that nobody waits for the others.
       RoleOp role = kernel.getRole("softmax");
       auto tiles = findTileLoop(kernel, "softmax");
       OpBuilder builder(tiles->getContext());
       builder.setInsertionPointAfter(tiles);
       Location loc = tiles.getLoc();
       Value one = arith::ConstantIndexOp::create(builder, loc, 1);
       auto loop = scf::ForOp::create(builder, loc, role.getGroup(), one, one);
       builder.setInsertionPointToStart(loop.getBody());
       addTurn(builder, loc);
     },
     "stands in a loop whose bounds depend on the group", "ends with"},
    {"BlocksPassedOverTooSoon", Form::Tiles,
     [](KernelOp kernel) {
       scf::ForOp loop = findPassedBlocks(kernel);
       AwaitOp last = find<AwaitOp>(kernel, Value_, false);
       loop->moveBefore(last);
     },
     "passes over blocks before others", "the next of this ring is item"},
    {"BlockPassedOverByNobody", Form::Tiles,
     [](KernelOp kernel) {
       scf::ForOp loop = findPassedBlocks(kernel);
       addToItem(loop.getLowerBoundMutable(), 1);
     },
     "passes over blocks from another on than the end of its group's",
     "never awaited"},
    {"GroupWithoutBlocks", Form::Tiles,
     [](KernelOp kernel) {
       // Of rows after the end of the queries a group sees nothing.
       Value end = findPassedBlocks(kernel).getLowerBound();
       auto most = end.getDefiningOp<arith::MinSIOp>();
       auto least = most.getLhs().getDefiningOp<arith::MaxSIOp>();
       most.getLhsMutable().assign(least.getLhs());
     },
     "bounds that are not known to be in order", deadlock},
    {"CopyBesideAProductInFlight", Form::Slots,
     [](KernelOp kernel) {
       auto product = findInLoop<MmaAsyncOp>(kernel);
       auto copy = findUser<CopyOp>(product.getB());
       OpBuilder builder(product);
       builder.setInsertionPointAfter(product);
       builder.clone(*copy);
     },
     "writes a slot that a product in flight still reads",
     "overwrites a slot that a product in flight of warp"},
    {"NothingCopied", Form::Slots,
     [](KernelOp kernel) {
       auto product = findInLoop<MmaAsyncOp>(kernel);
       for (Operation *user : product.getB().getUsers())
         if (isa<CopyOp>(user) && user->getBlock() == product->getBlock())
           return erase(user);
     },
     nullptr, "reads a slot that nothing was copied to"},
    {"RingOneShort", Form::Rings,
     [](KernelOp kernel) { setDepth(ringOf(kernel, Key), 1); },
     "overwrites a slot that is not yet released", "has not released"},
    {"CopyWithoutABarrier", Form::Rings,
     [](KernelOp kernel) {
       // The value tile of the block after the next, before all awaits.
       auto copy = find<CopyAsyncOp>(kernel, Value_);
       Operation *before = &copy->getBlock()->front();
       SmallVector<Operation *> needed;
       for (Operation &op : *copy->getBlock())
         if (&op != copy && isPure(&op) && op.isBeforeInBlock(copy) &&
             llvm::all_of(op.getResultTypes(),
                          [](Type type) { return type.isIntOrIndex(); }))
           needed.push_back(&op);
       for (Operation *op : needed)
         op->moveBefore(before);
       copy->moveBefore(needed.empty() ? before : needed.back()->getNextNode());
     },
     "overwrites a released slot that other warps may still read",
     "overwrites item"},
    {"FirstItemMissing", Form::Rings,
     [](KernelOp kernel) { erase(find<CopyAsyncOp>(kernel, Key, false)); },
     nullptr, "whose slot holds nothing"},
    {"LastItemMissing", Form::Rings,
     [](KernelOp kernel) {
       // Blocks are copied ahead while there are two more, not one more.
       kernel.walk([&](CopyAsyncOp copy) {
         if (copy.getRing() != ringOf(kernel, Key).getRing() || !isInLoop(copy))
           return;
         auto compare = copy.getCondition().getDefiningOp<arith::CmpIOp>();
         OpBuilder builder(copy);
         Location loc = copy.getLoc();
         Value one = arith::ConstantIndexOp::create(builder, loc, 1);
         Value more =
             arith::AddIOp::create(builder, loc, compare.getLhs(), one);
         copy.getConditionMutable().assign(
             arith::CmpIOp::create(builder, loc, compare.getPredicate(), more,
                                   compare.getRhs())
                 .getResult());
       });
     },
     nullptr, "whose slot holds item"},
    {"ItemTooMany", Form::Rings,
     [](KernelOp kernel) {
       kernel.walk([&](CopyAsyncOp copy) {
         if (copy.getRing() == ringOf(kernel, Key).getRing())
           copy.getConditionMutable().clear();
       });
     },
     nullptr, "never awaited"},
    {"ItemAwaitedTooSoon", Form::Rings,
     [](KernelOp kernel) {
       addToItem(find<AwaitOp>(kernel, Value_).getItemMutable(), 1);
     },
     "waits for an item before it is copied", "still has copies in flight"},
};

namespace {
class WarpProtocol : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    registerPassesAndPipelines();
    registerTransformsPasses();
  }

  WarpProtocol() {
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  OwningOpRef<ModuleOp> compile(const Case &test, Form form);
  /// What a step says; it must fail if `wanted` is there, else succeed.
  void expect(const char *wanted, llvm::function_ref<LogicalResult()> step);
  /// What the simulator says under `seeds` orders of the warps, likewise.
  void expectRuns(const char *wanted, ModuleOp module, CaseTensors &tensors,
                  uint64_t seeds);

  MLIRContext context;
  // --gtest_random_seed gives other damage.
  std::mt19937 random{20u + GTEST_FLAG_GET(random_seed)};
};

class PlantedBug : public WarpProtocol,
                   public ::testing::WithParamInterface<Plant> {};
} // namespace

OwningOpRef<ModuleOp> WarpProtocol::compile(const Case &test, Form form) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(textOf(test), &context);
  if (!module)
    return nullptr;
  bool hasTiles = form == Form::Tiles || form == Form::Ends;
  bool hasRoles = form == Form::Roles || hasTiles;
  std::string tile = " reverse-keys=false lazy-max=false";
  tile += hasRoles ? " overlap-products=true" : " overlap-products=false";
  tile += hasTiles ? " group-bounds=true" : " group-bounds=false";
  std::string passes = "warp-specialize,warp-make-async,warp-insert-turns";
  if (hasTiles)
    passes = "warp-persist," + passes;
  if (form == Form::Ends)
    passes += ",warp-turn-ends";
  if (form == Form::Rings)
    passes = "warp-buffer{depth=2 schedule=own}";
  if (form == Form::Slots)
    passes = "warp-make-async";
  PassManager manager(&context);
  if (failed(parsePassPipeline(
          "attn-to-tile{target=" + test.target + tile +
              "},func.func(cse,convert-tile-to-warp," + passes +
              ",warp-assign-resources{shared-limit=232448},canonicalize,cse)",
          manager)) ||
      failed(manager.run(*module)))
    return nullptr;
  return module;
}

void WarpProtocol::expect(const char *wanted,
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

void WarpProtocol::expectRuns(const char *wanted, ModuleOp module,
                              CaseTensors &tensors, uint64_t seeds) {
  auto host = module.lookupSymbol<func::FuncOp>("f");
  expect(wanted, [&]() -> LogicalResult {
    for (uint64_t seed = 0; seed < seeds; ++seed)
      if (failed(simulator::simulateWarps(host, tensors.arguments(), seed)))
        return failure();
    return success();
  });
}

TEST_P(PlantedBug, IsSeen) {
  const Plant &plant = GetParam();
  Case test;
  test.target = plant.form == Form::Rings ? "sm_80" : "sm_90a";
  test.blockQ = 128;
  test.warps = plant.form == Form::Rings ? 4 : 8;
  test.variant = Variant::Causal;
  // The tiles of queries and values have one shape.
  test.blockK = 128;
  test.queries = plant.form == Form::Tiles ? 400 : 128;
  test.keys = 600;
  OwningOpRef<ModuleOp> module = compile(test, plant.form);
  ASSERT_TRUE(module);
  KernelOp kernel;
  module->walk([&](KernelOp op) { kernel = op; });
  plant.damage(kernel);

  ASSERT_TRUE(plant.verifier || plant.simulator);
  expect(plant.verifier, [&] { return verify(*module); });
  CaseTensors tensors(test, random);
  expectRuns(plant.simulator, *module, tensors, /*seeds=*/8);
}

// A group that passes over its last blocks many turns after the others used
// them: these wait for the slots, and the group for their turns.
TEST_F(WarpProtocol, TurnsBeforePassedBlocks) {
  Case test;
  test.target = "sm_90a";
  test.blockQ = 192;
  test.blockK = 32;
  test.warps = 12;
  test.variant = Variant::Causal;
  test.queries = 400;
  test.keys = 600;
  CaseTensors tensors(test, random);
  for (int numTurns : {0, 1, 2, 3}) {
    SCOPED_TRACE(numTurns);
    OwningOpRef<ModuleOp> module = compile(test, Form::Tiles);
    ASSERT_TRUE(module);
    KernelOp kernel;
    module->walk([&](KernelOp op) { kernel = op; });
    scf::ForOp passed = findPassedBlocks(kernel);
    OpBuilder builder(passed);
    for (int turn = 0; turn < numTurns; ++turn)
      addTurn(builder, passed.getLoc());
    const char *between = "between a group's own blocks and those that it "
                          "passes over";
    expect(numTurns < 2 ? nullptr : between, [&] { return verify(*module); });
    if (numTurns == 2)
      continue; // well or not, as the groups come
    expectRuns(numTurns < 2 ? nullptr : deadlock, *module, tensors,
               /*seeds=*/8);
  }
}

//===----------------------------------------------------------------------===//
// Random damage
//===----------------------------------------------------------------------===//

/// The operations that the protocol is about.
static SmallVector<Operation *> findProtocolOps(KernelOp kernel) {
  SmallVector<Operation *> found;
  kernel.walk([&](Operation *op) {
    if (isa<ReleaseOp, AwaitOp, WaitOp, CopyAsyncOp, MmaAsyncOp, TurnOp>(op))
      found.push_back(op);
  });
  return found;
}

/// Moves, drops, repeats or renumbers something. Most of it is refused.
static std::string damage(KernelOp kernel, std::mt19937 &random) {
  SmallVector<Operation *> ops = findProtocolOps(kernel);
  Operation *op = ops[random() % ops.size()];
  Operation *other = ops[random() % ops.size()];
  std::string text;
  llvm::raw_string_ostream stream(text);
  unsigned kind = random() % 12;
  stream << kind << ": " << *op << " beside " << *other;
  OpBuilder builder(op);
  if (kind == 0 && op->use_empty()) {
    erase(op);
  } else if (kind == 1) {
    builder.setInsertionPointAfter(op);
    builder.clone(*op);
  } else if (kind == 2) {
    RingOp ring = ringOf(kernel, Operand(random() % 3));
    setDepth(ring, 1 + random() % 3);
  } else if (kind == 3) {
    OpOperand *item = nullptr;
    if (auto await = dyn_cast<AwaitOp>(op))
      item = &await.getItemMutable();
    if (auto copy = dyn_cast<CopyAsyncOp>(op))
      item = &copy.getItemMutable();
    if (item)
      addToItem(*item, random() % 2 ? 1 : -1);
  } else if (kind < 8) {
    // By some steps in its own block.
    Operation *place = op;
    bool isForward = random() % 2;
    for (unsigned steps = 1 + random() % 8; steps != 0; --steps) {
      Operation *next = isForward ? place->getNextNode() : place->getPrevNode();
      if (!next || next->hasTrait<OpTrait::IsTerminator>())
        break;
      place = next;
    }
    if (place != op)
      isForward ? op->moveAfter(place) : op->moveBefore(place);
  } else if (op != other && !op->isProperAncestor(other)) {
    random() % 2 ? op->moveBefore(other) : op->moveAfter(other);
  }
  return text;
}

// What the verifier lets pass in a kernel with roles, no schedule breaks.
TEST_F(WarpProtocol, VerifiedIsSafe) {
  Case test;
  test.target = "sm_90a";
  test.blockQ = 128;
  test.blockK = 32;
  test.warps = 8;
  test.variant = Variant::Causal;
  test.keys = 200;
  for (Form form : {Form::Roles, Form::Ends}) {
    test.queries = form == Form::Ends ? 200 : 128;
    OwningOpRef<ModuleOp> good = compile(test, form);
    ASSERT_TRUE(good);
    CaseTensors tensors(test, random);
    int numVerified = 0;
    for (int number = 0; number < 150; ++number) {
      OwningOpRef<ModuleOp> module(good->clone());
      KernelOp kernel;
      module->walk([&](KernelOp op) { kernel = op; });
      std::string what;
      for (unsigned times = 1 + random() % 3; times != 0; --times)
        what += damage(kernel, random) + "\n";
      SCOPED_TRACE(what);
      bool isVerified;
      {
        ScopedDiagnosticHandler quiet(&context,
                                      [](Diagnostic &) { return success(); });
        isVerified = succeeded(verify(*module));
      }
      if (!isVerified)
        continue;
      ++numVerified;
      expectRuns(nullptr, *module, tensors, /*seeds=*/4);
    }
    RecordProperty(form == Form::Ends ? "verified_ends" : "verified",
                   numVerified);
    EXPECT_GE(numVerified, 5);
  }
}

INSTANTIATE_TEST_SUITE_P(Planted, PlantedBug, ::testing::ValuesIn(plants),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
