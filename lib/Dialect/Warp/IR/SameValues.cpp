//===- SameValues.cpp - values that roles agree on ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SameValues.h"

#include "attn/Dialect/Warp/IR/LoopValues.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::warp;

/// What a bound that differs between groups is to one that passes over nothing,
/// and to the producer.
Value SameValues::getWhole(Value value) {
  if (auto bounds = value.getDefiningOp<GroupBoundsOp>())
    return bounds.getWhole(value);
  return wholes.lookup(value);
}

bool SameValues::areSame(Value a, Value b) {
  if (Value whole = getWhole(a))
    return areSame(whole, b);
  if (Value whole = getWhole(b))
    return areSame(a, whole);
  return a == b || pairs.contains({a, b}) || areCarried(a, b) ||
         areComputed(a, b) || areFolded(a, b);
}

/// The same at the start of all loops that carry them, if they are at the end.
bool SameValues::areCarried(Value a, Value b) {
  std::optional<CarriedValue> consumer = getCarriedValue(b);
  if (!consumer)
    return false;
  std::optional<CarriedValue> producer = getCarriedValue(a);
  if (producer && !loops.contains({producer->loop, consumer->loop}))
    return false;
  // What is the same in all iterations need not be carried.
  if (!producer)
    producer = {nullptr, a, a};
  if (!areSame(producer->init, consumer->init))
    return false;
  add(a, b);
  atEnd.push_back({producer->yielded, consumer->yielded});
  return true;
}

bool SameValues::areComputed(Value a, Value b) {
  Operation *opA = a.getDefiningOp(), *opB = b.getDefiningOp();
  if (!opA || !opB ||
      cast<OpResult>(a).getResultNumber() !=
          cast<OpResult>(b).getResultNumber())
    return false;
  // Kernels do not write what they read.
  bool onlyRead = llvm::all_of(std::array{opA, opB}, [](Operation *op) {
    return isPure(op) || hasSingleEffect<MemoryEffects::Read>(op) ||
           op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
  });
  bool isWarpOp =
      isa_and_nonnull<WarpDialect>(opA->getDialect()) && !isa<SearchOp>(opA);
  if (!onlyRead || isWarpOp)
    return false;
  return OperationEquivalence::isEquivalentTo(
      opA, opB,
      [&](Value left, Value right) { return success(areSame(left, right)); },
      [&](Value left, Value right) { add(left, right); },
      OperationEquivalence::IgnoreLocations);
}

/// What `value` is to a group that passes over nothing, as far as it folds.
RingItem SameValues::fold(Value value, int depth) {
  RingItem item = RingItem::of(value);
  // Verifiers see operations that use their own results, too.
  if (!item.base || depth == 0)
    return item;
  Operation *op = item.base.getDefiningOp();
  RingItem result = {item.base, 0};
  if (Value whole = getWhole(item.base)) {
    result = fold(whole, depth - 1);
  } else if (isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(op)) {
    RingItem lhs = fold(op->getOperand(0), depth - 1);
    RingItem rhs = fold(op->getOperand(1), depth - 1);
    if (lhs.base == rhs.base)
      result = isa<arith::MinSIOp>(op) == (lhs.offset < rhs.offset) ? lhs : rhs;
  }
  return {result.base, result.offset + item.offset};
}

/// Where one role has folded bounds.
bool SameValues::areFolded(Value a, Value b) {
  RingItem item = fold(a, /*depth=*/10), folded = fold(b, /*depth=*/10);
  if (item.base == a && folded.base == b)
    return false;
  return item.offset == folded.offset &&
         (item.base == folded.base ||
          (item.base && folded.base && areSame(item.base, folded.base)));
}

bool SameValues::isKept() {
  while (!atEnd.empty()) {
    auto [a, b] = atEnd.pop_back_val();
    if (!areSame(a, b))
      return false;
  }
  return true;
}

static Value getEnd(LoopOrChain loops) {
  Operation *last = loops.last ? loops.last : loops.first;
  return cast<scf::ForOp>(last).getUpperBound();
}

/// Chains count blocks, of which their loops may take several at a time.
static bool isOneByOne(LoopOrChain loops) {
  return loops.last ||
         isConstantIntValue(cast<scf::ForOp>(loops.first).getStep(), 1);
}

bool attn::warp::areSameLoops(LoopOrChain producer, LoopOrChain consumer,
                              SameValues &same) {
  same.addLoops(producer.first, consumer.first);
  if (auto loopA = dyn_cast<scf::WhileOp>(producer.first)) {
    auto loopB = dyn_cast<scf::WhileOp>(consumer.first);
    return loopB && same.areSame(loopA.getConditionOp().getCondition(),
                                 loopB.getConditionOp().getCondition());
  }
  auto loopA = cast<scf::ForOp>(producer.first);
  auto loopB = dyn_cast<scf::ForOp>(consumer.first);
  if (!loopB || !same.areSame(loopA.getLowerBound(), loopB.getLowerBound()) ||
      !same.areSame(getEnd(producer), getEnd(consumer)))
    return false;
  bool isByBlocks = isOneByOne(producer) && isOneByOne(consumer);
  if (!isByBlocks && !same.areSame(loopA.getStep(), loopB.getStep()))
    return false;
  same.add(loopA.getInductionVar(), loopB.getInductionVar());
  return true;
}
