//===- ProducerSlice.cpp - what copies depend on -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProducerSlice.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn::warp;

static bool isWarpValue(Type type) {
  return isa<FragType, SlotType, RingType, PendingType>(type);
}

bool attn::warp::isShared(Operation &op) {
  WalkResult walk = op.walk([&](Operation *inner) {
    bool isScalar =
        llvm::none_of(inner->getOperandTypes(), isWarpValue) &&
        llvm::none_of(inner->getResultTypes(), isWarpValue) &&
        (!isa<WarpDialect>(inner->getDialect()) || isa<SearchOp>(inner));
    bool onlyReads = inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                     isMemoryEffectFree(inner) ||
                     hasSingleEffect<MemoryEffects::Read>(inner);
    return isScalar && onlyReads ? WalkResult::advance()
                                 : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

void ProducerSlice::need(Value value) {
  if (scope->isAncestor(value.getParentRegion()->getParentOp()) &&
      values.insert(value).second)
    worklist.push_back(value);
}

/// An operation that runs needs the loops around it to run.
void ProducerSlice::needOp(Operation *op) {
  for (; op != scope; op = op->getParentOp()) {
    if (!ops.insert(op).second)
      return;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      need(loop.getLowerBound());
      need(loop.getUpperBound());
      need(loop.getStep());
    }
  }
}

LogicalResult ProducerSlice::compute(std::string &reason) {
  scope->walk([&](Operation *op) {
    if (!isa<CopyOp, CopyAsyncOp>(op))
      return;
    needOp(op);
    for (Value operand : op->getOperands())
      if (!isWarpValue(operand.getType()))
        need(operand);
  });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (owner == scope)
        continue;
      auto loop = dyn_cast<scf::ForOp>(owner);
      if (!loop) {
        reason = "a copied box depends on a value of a region that is no loop";
        return failure();
      }
      needOp(loop);
      if (argument == loop.getInductionVar())
        continue;
      need(loop.getTiedLoopInit(argument)->get());
      need(loop.getTiedLoopYieldedValue(argument)->get());
      continue;
    }
    Operation *op = value.getDefiningOp();
    needOp(op);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      need(loop.getTiedLoopRegionIterArg(cast<OpResult>(value)));
      continue;
    }
    if (!isShared(*op)) {
      reason = "a copied box depends on more than scalars";
      return failure();
    }
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
          need(operand);
    });
  }
  return success();
}

/// The loop with the carried values that are needed.
void ProducerSlice::cloneLoop(OpBuilder &builder, scf::ForOp loop,
                              IRMapping &map) {
  SmallVector<unsigned> kept;
  SmallVector<Value> inits;
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
    if (!values.contains(argument))
      continue;
    kept.push_back(number);
    inits.push_back(map.lookupOrDefault(loop.getInitArgs()[number]));
  }
  auto result = scf::ForOp::create(
      builder, loop.getLoc(), map.lookupOrDefault(loop.getLowerBound()),
      map.lookupOrDefault(loop.getUpperBound()),
      map.lookupOrDefault(loop.getStep()), inits,
      [](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(result.getBody());
  map.map(loop.getInductionVar(), result.getInductionVar());
  for (auto [number, argument] :
       llvm::zip_equal(kept, result.getRegionIterArgs()))
    map.map(loop.getRegionIterArgs()[number], argument);
  clone(builder, loop.getBody(), map);
  SmallVector<Value> yielded;
  for (auto [number, value] : llvm::zip_equal(kept, result.getResults())) {
    yielded.push_back(map.lookupOrDefault(loop.getYieldedValues()[number]));
    map.map(loop.getResult(number), value);
  }
  scf::YieldOp::create(builder, loop.getLoc(), yielded);
}

void ProducerSlice::clone(OpBuilder &builder, Block *from, IRMapping &map) {
  for (Operation &op : from->without_terminator()) {
    if (!ops.contains(&op))
      continue;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      cloneLoop(builder, loop, map);
    else
      builder.clone(op, map);
  }
}
