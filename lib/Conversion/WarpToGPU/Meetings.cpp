//===- Meetings.cpp - where warps meet at a slot ----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Meetings.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn::warp;

/// A store to a slot that is none of a ring.
static StoreFragOp getSlotStore(Operation *op) {
  auto store = dyn_cast_or_null<StoreFragOp>(op);
  return store && !store.getItem() ? store : StoreFragOp();
}

static bool touchesSlots(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<SlotType, RingType>);
}

/// The next store, if nothing between touches a slot.
static bool isFollowedByStore(StoreFragOp store) {
  Operation *next = store->getNextNode();
  while (next && next->getNumRegions() == 0 && !touchesSlots(next) &&
         !next->hasTrait<OpTrait::IsTerminator>())
    next = next->getNextNode();
  StoreFragOp other = getSlotStore(next);
  return other && other.getTarget() != store.getTarget();
}

/// Whether the warps meet between the last reader of the slot and the store.
static bool haveMet(StoreFragOp store, const AwaitPlans &awaits,
                    const StoreFragPlans &stores) {
  for (Operation *op = store->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<CopyOp>(op))
      return true;
    // A product in flight read slots until here.
    if (isa<WaitOp>(op))
      return false;
    if (isa<AwaitOp>(op) && awaits.lookup(op).pending)
      return true;
    if (StoreFragOp other = getSlotStore(op);
        other && other.getTarget() != store.getTarget()) {
      if (stores.lookup(op).meetsAfter)
        return true;
      continue;
    }
    WalkResult walk = op->walk([&](Operation *inner) {
      return llvm::is_contained(inner->getOperands(), store.getTarget())
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return false;
  }
  return false;
}

StoreFragPlans attn::warp::planStoreFrags(KernelOp kernel,
                                          const AwaitPlans &awaits) {
  StoreFragPlans plans;
  if (kernel.hasRoles())
    return plans; // they wait at barriers
  SmallVector<StoreFragOp> stores;
  kernel.walk([&](StoreFragOp store) {
    if (getSlotStore(store))
      stores.push_back(store);
  });
  for (StoreFragOp store : stores)
    plans[store].meetsAfter = !isFollowedByStore(store);
  for (StoreFragOp store : stores)
    plans[store].meetsBefore = !haveMet(store, awaits, plans);
  return plans;
}
