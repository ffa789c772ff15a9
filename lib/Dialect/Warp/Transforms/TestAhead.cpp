//===- TestAhead.cpp - items are tested before they are awaited -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp that waits at an mbarrier asks it first, and the answer takes some 50
// cycles even where the item has long been there. In the loop of a forward
// kernel that is K before the products are issued and V between them. The
// answer can come beside other work:
//
// - What is awaited first after a product was waited for (K) is asked about
//   before that wait, in the middle of the softmax. Where the body has no such
//   wait before it, that is the last one of the iteration before, and the loop
//   carries the answer; the first iteration has none and waits.
// - What is awaited after that, with no wait in between (V), is asked about
//   before the first.
//
// Later is better: what is asked too early has not arrived yet, and is then
// waited for as before.
//
//===----------------------------------------------------------------------===//

#include "ChangedScores.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Dialect/Warp/IR/RingItem.h"
#include "attn/Dialect/Warp/IR/Turns.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPTESTAHEAD
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// Awaits of a body that no wait for a product stands between.
struct Awaits {
  WaitOp before; // null for the first of the body
  SmallVector<AwaitOp> ops;
};

class LoopTests {
public:
  LoopTests(RewriterBase &rewriter, scf::ForOp loop)
      : rewriter(rewriter), loop(loop) {}

  /// The number of tests.
  int64_t run();

private:
  void collect(Block *block);
  bool isWanted(AwaitOp await);
  std::optional<RingItem> getNext(RingItem item);
  void test(AwaitOp await, Operation *place);
  void testInIterationBefore(AwaitOp await);
  Value createTest(AwaitOp await, RingItem item, Operation *place);

  RewriterBase &rewriter;
  scf::ForOp loop;
  SmallVector<Awaits> parts;
  WaitOp last; // so far
  int64_t numTests = 0;
};
} // namespace

/// Parts end at waits; turns are looked into.
void LoopTests::collect(Block *block) {
  for (Operation &op : *block) {
    if (auto wait = dyn_cast<WaitOp>(op)) {
      last = wait;
    } else if (auto await = dyn_cast<AwaitOp>(op)) {
      if (parts.empty() || parts.back().before != last)
        parts.push_back({last, {}});
      parts.back().ops.push_back(await);
    } else if (auto turn = dyn_cast<TurnOp>(op)) {
      collect(turn.getBodyBlock());
    }
  }
}

/// What is counted from values of before the body's operations, and filled by
/// another role.
bool LoopTests::isWanted(AwaitOp await) {
  Value base = RingItem::of(await.getItem()).base;
  Operation *op = base ? base.getDefiningOp() : nullptr;
  return !(op && loop->isAncestor(op)) &&
         getFiller(await.getRing()) !=
             await->getParentOfType<RoleOp>().getSymName();
}

Value LoopTests::createTest(AwaitOp await, RingItem item, Operation *place) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(place);
  Location loc = await.getLoc();
  Value number = arith::ConstantIndexOp::create(rewriter, loc, item.offset);
  if (item.base)
    number = rewriter.createOrFold<arith::AddIOp>(loc, item.base, number);
  ++numTests;
  return TestOp::create(rewriter, loc, rewriter.getI1Type(), await.getRing(),
                        number);
}

void LoopTests::test(AwaitOp await, Operation *place) {
  Value arrived = createTest(await, RingItem::of(await.getItem()), place);
  rewriter.modifyOpInPlace(await,
                           [&] { await.getArrivedMutable().assign(arrived); });
}

/// What an item's number is in the next iteration.
std::optional<RingItem> LoopTests::getNext(RingItem item) {
  auto counter = dyn_cast_or_null<BlockArgument>(item.base);
  if (!counter || counter.getOwner() != loop.getBody() ||
      counter == loop.getInductionVar())
    return std::nullopt;
  RingItem next = RingItem::of(loop.getTiedLoopYieldedValue(counter)->get());
  if (next.base != counter)
    return std::nullopt;
  return RingItem{next.base, next.offset + item.offset};
}

void LoopTests::testInIterationBefore(AwaitOp await) {
  std::optional<RingItem> next = getNext(RingItem::of(await.getItem()));
  if (!next)
    return;
  Value arrived = createTest(await, *next, last);
  rewriter.setInsertionPoint(loop);
  Value no =
      arith::ConstantIntOp::create(rewriter, loop.getLoc(), /*value=*/0, 1);
  FailureOr<LoopLikeOpInterface> replaced = loop.replaceWithAdditionalYields(
      rewriter, no, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return SmallVector<Value>{arrived};
      });
  assert(succeeded(replaced) && "scf.for takes more carried values");
  loop = cast<scf::ForOp>(**replaced);
  rewriter.modifyOpInPlace(await, [&] {
    await.getArrivedMutable().assign(loop.getRegionIterArgs().back());
  });
}

int64_t LoopTests::run() {
  collect(loop.getBody());
  if (!last)
    return 0;
  for (Awaits &part : parts) {
    AwaitOp first = part.ops.front();
    Operation *place = getAncestorIn(loop.getBody(), first);
    // Of a ring the next item alone can be asked about.
    DenseSet<Value> rings = {first.getRing()};
    for (AwaitOp await : ArrayRef(part.ops).drop_front())
      if (rings.insert(await.getRing()).second && isWanted(await))
        test(await, place);
    if (!isWanted(first))
      continue;
    if (part.before)
      test(first, part.before);
    else
      testInIterationBefore(first);
  }
  return numTests;
}

/// Loops over blocks with awaits and no loops in them.
static bool isInnermost(scf::ForOp loop) {
  return !getPassedEnd(loop) && !loop.getBody()
                                     ->walk([](LoopLikeOpInterface) {
                                       return WalkResult::interrupt();
                                     })
                                     .wasInterrupted();
}

/// Whether a loop is known to gain. What is asked takes instructions, too.
static bool gains(RoleOp role, scf::ForOp loop) {
  constexpr int64_t leastGroups = 3;
  return role.getNumGroups() >= leastGroups && !changesScores(loop);
}

int64_t attn::warp::testAhead(RewriterBase &rewriter, KernelOp kernel,
                              bool selective, std::string &reason) {
  SmallVector<scf::ForOp> loops;
  bool isAnyLeft = false;
  for (RoleOp role : kernel.getRoles())
    role.walk([&](scf::ForOp loop) {
      if (role.isCopy() || !isInnermost(loop))
        return;
      if (!selective || gains(role, loop))
        loops.push_back(loop);
      else
        isAnyLeft = true;
    });
  int64_t numTests = 0;
  for (scf::ForOp loop : loops)
    numTests += LoopTests(rewriter, loop).run();
  if (isAnyLeft)
    reason = "loops of less than three groups, or with a mask or a score "
             "function, do not gain";
  else if (numTests == 0)
    reason = "no loop awaits items after it waited for a product";
  return numTests;
}

namespace {
struct WarpTestAhead final
    : attn::SchedulePass<attn::warp::impl::WarpTestAheadBase<WarpTestAhead>,
                         KernelOp, WarpForm::Deepened> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("tests", testAhead(rewriter, kernel, selective, reason), reason);
  }
};
} // namespace
