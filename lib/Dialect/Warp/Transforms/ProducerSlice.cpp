//===- ProducerSlice.cpp - what copies depend on -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProducerSlice.h"

#include "attn/Dialect/Warp/IR/GroupLoops.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn::warp;

static bool isWarpValue(Type type) {
  return isa<FragType, SlotType, RingType, MailboxType, PendingType>(type);
}

/// Scalars and reads of memory only, and draws where `drawsToo`.
static bool isScalar(Operation &op, bool drawsToo) {
  WalkResult walk = op.walk([&](Operation *inner) {
    if (drawsToo && isa<DrawOp>(inner))
      return WalkResult::advance();
    bool isScalar = llvm::none_of(inner->getOperandTypes(), isWarpValue) &&
                    llvm::none_of(inner->getResultTypes(), isWarpValue) &&
                    (!isa_and_nonnull<WarpDialect>(inner->getDialect()) ||
                     isOfScalars(inner));
    bool onlyReads = inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                     isMemoryEffectFree(inner) ||
                     hasSingleEffect<MemoryEffects::Read>(inner);
    return isScalar && onlyReads ? WalkResult::advance()
                                 : WalkResult::interrupt();
  });
  return !walk.wasInterrupted();
}

bool attn::warp::isShared(Operation &op) {
  return isScalar(op, /*drawsToo=*/false);
}

bool attn::warp::findsTile(Operation &op) {
  return isa<DrawOp, scf::WhileOp>(op) && !isShared(op) &&
         isScalar(op, /*drawsToo=*/true);
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
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      need(loop.getConditionOp().getCondition());
    }
  }
}

LogicalResult ProducerSlice::needSources(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  if (owner == scope)
    return success();
  if (auto loop = dyn_cast<scf::ForOp>(owner)) {
    needOp(loop);
    if (argument == loop.getInductionVar())
      return success();
    need(loop.getTiedLoopInit(argument)->get());
    need(loop.getTiedLoopYieldedValue(argument)->get());
    return success();
  }
  auto loop = dyn_cast<scf::WhileOp>(owner);
  if (!loop)
    return failure();
  needOp(loop);
  unsigned number = argument.getArgNumber();
  if (argument.getOwner() == loop.getAfterBody()) {
    need(loop.getConditionOp().getArgs()[number]);
    return success();
  }
  need(loop.getInits()[number]);
  need(loop.getYieldOp().getOperand(number));
  return success();
}

/// The publication that stands before what takes it.
static SendOp getPublication(Operation *receive) {
  return cast<SendOp>(receive->getPrevNode());
}

/// Loops over what others load for other groups do nothing to a producer.
static bool isPassedOver(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop && getPassedEnd(loop);
}

LogicalResult ProducerSlice::needSources(Operation *op, unsigned result) {
  // The producer goes through all blocks, by an operation nevertheless: what
  // depends on it then folds in both roles alike.
  if (auto group = dyn_cast<GroupBoundsOp>(op)) {
    needOp(op);
    llvm::for_each(group.getBounds(), [&](Value bound) { need(bound); });
    return success();
  }
  if (isPassedOver(op)) {
    need(cast<scf::ForOp>(op).getInitArgs()[result]);
    return success();
  }
  if (isa<ReceiveOp>(op)) {
    need(getPublication(op).getValues()[result]);
    return success();
  }
  needOp(op);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    need(loop.getRegionIterArg(result));
    return success();
  }
  if (!isShared(*op) && !findsTile(*op))
    return failure();
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        need(operand);
  });
  return success();
}

LogicalResult ProducerSlice::compute(std::string &reason) {
  scope->walk([&](Operation *op) {
    if (!isa<CopyOp, CopyAsyncOp, SendOp>(op))
      return;
    needOp(op);
    for (Value operand : op->getOperands())
      if (!isWarpValue(operand.getType()))
        need(operand);
  });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (failed(needSources(argument))) {
        reason = "a copied box depends on a value of a region that is no loop";
        return failure();
      }
      continue;
    }
    auto result = cast<OpResult>(value);
    if (failed(needSources(result.getOwner(), result.getResultNumber()))) {
      reason = "a copied box depends on more than scalars";
      return failure();
    }
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

/// Both regions, with the values that are needed.
void ProducerSlice::cloneWhile(OpBuilder &builder, scf::WhileOp loop,
                               IRMapping &map) {
  auto keep = [&](Block *block) {
    SmallVector<BlockArgument> kept;
    for (BlockArgument argument : block->getArguments())
      if (values.contains(argument))
        kept.push_back(argument);
    return kept;
  };
  SmallVector<BlockArgument> before = keep(loop.getBeforeBody());
  SmallVector<BlockArgument> after = keep(loop.getAfterBody());
  auto choose = [&](OperandRange operands, ArrayRef<BlockArgument> kept) {
    return llvm::map_to_vector(kept, [&](BlockArgument argument) {
      return map.lookupOrDefault(operands[argument.getArgNumber()]);
    });
  };
  SmallVector<Type> types(after.size(), builder.getIndexType());
  for (auto [type, argument] : llvm::zip_equal(types, after))
    type = argument.getType();
  scf::WhileOp::create(
      builder, loop.getLoc(), types, choose(loop.getInits(), before),
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        for (auto [argument, copy] : llvm::zip_equal(before, arguments))
          map.map(argument, copy);
        clone(inner, loop.getBeforeBody(), map);
        scf::ConditionOp condition = loop.getConditionOp();
        scf::ConditionOp::create(inner, loc,
                                 map.lookupOrDefault(condition.getCondition()),
                                 choose(condition.getArgs(), after));
      },
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        for (auto [argument, copy] : llvm::zip_equal(after, arguments))
          map.map(argument, copy);
        clone(inner, loop.getAfterBody(), map);
        scf::YieldOp::create(inner, loc,
                             choose(loop.getYieldOp()->getOperands(), before));
      });
}

/// Those of all groups.
static void cloneBounds(OpBuilder &builder, GroupBoundsOp group,
                        IRMapping &map) {
  Location loc = group.getLoc();
  SmallVector<Value> bounds =
      llvm::map_to_vector(group.getBounds(), [&](Value bound) {
        return map.lookupOrDefault(bound);
      });
  auto whole = GroupBoundsOp::create(builder, loc, bounds, group.getRows());
  map.map(group.getResults(), whole.getResults());
  // Ends that are the same for all groups fold in the role that computes.
  if (group.getOwnBounds().front() == group.getLo())
    map.map(group.getResults().front(), bounds.front());
  if (group.getOwnBounds().back() == group.getHi())
    map.map(group.getResults().back(), bounds.back());
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&whole.getOwn(), {}, builder.getIndexType(), loc);
  YieldOp::create(builder, loc, bounds);
}

void ProducerSlice::clone(OpBuilder &builder, Block *from, IRMapping &map) {
  for (Operation &op : from->without_terminator()) {
    if (auto receive = dyn_cast<ReceiveOp>(op))
      for (auto [taken, value] : llvm::zip_equal(
               receive.getValues(), getPublication(receive).getValues()))
        map.map(taken, map.lookupOrDefault(value));
    if (isPassedOver(&op))
      for (auto [result, init] :
           llvm::zip_equal(op.getResults(), cast<scf::ForOp>(op).getInitArgs()))
        map.map(result, map.lookupOrDefault(init));
    if (!ops.contains(&op))
      continue;
    if (auto group = dyn_cast<GroupBoundsOp>(op)) {
      cloneBounds(builder, group, map);
      continue;
    }
    auto tiles = dyn_cast<scf::WhileOp>(op);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      cloneLoop(builder, loop, map);
    else if (tiles && !isShared(op) && !findsTile(op))
      cloneWhile(builder, tiles, map);
    else
      builder.clone(op, map);
  }
}
