//===- TestProtocol.cpp - tests ahead of awaits -----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W3 of warp.kernel: an await does not wait where a test of its item said that
// the item is there. What is asked is the parity of a barrier's phase: whether
// it is another than that of the phase that item n completes. So the answer is
// right as long as the phase before, of the item as many before as the ring has
// slots, is complete. It is if n is the item that is awaited next: those before
// it have been awaited, in order (RoleProtocol.cpp). Later, when more phases
// have passed, the answer is still of item n, so nobody but its await may use
// it.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"
#include "attn/Dialect/Warp/IR/LoopValues.h"
#include "attn/Dialect/Warp/IR/RingItem.h"
#include "attn/Dialect/Warp/IR/Turns.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::warp;

/// An await of the ring strictly between two operations of a block, in order;
/// null means the block's start or end.
static AwaitOp findAwaitBetween(Value ring, Block *home, Operation *from,
                                Operation *to) {
  for (Operation *user : ring.getUsers()) {
    auto await = dyn_cast<AwaitOp>(user);
    if (!await || await == from || await == to || !getAncestorIn(home, await))
      continue;
    if ((!from || runsBefore(home, from, await)) &&
        (!to || runsBefore(home, await, to)))
      return await;
  }
  return {};
}

static LogicalResult refuse(AwaitOp await, TestOp test, const Twine &why) {
  InFlightDiagnostic diag = await.emitOpError(why);
  diag.attachNote(test.getLoc()) << "tested here";
  return diag;
}

static LogicalResult refuseBetween(AwaitOp await, TestOp test, AwaitOp other) {
  InFlightDiagnostic diag = await.emitOpError(
      "is not the next await of its ring after the test that it relies on");
  diag.attachNote(test.getLoc()) << "tested here";
  diag.attachNote(other.getLoc()) << "awaited here";
  return diag;
}

/// The test stands before the await, in its block.
static LogicalResult verifyBefore(AwaitOp await, TestOp test) {
  Block *home = getHomeBlock(await);
  if (getHomeBlock(test) != home)
    return refuse(await, test, "relies on a test in another block");
  if (!(RingItem::of(test.getItem()) == RingItem::of(await.getItem())))
    return refuse(await, test, "relies on a test of another item");
  if (AwaitOp other = findAwaitBetween(await.getRing(), home, test, await))
    return refuseBetween(await, test, other);
  return success();
}

/// The test stands in the iteration before.
static LogicalResult verifyCarried(AwaitOp await, const CarriedValue &carried) {
  auto refuseSource = [&] {
    return await.emitOpError(
        "relies on what is carried by a loop, expected false at first and then "
        "what a warp.test in the body says");
  };
  Block *home = getHomeBlock(await);
  auto loop = dyn_cast<scf::ForOp>(carried.loop);
  auto test = carried.yielded.getDefiningOp<TestOp>();
  if (!loop || !test || !isConstantIntValue(carried.init, 0))
    return refuseSource();
  if (loop.getBody() != home || getHomeBlock(test) != home)
    return refuse(await, test, "relies on a test in another block");
  // The item of the next iteration.
  RingItem item = RingItem::of(await.getItem());
  std::optional<CarriedValue> counter =
      item.base ? getCarriedValue(item.base) : std::nullopt;
  if (counter && counter->loop == loop) {
    RingItem next = RingItem::of(counter->yielded);
    item = {next.base, next.offset + item.offset};
  }
  if (test.getRing() != await.getRing() ||
      !(RingItem::of(test.getItem()) == item))
    return refuse(await, test, "relies on a test of another item");
  AwaitOp other = findAwaitBetween(await.getRing(), home, test, nullptr);
  if (!other)
    other = findAwaitBetween(await.getRing(), home, nullptr, await);
  return other ? refuseBetween(await, test, other) : success();
}

static LogicalResult verifyAwait(AwaitOp await) {
  Value arrived = await.getArrived();
  if (!arrived)
    return success();
  auto role = await->getParentOfType<RoleOp>();
  if (!role || getFiller(await.getRing()) == role.getSymName())
    return await.emitOpError("relies on a test, expected a ring that another "
                             "role fills");
  if (auto test = arrived.getDefiningOp<TestOp>())
    return test.getRing() == await.getRing()
               ? verifyBefore(await, test)
               : refuse(await, test, "relies on a test of another ring");
  std::optional<CarriedValue> carried = getCarriedValue(arrived);
  if (carried)
    return verifyCarried(await, *carried);
  return await.emitOpError("relies on a condition that no warp.test gave");
}

/// Only awaits, and the loops that hand the answer on to them, may use it.
static LogicalResult verifyUses(TestOp test) {
  auto role = test->getParentOfType<RoleOp>();
  if (!role || !drains(role, test.getRing()) ||
      getFiller(test.getRing()) == role.getSymName())
    return test.emitOpError("expected a ring that its role drains and another "
                            "fills");
  SmallVector<Operation *> users;
  for (OpOperand &use : test.getArrived().getUses()) {
    auto loop = dyn_cast<scf::ForOp>(use.getOwner()->getParentOp());
    if (!loop || !isa<scf::YieldOp>(use.getOwner())) {
      users.push_back(use.getOwner());
      continue;
    }
    unsigned number = use.getOperandNumber();
    llvm::append_range(users, loop.getRegionIterArg(number).getUsers());
    llvm::append_range(users, loop.getResult(number).getUsers());
  }
  for (Operation *user : users) {
    if (isa<AwaitOp>(user))
      continue;
    InFlightDiagnostic diag = user->emitOpError(
        "uses the answer of a test, which warps get differently, expected "
        "awaits only");
    diag.attachNote(test.getLoc()) << "the test";
    return diag;
  }
  return success();
}

LogicalResult attn::warp::verifyTests(KernelOp kernel) {
  WalkResult walk = kernel.walk([](Operation *op) {
    auto await = dyn_cast<AwaitOp>(op);
    auto test = dyn_cast<TestOp>(op);
    bool failed = (await && ::failed(verifyAwait(await))) ||
                  (test && ::failed(verifyUses(test)));
    return failed ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
