//===- Deferral.cpp - which values need no buffer -------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Deferral.h"

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

bool attn::isElementwise(Operation *op) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         OpTrait::hasElementwiseMappableTraits(op) &&
         isa<VectorType>(op->getResult(0).getType());
}

bool attn::touchesVectors(Operation *op) {
  auto isVector = [](Type type) { return isa<VectorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isVector) ||
         llvm::any_of(op->getResultTypes(), isVector);
}

/// Each element is some element of the operand.
static bool renamesElements(Operation *op) {
  return isa<vector::BroadcastOp, vector::ShapeCastOp, vector::TransposeOp>(op);
}

static bool isFree(Operation *op) {
  if (isa<arith::ConstantOp, tile::CoordsOp>(op))
    return true;
  auto broadcast = dyn_cast<vector::BroadcastOp>(op);
  return broadcast && !isa<VectorType>(broadcast.getSourceType());
}

/// True when the one user of `op` reads each element once, and in place.
static bool hasOnePatientUser(Operation *op) {
  if (!op->hasOneUse())
    return false;
  Operation *user = *op->user_begin();
  return user->getBlock() == op->getBlock() && !renamesElements(user) &&
         !user->hasTrait<OpTrait::IsTerminator>() &&
         (user->getNumRegions() == 0 || isa<scf::ForOp>(user));
}

static bool canDefer(Operation *op) {
  if (op->getNumResults() != 1 || !isa<VectorType>(op->getResult(0).getType()))
    return false;
  if (isFree(op) || renamesElements(op))
    return true;
  return isElementwise(op) && isPure(op) && hasOnePatientUser(op);
}

/// Operations that are computed inside of the same loop nest, one for the
/// other, beyond which one gets a nest of its own: they nest on the stack, too.
static constexpr unsigned maxChain = 64;

Deferral::Deferral(Operation *kernel) {
  llvm::DenseMap<Operation *, unsigned> chains;
  kernel->walk([&](Operation *op) {
    if (!canDefer(op))
      return;
    unsigned chain = 1;
    for (Value operand : op->getOperands())
      chain = std::max(chain, 1 + chains.lookup(operand.getDefiningOp()));
    if (chain > maxChain && !isFree(op) && !renamesElements(op))
      return;
    chains[op] = chain;
    deferred.insert(op);
  });
  auto record = [&](Value value, Block *block) {
    if (isa<VectorType>(value.getType()))
      deaths[lastUse(value, block)].push_back(value);
  };
  kernel->walk([&](Operation *op) {
    if (!isDeferred(op))
      for (Value result : op->getResults())
        record(result, op->getBlock());
  });
}

ArrayRef<Value> Deferral::diesAfter(Operation *op) const {
  auto it = deaths.find(op);
  return it == deaths.end() ? ArrayRef<Value>() : ArrayRef<Value>(it->second);
}

/// The last operation of `block` that reads `value`, directly, in a nested
/// region, or through deferred operations; its own operation if none does.
Operation *Deferral::lastUse(Value value, Block *block) {
  auto it = lastUses.find(value);
  if (it != lastUses.end())
    return it->second;
  Operation *last = value.getDefiningOp();
  for (Operation *user : value.getUsers()) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    // A deferred user in a nested block is read no later than its ancestor.
    if (ancestor == user && isDeferred(user))
      ancestor = lastUse(user->getResult(0), block);
    if (last->isBeforeInBlock(ancestor))
      last = ancestor;
  }
  lastUses[value] = last;
  return last;
}
