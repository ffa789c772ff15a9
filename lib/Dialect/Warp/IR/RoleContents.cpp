//===- RoleContents.cpp - what stands in roles ----------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W4 and W5 of warp.kernel for kernels with roles, and what W3 says of names:
// who fills and drains a ring.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"
#include "RoleSteps.h"

#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "attn/Support/RoleRegisters.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// W5: roles are separate register worlds
//===----------------------------------------------------------------------===//

static bool isWarpValue(Type type) {
  return isa<FragType, SlotType, PendingType>(type);
}

/// Fragments are spread over the warps of their role, or of a kernel without;
/// idle warps have their own.
static LogicalResult verifyWarps(Operation *scope, int64_t warps,
                                 StringRef name) {
  WalkResult walk = scope->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<BesideOp>(op) && op != scope)
      return failed(verifyWarps(op, /*warps=*/1, "program"))
                 ? WalkResult::interrupt()
                 : WalkResult::skip();
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

/// Nothing of the warp room but rings, slots to store via, and bins comes into
/// a role.
static LogicalResult verifyReads(RoleOp role) {
  WalkResult walk = role.getBody().walk([&](Operation *op) {
    auto store = dyn_cast<StoreOp>(op);
    for (Value operand : op->getOperands()) {
      if (!isWarpValue(operand.getType()) ||
          (store && operand == store.getStaging() &&
           operand.getDefiningOp<AllocOp>()) ||
          (operand.getDefiningOp<AllocOp>() &&
           isa<ClearBinsOp, ScatterAddOp, StoreBinsOp>(op)) ||
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

/// Roles that copy hand out tiles and compute scalars, too; those that compute
/// do everything else.
static LogicalResult verifyContents(RoleOp role) {
  WalkResult walk =
      role.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (isa<BesideOp>(op))
          return WalkResult::skip();
        bool isCopy = isa<CopyAsyncOp, DrawOp, SendOp>(op);
        // A search for a fragment is refused for its result.
        bool isWarpOp = isa_and_nonnull<WarpDialect>(op->getDialect()) &&
                        !isa<YieldOp, SearchOp, GroupBoundsOp, ReceiveOp>(op);
        bool allowed = role.isCopy() ? isCopy || !isWarpOp : !isCopy;
        allowed &= !isa<CopyOp>(op);
        if (role.isCopy())
          allowed &= llvm::none_of(op->getResultTypes(), isWarpValue);
        if (auto copy = dyn_cast<CopyAsyncOp>(op);
            copy && copy.getCondition()) {
          op->emitOpError("has a condition, in a role every item is copied");
          return WalkResult::interrupt();
        }
        if (allowed)
          return WalkResult::advance();
        InFlightDiagnostic diag =
            op->emitOpError("may not stand in a role that ")
            << (role.isCopy() ? "copies" : "computes");
        diag.attachNote(role.getLoc()) << "the role";
        return WalkResult::interrupt();
      });
  return failure(walk.wasInterrupted());
}

/// Turns belong to roles of several groups, all of which must pass.
static LogicalResult verifyTurn(TurnOp turn) {
  Operation *parent = turn->getParentOp();
  for (; isa<scf::ForOp, scf::WhileOp>(parent);
       parent = parent->getParentOp()) {
    // Of loops with items GroupProtocol.cpp knows the blocks.
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (loop &&
        (dependsOnGroup(loop.getLowerBound()) ||
         dependsOnGroup(loop.getUpperBound())) &&
        !loop.walk([](AwaitOp) { return WalkResult::interrupt(); })
             .wasInterrupted())
      return turn.emitOpError("stands in a loop whose bounds depend on the "
                              "group, and that awaits nothing: groups would "
                              "take different numbers of turns");
  }
  auto role = dyn_cast<RoleOp>(parent);
  if (!role)
    return turn.emitOpError("stands under '")
           << parent->getName() << "', expected loops of a role only";
  WalkResult fills = turn.walk([](StoreFragOp store) {
    store.emitOpError(
        "fills an item in a turn, for which groups after this one "
        "would have to come in");
    return WalkResult::interrupt();
  });
  if (fills.wasInterrupted())
    return failure();
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
      bool isWarpOp = isa_and_nonnull<WarpDialect>(inner->getDialect()) &&
                      !isOfScalars(inner);
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

static LogicalResult verifyRegisters(KernelOp kernel, ArrayRef<RoleOp> roles) {
  int64_t wanted = 0;
  std::string sum;
  RoleOp first = roles.front();
  for (RoleOp role : roles) {
    if (role.getRegisters().has_value() != first.getRegisters().has_value())
      return kernel.emitOpError("has one role with registers and one without");
    int64_t registers = role.getRegisters().value_or(0);
    wanted += role.getWarps() * registers;
    sum += (sum.empty() ? "" : " + ") + std::to_string(role.getWarps()) +
           " x " + std::to_string(registers);
  }
  int64_t warps = kernel.getWarps();
  int64_t atStart =
      registersAtStart(warps, kernel.getBlocksPerSM().value_or(1));
  if (wanted <= atStart * warps)
    return success();
  return kernel.emitOpError("wants ")
         << sum << " = " << wanted
         << " registers per lane of its warps, they start with " << warps
         << " x " << atStart << " = " << warps * atStart;
}

//===----------------------------------------------------------------------===//
// W3: who fills a ring and who drains it
//===----------------------------------------------------------------------===//

static LogicalResult verifyNames(KernelOp kernel, Operation *op, Value ring) {
  if (!kernel.hasRoles()) {
    if (getFiller(ring).empty())
      return success();
    return op->emitOpError("is filled by @")
           << getFiller(ring) << " in a kernel without roles";
  }
  if (getFiller(ring).empty())
    return op->emitOpError("says of no role that it fills it, and of none that "
                           "it drains it");
  if (!kernel.getRole(getFiller(ring)))
    return op->emitOpError("is filled by @")
           << getFiller(ring) << ", which is no role of the kernel";
  ArrayRef<Attribute> drainers = getDrainers(ring);
  if (drainers.empty())
    return op->emitOpError("is drained by no role");
  for (auto [number, name] : llvm::enumerate(drainers)) {
    if (llvm::is_contained(drainers.take_front(number), name))
      return op->emitOpError("is drained by ") << name << " twice";
    RoleOp role = kernel.getRole(cast<FlatSymbolRefAttr>(name).getValue());
    if (!role)
      return op->emitOpError("is drained by ")
             << name << ", which is no role of the kernel";
    if (role.isCopy() && role.getSymName() == getFiller(ring))
      return op->emitOpError("is drained by ")
             << name << ", which fills it and does not compute";
  }
  return success();
}

static LogicalResult verifyUse(Operation *use, const ItemUse &item) {
  auto role = use->getParentOfType<RoleOp>();
  if (item.isFill ? getFiller(item.ring) == role.getSymName()
                  : drains(role, item.ring))
    return success();
  InFlightDiagnostic diag = use->emitOpError(item.isFill ? "fills" : "drains")
                            << " a ring in @" << role.getSymName()
                            << ", expected it in ";
  if (item.isFill)
    diag << "@" << getFiller(item.ring);
  else
    llvm::interleaveComma(getDrainers(item.ring), diag);
  diag.attachNote(item.ring.getLoc()) << "the ring";
  return diag;
}

static LogicalResult verifyRings(KernelOp kernel) {
  for (Operation &op : *kernel.getBodyBlock())
    if (isa<RingOp, MailboxOp>(op))
      if (failed(verifyNames(kernel, &op, op.getResult(0))))
        return failure();
  WalkResult walk = kernel.walk([](Operation *op) {
    std::optional<ItemUse> item = getItemUse(op);
    if (!op->getParentOfType<RoleOp>()) {
      if (!item || !isa<StoreFragOp>(op))
        return WalkResult::advance();
      op->emitOpError("fills an item in a kernel without roles, expected a "
                      "slot");
      return WalkResult::interrupt();
    }
    return item && failed(verifyUse(op, *item)) ? WalkResult::interrupt()
                                                : WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
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
  std::vector<RoleOp> roles = kernel.getRoles();
  WalkResult turns = kernel.walk([](TurnOp turn) {
    return failed(verifyTurn(turn)) ? WalkResult::interrupt()
                                    : WalkResult::advance();
  });
  if (turns.wasInterrupted())
    return failure();
  if (roles.empty())
    return success(succeeded(verifyNoMailboxes(kernel)) &&
                   succeeded(verifyRings(kernel)) &&
                   succeeded(verifyWarps(kernel, kernel.getWarps(), "kernel")));
  uint64_t warps = 0;
  for (RoleOp role : roles)
    warps += role.getWarps();
  if (warps != kernel.getWarps()) {
    InFlightDiagnostic diag = kernel.emitOpError("has ")
                              << kernel.getWarps() << " warps and roles of ";
    llvm::interleave(
        roles, [&](RoleOp role) { diag << role.getWarps(); },
        [&] { diag << " and "; });
    return diag;
  }
  for (RoleOp role : roles)
    if (failed(verifyContents(role)) || failed(verifyReads(role)) ||
        failed(verifyWarps(role, role.getWarps(), "role")))
      return failure();
  if (failed(verifyBeside(kernel)) || failed(verifyRings(kernel)))
    return failure();
  return verifyRegisters(kernel, roles);
}
