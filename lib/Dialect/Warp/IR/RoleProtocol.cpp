//===- RoleProtocol.cpp - the rules of roles ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W3, W4 and W5 of warp.kernel, for kernels with roles.
//
// W3. Why what is checked excludes deadlock and lost items. Write down, in
// order of execution, the items that the producer copies and those that the
// consumer awaits, of all rings together; loops keep their place. (a) Both
// lists are equal: same rings, in loops with the same bounds. (b) In each role
// the items of a ring are numbered 0, 1, 2, … in that order, so entry e of one
// list is entry e of the other. (c) Where the consumer awaits an item of a ring
// of depth D it holds, not released, at most D - 1 others of that ring, none of
// them through a loop that awaits items of the ring.
//
// Let the consumer stand at entry c. The producer cannot be stuck at an entry
// p <= c: it waits for the release of the item D before it in its ring, which
// the consumer awaited before c, so that is released already or held at c; by
// (c), and because items are awaited in order, it is released before the
// consumer awaits its D-th successor, which is p <= c. Hence the producer
// arrives at c, and the consumer goes on.
//
// Groups of the consumer may pass over blocks (`warp.narrow`). Those loops have
// no counterpart; the loops over own blocks are compared as if they went
// through all of them. (d) Passing over uses the items of all rings of these
// loops, one of each for a block, so that every group uses as many. It changes
// the order of the items of different rings, by one: the producer may be at the
// item behind the one that is waited for, whose slot is free if its ring has
// two.
//
// A `warp.send` is a copy in this, a `warp.receive` an await with its release.
// Loops of both roles run equally often if their bounds are the same values, or
// (`scf.while`) their conditions: what is sent is the same as what is
// taken, and carried values are if they start so and every iteration keeps it.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"
#include "RoleSteps.h"
#include "SameValues.h"
#include "attn/Dialect/Warp/IR/LoopValues.h"
#include "attn/Dialect/Warp/IR/Parts.h"
#include "attn/Dialect/Warp/IR/RingItem.h"
#include "attn/Dialect/Warp/IR/Turns.h"

#include "attn/Support/RoleRegisters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// W5: roles are separate register worlds
//===----------------------------------------------------------------------===//

static bool isWarpValue(Type type) {
  return isa<FragType, SlotType, PendingType>(type);
}

/// Fragments are spread over the warps of their role, or of a kernel without.
static LogicalResult verifyWarps(Operation *scope, int64_t warps,
                                 StringRef name) {
  WalkResult walk = scope->walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto frag = dyn_cast<FragType>(type);
      if (!frag || frag.getWarps() == warps)
        continue;
      InFlightDiagnostic diag = op->emitOpError("makes a fragment over ")
                                << frag.getWarps() << " warps in a " << name
                                << " of " << warps;
      diag.attachNote(scope->getLoc()) << "the " << name;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Nothing of the warp room but rings, and slots to store via, comes into a
/// role.
static LogicalResult verifyReads(RoleOp role) {
  WalkResult walk = role.getBody().walk([&](Operation *op) {
    auto store = dyn_cast<StoreOp>(op);
    for (Value operand : op->getOperands()) {
      if (!isWarpValue(operand.getType()) ||
          (store && operand == store.getStaging() &&
           operand.getDefiningOp<AllocOp>()) ||
          role->isAncestor(operand.getParentRegion()->getParentOp()))
        continue;
      InFlightDiagnostic diag = op->emitOpError("reads ")
                                << operand.getType()
                                << " from outside its role";
      diag.attachNote(role.getLoc()) << "the role";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// Producers copy, hand out tiles and compute scalars; consumers do everything
/// else.
static LogicalResult verifyContents(RoleOp role) {
  bool isProducer = role.getKind() == RoleKind::Producer;
  WalkResult walk = role.getBody().walk([&](Operation *op) {
    bool isCopy = isa<CopyAsyncOp, DrawOp, SendOp>(op);
    // A search for a fragment is refused for its result.
    bool isWarpOp = isa<WarpDialect>(op->getDialect()) &&
                    !isa<YieldOp, SearchOp, NarrowOp>(op);
    bool allowed = isProducer ? isCopy || !isWarpOp : !isCopy;
    allowed &= !isa<CopyOp>(op);
    if (isProducer)
      allowed &= llvm::none_of(op->getResultTypes(), isWarpValue);
    if (auto copy = dyn_cast<CopyAsyncOp>(op); copy && copy.getCondition()) {
      op->emitOpError("has a condition, in a role every item is copied");
      return WalkResult::interrupt();
    }
    if (allowed)
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError("may not stand in a ")
                              << stringifyRoleKind(role.getKind());
    diag.attachNote(role.getLoc()) << "the role";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Turns belong to consumers of several groups, all of which must pass.
static LogicalResult verifyTurn(TurnOp turn) {
  Operation *parent = turn->getParentOp();
  while (isa<scf::ForOp, scf::WhileOp>(parent))
    parent = parent->getParentOp();
  auto role = dyn_cast<RoleOp>(parent);
  if (!role)
    return turn.emitOpError("stands under '")
           << parent->getName() << "', expected loops of a role only";
  if (role.getNumGroups() < 2)
    return turn.emitOpError("stands in a role of ")
           << role.getWarps() << " warps, expected at least two groups of 4";
  return success();
}

/// A kernel with roles holds nothing else that runs on the warps.
static LogicalResult verifyBeside(KernelOp kernel) {
  for (Operation &op : *kernel.getBodyBlock()) {
    if (isa<RoleOp, RingOp, MailboxOp, AllocOp, ExitIfOp, YieldOp>(op))
      continue;
    WalkResult walk = op.walk([&](Operation *inner) {
      bool isWarpOp =
          isa<WarpDialect>(inner->getDialect()) && !isa<SearchOp>(inner);
      return isWarpOp || llvm::any_of(inner->getResultTypes(), isWarpValue)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return op.emitOpError("stands beside roles, expected it in one of them");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// W4: the registers of all warps exist
//===----------------------------------------------------------------------===//

static LogicalResult verifyRegisters(KernelOp kernel, RoleOp producer,
                                     RoleOp consumer) {
  if (producer.getRegisters().has_value() !=
      consumer.getRegisters().has_value())
    return kernel.emitOpError("has one role with registers and one without");
  if (!producer.getRegisters())
    return success();
  int64_t warps = kernel.getWarps();
  int64_t atStart = registersAtStart(warps);
  int64_t wanted = producer.getWarps() * *producer.getRegisters() +
                   consumer.getWarps() * *consumer.getRegisters();
  if (wanted <= atStart * warps)
    return success();
  return kernel.emitOpError("wants ")
         << producer.getWarps() << " x " << *producer.getRegisters() << " + "
         << consumer.getWarps() << " x " << *consumer.getRegisters() << " = "
         << wanted << " registers per lane of its warps, they start with "
         << warps << " x " << atStart << " = " << warps * atStart;
}

/// Numbers go from role to role.
static LogicalResult verifyNoMailboxes(KernelOp kernel) {
  WalkResult walk = kernel.walk([](Operation *op) {
    if (!isa<MailboxOp, SendOp, ReceiveOp>(op))
      return WalkResult::advance();
    op->emitOpError("stands in a kernel without roles");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult attn::warp::verifyRoles(KernelOp kernel) {
  SmallVector<RoleOp> roles =
      llvm::to_vector(kernel.getBodyBlock()->getOps<RoleOp>());
  WalkResult turns = kernel.walk([](TurnOp turn) {
    return failed(verifyTurn(turn)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
  });
  if (turns.wasInterrupted())
    return failure();
  if (roles.empty())
    return success(succeeded(verifyNoMailboxes(kernel)) &&
                   succeeded(verifyWarps(kernel, kernel.getWarps(), "kernel")));
  RoleOp producer = kernel.getRole(RoleKind::Producer);
  RoleOp consumer = kernel.getRole(RoleKind::Consumer);
  if (roles.size() != 2 || !producer || !consumer)
    return roles.back().emitOpError("is one of ")
           << roles.size() << ", expected one producer and one consumer";
  if (producer.getWarps() + consumer.getWarps() != kernel.getWarps())
    return kernel.emitOpError("has ")
           << kernel.getWarps() << " warps and roles of " << producer.getWarps()
           << " and " << consumer.getWarps();
  for (RoleOp role : roles)
    if (failed(verifyContents(role)) || failed(verifyReads(role)) ||
        failed(verifyWarps(role, role.getWarps(), "role")))
      return failure();
  if (failed(verifyBeside(kernel)))
    return failure();
  return verifyRegisters(kernel, producer, consumer);
}

//===----------------------------------------------------------------------===//
// W3 (a): the lists of both roles are equal
//===----------------------------------------------------------------------===//

static Value getRing(Operation *op) {
  if (auto await = dyn_cast<AwaitOp>(op))
    return await.getRing();
  if (auto copy = dyn_cast<CopyAsyncOp>(op))
    return copy.getRing();
  if (auto send = dyn_cast<SendOp>(op))
    return send.getRing();
  if (auto receive = dyn_cast<ReceiveOp>(op))
    return receive.getRing();
  return {};
}

/// In front of the condition nothing happens.
static LogicalResult verifyBefore(scf::WhileOp loop) {
  for (Operation &op : loop.getBeforeBody()->without_terminator())
    if (!isMemoryEffectFree(&op))
      return op.emitOpError("stands in front of the condition of a loop of "
                            "roles, expected operations without effects");
  return success();
}

LogicalResult attn::warp::listSteps(Block *block, std::vector<Step> &steps) {
  for (Operation &op : *block) {
    if (Value ring = getRing(&op)) {
      steps.push_back({&op, ring, {}});
      continue;
    }
    if (auto turn = dyn_cast<TurnOp>(op)) {
      if (failed(listSteps(turn.getBodyBlock(), steps)))
        return failure();
      continue;
    }
    std::vector<Step> inner;
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        if (failed(listSteps(&nested, inner)))
          return failure();
    if (inner.empty())
      continue;
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      if (failed(verifyBefore(loop)))
        return failure();
    if (!isa<scf::ForOp, scf::WhileOp>(op))
      return inner.front().op->emitOpError("stands under '")
             << op.getName() << "', items of roles are used in loops only";
    steps.push_back({&op, {}, std::move(inner)});
  }
  return success();
}

static bool isPassedOver(const Step &step) {
  auto loop = dyn_cast<scf::ForOp>(step.op);
  return loop && getPassedBlocks(loop);
}

/// The list of what has a counterpart.
static void dropPassedOver(std::vector<Step> &steps) {
  llvm::erase_if(steps, isPassedOver);
  for (Step &step : steps)
    dropPassedOver(step.body);
}

static LogicalResult differ(Operation *copy, Operation *await) {
  Operation *at = await ? await : copy;
  InFlightDiagnostic diag =
      at->emitOpError("does not meet its counterpart: the producer must copy "
                      "what the consumer awaits, in the same loops and order");
  if (copy && await)
    diag.attachNote(copy->getLoc()) << "the producer is here";
  return failure();
}

static LogicalResult compareSteps(ArrayRef<Step> producer,
                                  ArrayRef<Step> consumer, SameValues &same) {
  size_t common = std::min(producer.size(), consumer.size());
  for (size_t number = 0; number < common; ++number) {
    const Step &copy = producer[number], &await = consumer[number];
    if (copy.ring != await.ring)
      return differ(copy.op, await.op);
    if (auto send = dyn_cast<SendOp>(copy.op))
      for (auto [value, taken] :
           llvm::zip_equal(send.getValues(), await.op->getResults()))
        same.add(value, taken);
    if (copy.ring)
      continue;
    if (!areSameLoops(copy.op, await.op, same))
      return differ(copy.op, await.op);
    if (failed(compareSteps(copy.body, await.body, same)))
      return failure();
  }
  if (producer.size() > common)
    return differ(producer[common].op, nullptr);
  if (consumer.size() > common)
    return differ(nullptr, consumer[common].op);
  return success();
}

//===----------------------------------------------------------------------===//
// W3 (b): items are numbered in order
//===----------------------------------------------------------------------===//

static RingItem getItem(Operation *op) {
  if (auto send = dyn_cast<SendOp>(op))
    return RingItem::of(send.getItem());
  if (auto receive = dyn_cast<ReceiveOp>(op))
    return RingItem::of(receive.getItem());
  if (auto await = dyn_cast<AwaitOp>(op))
    return RingItem::of(await.getItem());
  return RingItem::of(cast<CopyAsyncOp>(op).getItem());
}

/// The rings that a list uses, each with its first use.
static void collectFirstUses(ArrayRef<Step> steps,
                             llvm::MapVector<Value, Operation *> &uses) {
  for (const Step &step : steps) {
    if (step.ring)
      uses.insert({step.ring, step.op});
    collectFirstUses(step.body, uses);
  }
}

/// The value that `loop` carries and `use`, in its body, counts from.
static BlockArgument getCounter(Operation *loop, Operation *use) {
  Value base = getItem(use).base;
  while (base) {
    std::optional<CarriedValue> carried = getCarriedValue(base);
    if (!carried)
      return {};
    if (carried->loop == loop)
      return cast<BlockArgument>(base);
    base = RingItem::of(carried->init).base;
  }
  return {};
}

static LogicalResult refuseNumber(Operation *use) {
  return use->emitOpError("is out of order: the items of a ring are numbered "
                          "0, 1, 2, … as they are used, carried through loops");
}

static LogicalResult verifyNumbers(ArrayRef<Step> steps,
                                   DenseMap<Value, RingItem> &next) {
  for (const Step &step : steps) {
    if (step.ring) {
      if (!(getItem(step.op) == next[step.ring]))
        return refuseNumber(step.op);
      ++next[step.ring].offset;
      continue;
    }
    llvm::MapVector<Value, Operation *> uses;
    collectFirstUses(step.body, uses);
    DenseMap<Value, BlockArgument> counters;
    for (auto [ring, use] : uses) {
      BlockArgument counter = getCounter(step.op, use);
      if (!counter ||
          !(RingItem::of(getCarriedValue(counter)->init) == next[ring]))
        return refuseNumber(use);
      counters[ring] = counter;
      next[ring] = {counter, 0};
    }
    if (failed(verifyNumbers(step.body, next)))
      return failure();
    for (auto [ring, use] : uses) {
      BlockArgument counter = counters[ring];
      if (!(RingItem::of(getCarriedValue(counter)->yielded) == next[ring]))
        return refuseNumber(use);
      next[ring] = {getLastValue(counter), 0};
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// W3 (c): no more items are held than there are slots
//===----------------------------------------------------------------------===//

/// Whether the item of `other` is held where `await` stands.
static bool isHeldAt(AwaitOp other, AwaitOp await) {
  Block *home = getHomeBlock(other);
  return other != await && runsBefore(home, other, await) &&
         !runsBefore(home, getOnlyRelease(other), await);
}

/// Whether the item of `other` is held through a loop that `await` stands in,
/// so that any number of items may come before its release.
static bool isHeldThrough(AwaitOp other, AwaitOp await) {
  Block *home = getHomeBlock(other);
  return getHomeBlock(await) != home &&
         getAncestorIn(home, await) !=
             getAncestorIn(home, getOnlyRelease(other));
}

static LogicalResult refuseHeldThrough(AwaitOp other, AwaitOp await) {
  InFlightDiagnostic diag =
      await.emitOpError("waits for an item while another is held through the "
                        "loop around it");
  diag.attachNote(other.getLoc()) << "awaited here";
  diag.attachNote(getOnlyRelease(other).getLoc()) << "released here";
  return failure();
}

static LogicalResult verifyHeld(RingOp ring) {
  int64_t depth = ring.getRing().getType().getDepth();
  SmallVector<AwaitOp> awaits;
  for (Operation *user : ring.getRing().getUsers())
    if (auto await = dyn_cast<AwaitOp>(user))
      awaits.push_back(await);
  for (AwaitOp await : awaits) {
    for (AwaitOp other : awaits)
      if (isHeldAt(other, await) && isHeldThrough(other, await))
        return refuseHeldThrough(other, await);
    int64_t held = llvm::count_if(
        awaits, [&](AwaitOp other) { return isHeldAt(other, await); });
    if (held < depth)
      continue;
    InFlightDiagnostic diag = await.emitOpError("waits for an item while ")
                              << held << " others are held, the ring has "
                              << depth << " slots";
    diag.attachNote(ring.getLoc()) << "the ring";
    return failure();
  }
  return success();
}

LogicalResult attn::warp::verifyRoleRings(KernelOp kernel) {
  std::vector<Step> copies, awaits;
  if (failed(listSteps(kernel.getRole(RoleKind::Producer).getBodyBlock(),
                       copies)) ||
      failed(
          listSteps(kernel.getRole(RoleKind::Consumer).getBodyBlock(), awaits)))
    return failure();
  RoleOp consumer = kernel.getRole(RoleKind::Consumer);
  if (failed(verifyNarrowed(awaits, consumer.getBodyBlock())))
    return failure();
  std::vector<Step> matched = awaits;
  dropPassedOver(matched);
  SameValues same;
  if (failed(compareSteps(copies, matched, same)))
    return failure();
  if (!same.isKept())
    return kernel.emitOpError("has loops in its roles whose bounds do not stay "
                              "the same from iteration to iteration");
  for (ArrayRef<Step> steps :
       {ArrayRef<Step>(copies), ArrayRef<Step>(awaits)}) {
    DenseMap<Value, RingItem> next;
    if (failed(verifyNumbers(steps, next)))
      return failure();
  }
  for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>())
    if (failed(verifyHeld(ring)))
      return failure();
  return success();
}
