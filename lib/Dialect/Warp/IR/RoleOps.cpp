//===- RoleOps.cpp - roles and turns --------------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn::warp;

/// What setmaxnreg takes (PTX ISA, "setmaxnreg").
static constexpr int64_t minRegisters = 24, maxRegisters = 256,
                         registerStep = 8;

LogicalResult RoleOp::verify() {
  if (getWarps() < 4 || getWarps() % 4 != 0)
    return emitOpError("has ")
           << getWarps() << " warps, expected a positive multiple of 4";
  std::optional<int64_t> registers = getRegisters();
  if (registers && (*registers < minRegisters || *registers > maxRegisters ||
                    *registers % registerStep != 0))
    return emitOpError("has ")
           << *registers << " registers, expected a multiple of "
           << registerStep << " from " << minRegisters << " to "
           << maxRegisters;
  return success();
}

LogicalResult RoleOp::verifyRegions() {
  // (C1)
  SmallVector<Type> expected;
  if (!isCopy())
    expected.push_back(IndexType::get(getContext()));
  if (!llvm::equal(getBody().getArgumentTypes(), expected))
    return emitOpError("region is a function of (")
           << getBody().getArgumentTypes() << "), expected (" << expected
           << ")";
  return success();
}

void RoleOp::getAsmBlockArgumentNames(Region &, OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : getBody().getArguments())
    setName(argument, "group");
}

int64_t RoleOp::getFirstWarp() {
  int64_t first = 0;
  for (auto other : (*this)->getBlock()->getOps<RoleOp>())
    if (other.isCopy() == isCopy() ? other->isBeforeInBlock(*this) : isCopy())
      first += other.getWarps();
  return first;
}

int64_t BesideOp::getNumWarps() {
  auto role = cast<RoleOp>((*this)->getParentOp());
  return role.getWarps() - role.getActiveWarps();
}

LogicalResult BesideOp::verifyRegions() {
  // (C1)
  if (getNumWarps() == 0) {
    InFlightDiagnostic diag =
        emitOpError("stands in a role that leaves no warp idle");
    diag.attachNote((*this)->getParentOp()->getLoc()) << "the role";
    return diag;
  }
  // (C2)
  Type index = IndexType::get(getContext());
  if (!llvm::equal(getBody().getArgumentTypes(), ArrayRef<Type>(index)))
    return emitOpError("region is a function of (")
           << getBody().getArgumentTypes() << "), expected (" << index << ")";
  // (C4)
  auto kernel = (*this)->getParentOfType<KernelOp>();
  for (auto exit : kernel.getBodyBlock()->getOps<ExitIfOp>()) {
    InFlightDiagnostic diag =
        emitOpError("stands in a kernel of which blocks may end before");
    diag.attachNote(exit.getLoc()) << "here";
    return diag;
  }
  // (C3)
  auto isShared = [](Type type) {
    return isa<SlotType, PendingType, RingType, MailboxType>(type);
  };
  WalkResult walk = getBody().walk([&](Operation *op) {
    if (!isa<DrawOp, TurnOp, AllocOp, RoleOp>(op) &&
        llvm::none_of(op->getOperandTypes(), isShared) &&
        llvm::none_of(op->getResultTypes(), isShared))
      return WalkResult::advance();
    InFlightDiagnostic diag =
        op->emitOpError("may not stand in what idle warps run, each by itself");
    diag.attachNote(getLoc()) << "what they run";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

StringRef attn::warp::getFiller(Value ring) {
  Operation *op = ring.getDefiningOp();
  if (auto tiles = dyn_cast_or_null<RingOp>(op))
    return tiles.getFiller().value_or("");
  if (auto numbers = dyn_cast_or_null<MailboxOp>(op))
    return numbers.getFiller().value_or("");
  return "";
}

ArrayRef<Attribute> attn::warp::getDrainers(Value ring) {
  ArrayAttr names;
  Operation *op = ring.getDefiningOp();
  if (auto tiles = dyn_cast_or_null<RingOp>(op))
    names = tiles.getDrainersAttr();
  else if (auto numbers = dyn_cast_or_null<MailboxOp>(op))
    names = numbers.getDrainersAttr();
  return names ? names.getValue() : ArrayRef<Attribute>();
}

bool attn::warp::drains(RoleOp role, Value ring) {
  return llvm::is_contained(getDrainers(ring),
                            FlatSymbolRefAttr::get(role.getSymNameAttr()));
}

LogicalResult GroupBoundsOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location>,
                                              ValueRange operands,
                                              DictionaryAttr, OpaqueProperties,
                                              RegionRange,
                                              SmallVectorImpl<Type> &types) {
  types.assign(operands.size(), IndexType::get(context));
  return success();
}

LogicalResult GroupBoundsOp::verifyRegions() {
  // (C1)
  if (getRows() < 1)
    return emitOpError("is of ") << getRows() << " rows, expected at least 1";
  // (C4)
  if (getBounds().size() < 2)
    return emitOpError("has ")
           << getBounds().size() << " bounds, expected at least 2";
  // (C2)
  Type index = IndexType::get(getContext());
  if (!llvm::equal(getOwn().getArgumentTypes(), ArrayRef<Type>(index)))
    return emitOpError("region is a function of (")
           << getOwn().getArgumentTypes() << "), expected (" << index << ")";
  if (!isa<YieldOp>(getOwn().front().getTerminator()))
    return emitOpError("expects a region that ends in warp.yield");
  // (C3)
  auto role = (*this)->getParentOfType<RoleOp>();
  if (role && !role.isCopy()) {
    InFlightDiagnostic diag =
        emitOpError("stands in a role that computes, expected arithmetic on "
                    "the group's number");
    diag.attachNote(role.getLoc()) << "the role";
    return diag;
  }
  return success();
}

bool attn::warp::isOfScalars(Operation *op) {
  return isa<SearchOp, AllOp>(op) ||
         (isa<YieldOp>(op) && isa<AllOp>(op->getParentOp()));
}

LogicalResult AllOp::verifyRegions() {
  // (C1)
  Type index = IndexType::get(getContext());
  if (!llvm::equal(getCondition().getArgumentTypes(), ArrayRef<Type>(index)))
    return emitOpError("region is a function of (")
           << getCondition().getArgumentTypes() << "), expected (" << index
           << ")";
  if (!isa<YieldOp>(getCondition().front().getTerminator()))
    return emitOpError("expects a region that ends in warp.yield");
  // (C2)
  WalkResult walk = getCondition().walk([&](Operation *op) {
    bool isScalar =
        (!isa_and_nonnull<WarpDialect>(op->getDialect()) ||
         op == getCondition().front().getTerminator()) &&
        llvm::none_of(op->getResultTypes(), llvm::IsaPred<FragType, SlotType>);
    bool onlyReads = op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                     isMemoryEffectFree(op) ||
                     hasSingleEffect<MemoryEffects::Read>(op);
    if (isScalar && onlyReads)
      return WalkResult::advance();
    InFlightDiagnostic diag = op->emitOpError(
        "stands in a condition of numbers, expected scalars and reads only");
    diag.attachNote(getLoc()) << "the condition";
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  // (C3)
  if (auto role = (*this)->getParentOfType<RoleOp>()) {
    InFlightDiagnostic diag =
        emitOpError("stands in a role, expected it before the roles");
    diag.attachNote(role.getLoc()) << "the role";
    return diag;
  }
  return success();
}

LogicalResult YieldOp::verify() {
  Operation *parent = (*this)->getParentOp();
  TypeRange expected = isa<TurnOp, AllOp, GroupBoundsOp>(parent)
                           ? TypeRange(parent->getResultTypes())
                           : TypeRange();
  if (getValues().getTypes() != expected)
    return emitOpError("yields (")
           << getValues().getTypes() << "), expected (" << expected << ")";
  return success();
}

LogicalResult TurnOp::verify() {
  if (!isa<YieldOp>(getBodyBlock()->getTerminator()))
    return emitOpError("expects a body that ends in warp.yield");
  return success();
}

YieldOp TurnOp::getYield() {
  return cast<YieldOp>(getBodyBlock()->getTerminator());
}

void YieldOp::build(OpBuilder &, OperationState &) {}
