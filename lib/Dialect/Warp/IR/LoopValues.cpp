//===- LoopValues.cpp - what loops carry ----------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/LoopValues.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::warp;

std::optional<CarriedValue> attn::warp::getCarriedValue(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  Operation *owner = argument ? argument.getOwner()->getParentOp() : nullptr;
  if (auto loop = dyn_cast_or_null<scf::ForOp>(owner)) {
    if (argument == loop.getInductionVar())
      return std::nullopt;
    return CarriedValue{loop, loop.getTiedLoopInit(argument)->get(),
                        loop.getTiedLoopYieldedValue(argument)->get()};
  }
  auto loop = dyn_cast_or_null<scf::WhileOp>(owner);
  if (!loop)
    return std::nullopt;
  unsigned number = argument.getArgNumber();
  if (argument.getOwner() == loop.getAfterBody()) {
    auto passed =
        dyn_cast<BlockArgument>(loop.getConditionOp().getArgs()[number]);
    if (!passed || passed.getOwner() != loop.getBeforeBody())
      return std::nullopt;
    number = passed.getArgNumber();
  }
  return CarriedValue{loop, loop.getInits()[number],
                      loop.getYieldOp().getOperand(number)};
}

Value attn::warp::getLastValue(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<scf::ForOp>(owner))
    return loop.getTiedLoopResult(argument);
  return owner->getResult(argument.getArgNumber());
}

scf::WhileOp attn::warp::addCarriedValues(RewriterBase &rewriter,
                                          scf::WhileOp loop, ValueRange inits) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> allInits = llvm::to_vector_of<Value>(loop.getInits());
  llvm::append_range(allInits, inits);
  SmallVector<Type> types = llvm::to_vector(loop.getResultTypes());
  llvm::append_range(types, inits.getTypes());
  auto result = scf::WhileOp::create(rewriter, loop.getLoc(), types, allInits);
  for (auto [from, to] :
       llvm::zip_equal(loop->getRegions(), result->getRegions()))
    rewriter.inlineRegionBefore(from, to, to.end());
  auto extend = [&](Block *block, Operation *terminator) {
    SmallVector<Value> added;
    for (Value init : inits)
      added.push_back(block->addArgument(init.getType(), init.getLoc()));
    rewriter.modifyOpInPlace(terminator, [&] {
      terminator->insertOperands(terminator->getNumOperands(), added);
    });
  };
  extend(result.getBeforeBody(), result.getConditionOp());
  extend(result.getAfterBody(), result.getYieldOp());
  rewriter.replaceOp(loop,
                     result.getResults().take_front(loop.getNumResults()));
  return result;
}
