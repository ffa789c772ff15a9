//===- Roles.cpp - warps that copy and warps that compute -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every slot of a ring has two barriers. `full` counts one arrival of every
// warp that fills it, and the bytes of a tile that is copied; `empty` one
// arrival of every warp that drains it. Item i uses slot i mod depth; it is the
// (i / depth)-th of its slot, so its arrival completes the phase of parity (i /
// depth) mod 2 of `full`, and its release that of `empty`. The slot may be
// filled when the phase before its own is complete, which for the first item a
// fresh barrier is. Rings whose items come together (JoinedRings.h) share the
// barriers of the first, whose `full` counts the arrivals of all.
//
// `warp.mailbox` is such a ring, whose items are written by a thread.
//
// Warps that compute come first in the block. Of a role that copies the first
// warp runs, and the others what stands in `warp.beside`. All of its lanes do
// the same, so that numbers stay where those of a whole warp are, in uniform
// registers; one lane copies, draws and arrives.
//
//===----------------------------------------------------------------------===//

#include "Roles.h"

#include "Atoms/Mbarrier.h"
#include "Atoms/Tma.h"
#include "Fragments.h"
#include "Integers.h"
#include "JoinedRings.h"
#include "SharedMemory.h"

#include "attn/Dialect/Warp/IR/Turns.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "attn/Layout/Swizzle.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The number by which tensor maps know an argument or a workspace of the
/// function; emits if the memref is neither.
static FailureOr<int64_t> findNumber(Operation *op, Value view) {
  if (auto argument = dyn_cast<BlockArgument>(view))
    if (isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      return argument.getArgNumber();
  auto alloc = view.getDefiningOp<memref::AllocOp>();
  auto host = alloc ? dyn_cast<func::FuncOp>(alloc->getParentOp()) : nullptr;
  if (!host)
    return op->emitOpError("is by tma: expected an argument or a memref.alloc "
                           "of the function as the memref");
  int64_t number = host.getNumArguments();
  for (auto other : host.getOps<memref::AllocOp>()) {
    if (other == alloc)
      break;
    ++number;
  }
  return number;
}

void TensorMaps::add(Operation *op, TensorMapAttr map) {
  auto *found = llvm::find(maps, map);
  places[op] = found - maps.begin();
  if (found == maps.end())
    maps.push_back(map);
}

/// Whole panels of whole rows can be one box of five dimensions, also panels
/// behind the end of a row; where a panel is wider than what is left of the
/// row, only a box of its own has an end there.
static int64_t countPanelsAtOnce(CopyAsyncOp copy,
                                 const layout::SharedTile &tile) {
  if (copy.getBoxes() > 1)
    return 1;
  ArrayRef<int64_t> shape =
      cast<MemRefType>(copy.getView().getType()).getShape();
  bool isWhole = shape.back() % tile.panelColumns() == 0 &&
                 isConstantIntValue(copy.getIndices().back(), 0);
  return isWhole ? tile.numPanels() : 1;
}

FailureOr<TensorMaps> attn::warp::collectTensorMaps(KernelOp kernel) {
  TensorMaps result;
  if (!kernel.hasRoles()) {
    WalkResult drawn = kernel.walk([](DrawOp draw) {
      draw.emitOpError("in a kernel without roles: run warp-specialize first");
      return WalkResult::interrupt();
    });
    if (drawn.wasInterrupted())
      return failure();
    return result;
  }
  auto add = [&](Operation *op, Value view, int64_t rows, int64_t columns,
                 const layout::SharedTile &tile, int64_t panels) {
    FailureOr<int64_t> number = findNumber(op, view);
    if (failed(number))
      return WalkResult::interrupt();
    result.add(op, TensorMapAttr::get(op->getContext(), *number, rows, columns,
                                      tile.panelBytes, panels));
    return WalkResult::advance();
  };
  WalkResult walk = kernel.walk([&](CopyAsyncOp copy) {
    layout::SharedTile tile = layoutOf(copy.getRing().getType().getSlotType());
    if (tile.rows == 1)
      return add(copy, copy.getView(), 1, tile.columns, tile, /*panels=*/1);
    return add(copy, copy.getView(), copy.getRowsPerBox(), tile.panelColumns(),
               tile, countPanelsAtOnce(copy, tile));
  });
  if (!walk.wasInterrupted())
    walk = kernel.walk([&](StoreOp store) {
      if (store.getAtom() != CopyAtom::TMA)
        return WalkResult::advance();
      layout::SharedTile tile = layoutOf(store.getStaging().getType());
      return add(store, store.getView(), layout::groupOfWarpsRows,
                 tile.panelColumns(), tile, /*panels=*/1);
    });
  if (walk.wasInterrupted())
    return failure();
  return result;
}

/// How the operations of a kernel see its rings and mailboxes.
static llvm::DenseMap<Value, RolePlan::Access> findRings(KernelOp kernel) {
  llvm::DenseMap<Value, RolePlan::Access> rings;
  for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>())
    rings[ring.getRing()] = {ring.getBarrierOffset(),
                             ring.getRing().getType().getDepth()};
  for (MailboxOp mailbox : kernel.getBodyBlock()->getOps<MailboxOp>()) {
    MailboxType type = mailbox.getRing().getType();
    rings[mailbox.getRing()] = {mailbox.getOffset(), type.getDepth()};
    rings[mailbox.getRing()].stride = type.getItemBytes();
  }
  for (auto &[ring, access] : rings)
    for (RoleOp role : kernel.getRoles()) {
      if (role.getSymName() == getFiller(ring))
        access.fills = role.getActiveWarps();
      if (drains(role, ring))
        access.releases += role.getActiveWarps();
    }
  return rings;
}

static void joinRings(llvm::DenseMap<Value, RolePlan::Access> &rings,
                      const JoinedRings &joined) {
  for (ArrayRef<RingOp> group : joined.groups) {
    RolePlan::Access access = rings.at(RingOp(group.front()).getRing());
    access.fills *= group.size();
    for (RingOp ring : group)
      rings[ring.getRing()] = access;
  }
}

/// As many groups as it is stored in parts.
static int64_t countParts(StoreOp store) {
  return llvm::divideCeil(store.getValue().getType().getShape()[1],
                          store.getStaging().getType().getShape()[1]);
}

/// Stores by TMA that always follow each other, around the loop that they may
/// stand in, wait for those alone that read the slot they write to.
static void planBulkWaits(ArrayRef<StoreOp> stores, const IRMapping &clones,
                          RolePlan &plan) {
  for (StoreOp store : stores)
    if (store->getBlock() != stores.front()->getBlock())
      return;
  for (size_t number = 0; number < stores.size(); ++number) {
    StoreOp store = stores[number];
    RolePlan::TensorStore &planned = plan.stores[clones.lookup(store)];
    if (planned.isAwaited)
      continue;
    for (size_t back = 1; back < stores.size(); ++back) {
      StoreOp before = stores[(number + stores.size() - back) % stores.size()];
      if (before.getStaging() == store.getStaging())
        break;
      planned.younger += countParts(before);
    }
  }
}

RolePlan attn::warp::planRoles(KernelOp kernel, const IRMapping &clones,
                               const TensorMaps &maps, int64_t firstMap) {
  RolePlan plan;
  if (!kernel.hasRoles())
    return plan;
  llvm::DenseMap<Value, RolePlan::Access> rings = findRings(kernel);
  JoinedRings joined = findJoinedRings(kernel);
  joinRings(rings, joined);
  auto own = [&](Operation *op) { return clones.lookup(op); };
  SmallVector<StoreOp> stores;
  kernel.walk([&](Operation *op) {
    if (auto copy = dyn_cast<CopyAsyncOp>(op)) {
      int64_t place = maps.places.at(op);
      RolePlan::Access access = rings.lookup(copy.getRing());
      access.waits = !joined.followers.contains(op);
      access.tensorMap = firstMap + place;
      access.boxPanels = maps.maps[place].getPanels();
      plan.accesses[own(op)] = access;
    } else if (auto store = dyn_cast<StoreOp>(op);
               store && maps.places.contains(op)) {
      plan.stores[own(op)] = {firstMap + maps.places.at(op),
                              bool(getSourceThroughTurns(store.getStaging())
                                       .getDefiningOp<AwaitOp>())};
      stores.push_back(store);
    } else if (auto store = dyn_cast<StoreFragOp>(op);
               store && store.getItem()) {
      plan.accesses[own(op)] = rings.lookup(store.getTarget());
    } else if (auto send = dyn_cast<SendOp>(op)) {
      plan.accesses[own(op)] = rings.lookup(send.getRing());
    } else if (auto test = dyn_cast<TestOp>(op)) {
      RolePlan::Access access = rings.lookup(test.getRing());
      access.waits =
          llvm::none_of(test.getRing().getUsers(), [&](Operation *user) {
            return joined.followers.contains(user);
          });
      plan.accesses[own(op)] = access;
    } else if (auto receive = dyn_cast<ReceiveOp>(op)) {
      plan.accesses[own(op)] = rings.lookup(receive.getRing());
    } else if (auto await = dyn_cast<AwaitOp>(op)) {
      RolePlan::Access access = rings.lookup(await.getRing());
      access.waits = !joined.followers.contains(op);
      plan.accesses[own(op)] = access;
      int64_t number = plan.emptyBarriers.size();
      plan.awaitNumbers[own(op)] = number;
      plan.emptyBarriers.emplace_back();
      auto uses = getUsesThroughTurns(await.getSlot());
      bool isReadByLanes = llvm::any_of(uses, [](OpOperand *use) {
        auto load = dyn_cast<LoadFragOp>(use->getOwner());
        return load && load.getResult().getType().getKind() == FragKind::Acc;
      });
      for (OpOperand *use : uses) {
        Operation *release = use->getOwner();
        if (!isa<ReleaseOp>(release))
          continue;
        Operation *joint = joined.arrivals.lookup(release);
        Operation *arrival = joint ? joint : release;
        if (arrival == release)
          plan.awaitNumbers[own(release)] = number;
        if (isReadByLanes)
          plan.releasesOfLanes.insert(own(arrival));
      }
    }
  });
  planBulkWaits(stores, clones, plan);
  return plan;
}

ItemBarriers ItemBarriers::get(OpBuilder &builder, Operation *op, Value item,
                               const RolePlan::Access &access) {
  constexpr int64_t barrierBytes = RingOp::barrierBytesPerSlot / 2;
  Integers ints(builder, op->getLoc());
  Value number = ints.fromIndex(item);
  ItemBarriers barriers;
  barriers.full = sharedAddress(builder, op, access.barriers);
  barriers.parity = number;
  if (access.depth > 1) {
    barriers.full = ints.add(
        barriers.full, ints.mul(ints.rem(number, access.depth), access.stride));
    barriers.parity = ints.div(number, access.depth);
  }
  barriers.parity = ints.bitAnd(barriers.parity, 1);
  barriers.empty = ints.add(barriers.full, barrierBytes);
  return barriers;
}

/// Every full barrier expects each warp that fills, every empty one each warp
/// that drains; one thread sets them up.
static void setUpBarriers(OpBuilder &builder, gpu::GPUFuncOp function,
                          const RolePlan &plan) {
  Location loc = function.getLoc();
  Integers ints(builder, loc);
  llvm::SmallDenseSet<int64_t> done;
  {
    OpBuilder::InsertionGuard guard(builder);
    auto branch =
        scf::IfOp::create(builder, loc, ints.lessThan(ints.thread(), 1),
                          /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
    SmallVector<RolePlan::Access> rings;
    for (auto &[op, access] : plan.accesses)
      if (done.insert(access.barriers).second)
        rings.push_back(access);
    llvm::sort(rings, [](const auto &a, const auto &b) {
      return a.barriers < b.barriers;
    });
    for (const RolePlan::Access &ring : rings)
      for (int64_t slot = 0; slot < ring.depth; ++slot) {
        Value full =
            sharedAddress(builder, function.getBody().front().getTerminator(),
                          ring.barriers + slot * ring.stride);
        emitBarrierInit(builder, loc, full, ring.fills);
        emitBarrierInit(builder, loc,
                        ints.add(full, RingOp::barrierBytesPerSlot / 2),
                        ring.releases);
      }
    emitBarrierInitFence(builder, loc);
  }
  gpu::BarrierOp::create(builder, loc);
}

/// What the idle warps of a role do, in branches of their own.
static void separateBesides(RewriterBase &rewriter, RoleOp role, Value warp) {
  Location loc = role.getLoc();
  Integers ints(rewriter, loc);
  int64_t firstIdle = role.getFirstWarp() + role.getActiveWarps();
  for (auto beside :
       llvm::make_early_inc_range(role.getBodyBlock()->getOps<BesideOp>())) {
    OpBuilder::InsertionGuard guard(rewriter);
    Value isIdle =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge, warp,
                              ints.constant(firstIdle));
    auto branch = scf::IfOp::create(rewriter, loc, isIdle,
                                    /*withElseRegion=*/false);
    branch->setAttr(kAloneAttrName, rewriter.getUnitAttr());
    rewriter.setInsertionPoint(branch.thenBlock()->getTerminator());
    Value number = ints.toIndex(ints.add(warp, -firstIdle));
    rewriter.eraseOp(beside.getBodyBlock()->getTerminator());
    rewriter.inlineBlockBefore(beside.getBodyBlock(),
                               branch.thenBlock()->getTerminator(), number);
    rewriter.eraseOp(beside);
  }
}

/// Moves the role's body to the end of a block, whose warps it is run by.
static void inlineRole(RewriterBase &rewriter, RoleOp role, Block *into,
                       NVVM::SetMaxRegisterAction action) {
  rewriter.setInsertionPointToStart(into);
  Location loc = role.getLoc();
  if (std::optional<int64_t> registers = role.getRegisters())
    NVVM::SetMaxRegisterOp::create(rewriter, loc, *registers, action);
  Block *body = role.getBodyBlock();
  rewriter.eraseOp(body->getTerminator());
  Block *place = into;
  if (role.isCopy()) {
    Integers ints(rewriter, loc);
    Value warp = ints.blockWarp();
    separateBesides(rewriter, role, warp);
    Value isFirst =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, warp,
                              ints.constant(role.getFirstWarp()));
    place = scf::IfOp::create(rewriter, loc, isFirst, /*withElseRegion=*/false)
                .thenBlock();
  } else if (role.getFirstWarp() != 0) {
    into->getParentOp()->setAttr(
        kFirstWarpAttrName, rewriter.getI64IntegerAttr(role.getFirstWarp()));
  }
  SmallVector<Value> group;
  if (!role.isCopy() && role.getGroup().use_empty()) {
    body->eraseArgument(0);
  } else if (!role.isCopy()) {
    rewriter.setInsertionPoint(place->getTerminator());
    Integers ints(rewriter, loc);
    group.push_back(ints.toIndex(ints.warpgroup()));
  }
  rewriter.inlineBlockBefore(body, place->getTerminator(), group);
}

/// Roles with the most registers take them from the others.
static NVVM::SetMaxRegisterAction getAction(RoleOp role,
                                            ArrayRef<RoleOp> roles) {
  bool hasMost = llvm::all_of(roles, [&](RoleOp other) {
    return other.getRegisters() <= role.getRegisters();
  });
  return hasMost ? NVVM::SetMaxRegisterAction::increase
                 : NVVM::SetMaxRegisterAction::decrease;
}

void attn::warp::lowerRoles(RewriterBase &rewriter, gpu::GPUFuncOp function,
                            const RolePlan &plan) {
  Block *block = &function.getBody().front();
  SmallVector<RoleOp> roles = llvm::to_vector(block->getOps<RoleOp>());
  if (roles.empty())
    return;
  llvm::stable_sort(roles, [](RoleOp a, RoleOp b) {
    return !a.isCopy() && b.isCopy(); // as their warps
  });
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = function.getLoc();
  rewriter.setInsertionPoint(block->getTerminator());
  setUpBarriers(rewriter, function, plan);
  if (!plan.stores.empty())
    for (RoleOp role : roles) {
      if (role.isCopy())
        continue;
      // Shared memory is there until TMA has read it.
      rewriter.setInsertionPoint(role.getBodyBlock()->getTerminator());
      emitBulkWait(rewriter, loc, /*pending=*/0);
    }
  Integers ints(rewriter, loc);
  for (RoleOp role : roles) {
    rewriter.setInsertionPoint(block->getTerminator());
    NVVM::SetMaxRegisterAction action = getAction(role, roles);
    if (role == roles.back() && role.isCopy()) {
      inlineRole(rewriter, role, block, action);
      break;
    }
    int64_t end = role.getFirstWarp() + role.getWarps();
    auto branch =
        scf::IfOp::create(rewriter, loc, ints.lessThan(ints.blockWarp(), end),
                          /*withElseRegion=*/true);
    inlineRole(rewriter, role, branch.thenBlock(), action);
    block = branch.elseBlock();
  }
  for (RoleOp role : roles)
    rewriter.eraseOp(role);
}
