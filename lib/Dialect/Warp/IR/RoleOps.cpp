//===- RoleOps.cpp - roles and turns --------------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Warp.h"

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

int64_t RoleOp::getFirstWarp() {
  int64_t first = 0;
  for (auto other : (*this)->getBlock()->getOps<RoleOp>())
    if (other.isCopy() == isCopy() ? other->isBeforeInBlock(*this) : isCopy())
      first += other.getWarps();
  return first;
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

LogicalResult YieldOp::verify() {
  auto turn = dyn_cast<TurnOp>((*this)->getParentOp());
  TypeRange expected = turn ? TypeRange(turn.getResultTypes()) : TypeRange();
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
