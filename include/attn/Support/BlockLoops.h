//===- BlockLoops.h - loops over consecutive blocks ----------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel goes through the blocks [lo, hi) of its keys, or of its queries
// where the tile is one of keys, in a chain of loops of step 1:
//
//   %a:3 = scf.for %n = %lo to %x step %c1 iter_args(%s = %init) …
//   %b:3 = scf.for %n = %x to %hi step %c1 iter_args(%s = %a) …
//
// Each loop starts at the block where the one before ended. In the Tile room it
// also starts with what that one gave, and nothing else reads that: the chain
// is one loop from %lo to %hi whose body differs from range to range. Later a
// loop may carry more than the next one wants (tile-lazy-max). Which loops of a
// room are loops over blocks, the room says (KeyLoops.h, LoopChain.h).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_BLOCKLOOPS_H
#define ATTN_SUPPORT_BLOCKLOOPS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <string>

namespace attn {

/// A chain of loops over blocks, at least one.
struct BlockLoops {
  SmallVector<scf::ForOp, 3> loops;

  scf::ForOp front() const { return loops.front(); }
  scf::ForOp back() const { return loops.back(); }
  /// The blocks of all loops: [lo, hi).
  Value getLowerBound() const { return front().getLowerBound(); }
  Value getUpperBound() const { return back().getUpperBound(); }
  /// Where the first one starts, and where each one ends.
  SmallVector<Value> getBounds() const {
    SmallVector<Value> bounds = {getLowerBound()};
    for (scf::ForOp loop : loops)
      bounds.push_back(loop.getUpperBound());
    return bounds;
  }
  /// What the first loop starts with, and what the last one gives.
  ValueRange getInits() const { return front().getInitArgs(); }
  ResultRange getResults() const { return back().getResults(); }

  /// True if what each loop carries goes on in the next one, and nowhere else.
  bool handOnAll() const {
    for (size_t number = 1; number < loops.size(); ++number) {
      scf::ForOp loop = loops[number - 1], next = loops[number];
      auto isNext = [&](Operation *user) { return user == next; };
      if (!llvm::equal(next.getInitArgs(), loop.getResults()) ||
          !llvm::all_of(loop->getUsers(), isNext))
        return false;
    }
    return true;
  }

  /// True if `value` can be used before the first loop.
  bool isKnownBefore(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!op)
      op = value.getParentBlock()->getParentOp();
    Operation *ancestor = front()->getBlock()->findAncestorOpInBlock(*op);
    return !ancestor || ancestor->isBeforeInBlock(front());
  }
};

/// True if `loop` counts one by one.
inline bool hasUnitStep(scf::ForOp loop) {
  return matchPattern(loop.getStep(), m_One());
}

/// Matches loops of one block, in order, as a chain; says in `reason` why they
/// are none.
inline FailureOr<BlockLoops> matchBlockLoops(ArrayRef<scf::ForOp> loops,
                                             std::string &reason) {
  auto give = [&](StringRef text) {
    reason = text.str();
    return failure();
  };
  if (loops.empty())
    return give("there is no loop over blocks");
  for (scf::ForOp loop : loops)
    if (!loop.getInductionVar().getType().isIndex() || !hasUnitStep(loop))
      return give("a loop over blocks does not count them one by one");
  for (size_t number = 1; number < loops.size(); ++number) {
    scf::ForOp loop = loops[number - 1], next = loops[number];
    if (next.getLowerBound() != loop.getUpperBound())
      return give("a loop over blocks does not start where the one before "
                  "ends");
  }
  return BlockLoops{SmallVector<scf::ForOp, 3>(loops)};
}

} // namespace attn

#endif // ATTN_SUPPORT_BLOCKLOOPS_H
