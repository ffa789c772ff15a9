//===- LoopChain.cpp - loops over consecutive blocks -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopChain.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// Finds the chain of a kernel; says why there is none.
class ChainMatcher {
public:
  ChainMatcher(KernelOp kernel, std::string &reason)
      : kernel(kernel), reason(reason) {}

  FailureOr<LoopChain> match();

private:
  LogicalResult give(const Twine &text) {
    reason = text.str();
    return failure();
  }
  LogicalResult matchLoops(LoopChain &chain);
  LogicalResult matchTile(LoopChain &chain, BufferedTile &tile);
  LogicalResult matchSlice(scf::ForOp loop, CopyOp copy,
                           SmallVector<Operation *> &slice);
  LogicalResult matchReaders(LoopChain &chain, BufferedTile &tile);
  void matchEntry(LoopChain &chain, CopyOp copy);

  KernelOp kernel;
  std::string &reason;
};
} // namespace

/// Whether an operation may be done again for a block ahead, which need not
/// exist: it computes, or reads memory at indices with an upper bound.
static bool isRepeatable(Operation *op, scf::ForOp loop) {
  if (isPure(op))
    return op->getNumRegions() == 0;
  auto load = dyn_cast<memref::LoadOp>(op);
  return load && llvm::all_of(load.getIndices(), [&](Value index) {
           return loop.isDefinedOutsideOfLoop(index) ||
                  isa_and_present<arith::MinSIOp, arith::MinUIOp>(
                      index.getDefiningOp());
         });
}

/// Whether two values are the same function of their operations' operands.
static bool isSameOperation(Value a, Value b) {
  Operation *opA = a.getDefiningOp(), *opB = b.getDefiningOp();
  return opA && opB && opA->getName() == opB->getName() &&
         opA->getAttrDictionary() == opB->getAttrDictionary() &&
         opA->getNumOperands() == opB->getNumOperands() &&
         opA->getNumRegions() == 0 && a.getType() == b.getType() &&
         cast<OpResult>(a).getResultNumber() ==
             cast<OpResult>(b).getResultNumber() &&
         (isPure(opA) || isa<memref::LoadOp>(opA));
}

/// Whether two values, of two loops, are the same function of their induction
/// variables.
static bool isSameFunction(Value a, Value inductionA, Value b,
                           Value inductionB) {
  SetVector<std::pair<Value, Value>> pairs;
  pairs.insert({a, b});
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto [left, right] = pairs[i];
    if (left == right || (left == inductionA && right == inductionB))
      continue;
    if (!isSameOperation(left, right))
      return false;
    for (auto pair : llvm::zip(left.getDefiningOp()->getOperands(),
                               right.getDefiningOp()->getOperands()))
      pairs.insert({std::get<0>(pair), std::get<1>(pair)});
  }
  return true;
}

LogicalResult ChainMatcher::matchLoops(LoopChain &chain) {
  SmallVector<scf::ForOp, 3> loops(llvm::make_filter_range(
      kernel.getBodyBlock()->getOps<scf::ForOp>(), [](scf::ForOp loop) {
        return !loop.getBody()->getOps<CopyOp>().empty();
      }));
  FailureOr<BlockLoops> matched = matchBlockLoops(loops, reason);
  if (failed(matched))
    return failure();
  chain.loops = matched->loops;
  for (scf::ForOp loop : loops) {
    auto copies = llvm::to_vector(loop.getBody()->getOps<CopyOp>());
    if (chain.tiles.empty())
      chain.tiles.resize(copies.size());
    if (copies.size() != chain.tiles.size())
      return give("the loops do not copy the same tiles");
    for (auto [tile, copy] : llvm::zip_equal(chain.tiles, copies))
      tile.copies.push_back(copy);
  }
  if (!chain.isKnownBefore(chain.getUpperBound()))
    return give("the last upper bound is computed after the first loop");
  return success();
}

/// The operations of the body that compute the indices of the box.
LogicalResult ChainMatcher::matchSlice(scf::ForOp loop, CopyOp copy,
                                       SmallVector<Operation *> &slice) {
  SetVector<Operation *> found;
  SmallVector<Value> worklist(copy.getIndices());
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (value.getParentBlock() != loop.getBody() ||
        value == loop.getInductionVar())
      continue;
    Operation *op = value.getDefiningOp();
    if (!op || !isRepeatable(op, loop))
      return give("a copied box is not a function of the block number");
    if (found.insert(op))
      llvm::append_range(worklist, op->getOperands());
  }
  slice = found.takeVector();
  llvm::sort(slice,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return success();
}

/// Readers stand after the copy, in its body.
LogicalResult ChainMatcher::matchReaders(LoopChain &chain, BufferedTile &tile) {
  tile.lastReaders.assign(chain.loops.size(), nullptr);
  for (Operation *user : tile.alloc.getSlot().getUsers()) {
    if (isa<CopyOp>(user) && llvm::is_contained(tile.copies, user))
      continue;
    bool isRead = false;
    for (auto [loop, copy, last] :
         llvm::zip_equal(chain.loops, tile.copies, tile.lastReaders)) {
      Operation *reader = loop.getBody()->findAncestorOpInBlock(*user);
      if (!reader || !copy->isBeforeInBlock(reader))
        continue;
      isRead = true;
      if (!last || last->isBeforeInBlock(reader))
        last = reader;
    }
    if (!isRead || isa<CopyOp>(user))
      return give("a slot is used outside the bodies that copy it");
  }
  if (llvm::is_contained(tile.lastReaders, nullptr))
    return give("a copied tile is not read");
  return success();
}

LogicalResult ChainMatcher::matchTile(LoopChain &chain, BufferedTile &tile) {
  CopyOp first = tile.copies.front();
  tile.alloc = first.getSlot().getDefiningOp<AllocOp>();
  if (!tile.alloc)
    return give("a slot is no warp.alloc");
  for (auto [loop, copy] : llvm::zip_equal(chain.loops, tile.copies)) {
    bool same = copy.getSlot() == first.getSlot() &&
                copy.getView() == first.getView() &&
                copy.getBoxes() == first.getBoxes();
    for (auto [index, other] : llvm::zip(first.getIndices(), copy.getIndices()))
      same =
          same && isSameFunction(index, chain.loops.front().getInductionVar(),
                                 other, loop.getInductionVar());
    if (!same)
      return give("the loops do not copy the same tiles");
    SmallVector<Operation *> slice;
    if (failed(matchSlice(loop, copy, slice)))
      return failure();
    tile.slices.push_back(slice);
  }
  return matchReaders(chain, tile);
}

/// A copy before the loops whose readers are loads that can wait until the
/// prologue has been issued, or stand after it anyway.
void ChainMatcher::matchEntry(LoopChain &chain, CopyOp copy) {
  EntryTile entry = {copy.getSlot().getDefiningOp<AllocOp>(), copy, {}};
  Block *body = kernel.getBodyBlock();
  auto isBehind = [&](Operation *op) {
    Operation *ancestor = body->findAncestorOpInBlock(*op);
    return ancestor && !ancestor->isBeforeInBlock(chain.loops.front());
  };
  if (!entry.alloc || !copy->isBeforeInBlock(chain.loops.front()))
    return;
  for (Operation *user : entry.alloc.getSlot().getUsers()) {
    if (user == copy || isBehind(user))
      continue;
    auto load = dyn_cast<LoadFragOp>(user);
    if (!load || !copy->isBeforeInBlock(load) ||
        !llvm::all_of(load->getUsers(), isBehind))
      return;
    entry.loads.push_back(load);
  }
  chain.entries.push_back(entry);
}

FailureOr<LoopChain> ChainMatcher::match() {
  LoopChain chain;
  if (failed(matchLoops(chain)))
    return failure();
  for (BufferedTile &tile : chain.tiles)
    if (failed(matchTile(chain, tile)))
      return failure();
  for (auto copy : kernel.getBodyBlock()->getOps<CopyOp>())
    matchEntry(chain, copy);
  return chain;
}

FailureOr<LoopChain> attn::warp::matchLoopChain(KernelOp kernel,
                                                std::string &reason) {
  return ChainMatcher(kernel, reason).match();
}
