//===- OrderIntegers.cpp - integers are computed where they are used ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation on fragments becomes one operation for each element, so a chain
// of them stands element beside element: what every element is in the first
// round of a random number, then what it is in the second. All of that would be
// live together. Here each integer moves to its first use, with what it is
// computed from before it: one element after the other, and only what
// several elements share stays live. Nothing is computed twice, and what has an
// effect stays where it is. What is true of numbers that a branch gives, as
// those that lanes gather if they are there, is known before the next branch
// where the numbers take more registers. The assembler orders short blocks well
// by itself, and kernels without such chains were timed as they come out, so
// only blocks with many integers are touched.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace attn {
#define GEN_PASS_DEF_GPUORDERINTEGERS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static constexpr size_t manyIntegers = 1024;

static bool isMovable(Operation *op) {
  return op->getNumRegions() == 0 && op->getNumResults() == 1 && isPure(op) &&
         op->getResult(0).getType().isSignlessInteger();
}

namespace {
/// Gives the operations of a block their new order.
class Ordering {
public:
  explicit Ordering(Block *block) : block(block) {}

  void run();

private:
  /// Truths about what branches give, and how many of them stand before each
  /// operation with regions.
  struct Truths {
    SmallVector<Operation *> ops;
    DenseMap<Operation *, size_t> before;
  };
  Truths collectTruths();
  bool areFewer(ArrayRef<Operation *> truths) const;
  void placeOperands(Operation *op, Operation *place);

  Block *block;
  DenseSet<Operation *> waiting; // those that can move, not placed yet
};
} // namespace

/// What `op`, or an operation in its regions, reads.
static SmallVector<Operation *> getSources(Operation *op, Block *block) {
  SmallVector<Operation *> sources;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && source->getBlock() == block)
        sources.push_back(source);
  });
  return sources;
}

/// Those that wait and that `op` needs go before `place`. Chains are as long as
/// ten rounds of random numbers, so there is no recursion.
void Ordering::placeOperands(Operation *op, Operation *place) {
  struct Frame {
    Operation *op;
    SmallVector<Operation *> sources;
    size_t next = 0;
  };
  SmallVector<Frame> stack;
  stack.push_back({op, getSources(op, block)});
  while (!stack.empty()) {
    Frame &frame = stack.back();
    if (frame.next == frame.sources.size()) {
      if (frame.op != op)
        frame.op->moveBefore(place);
      stack.pop_back();
      continue;
    }
    Operation *source = frame.sources[frame.next++];
    if (waiting.erase(source))
      stack.push_back({source, getSources(source, block)});
  }
}

Ordering::Truths Ordering::collectTruths() {
  Truths truths;
  DenseSet<Operation *> given;
  for (Operation &op : *block) {
    if (op.getNumRegions() != 0) {
      truths.before[&op] = truths.ops.size();
      given.insert(&op);
    } else if (isMovable(&op) && op.getResult(0).getType().isInteger(1) &&
               llvm::any_of(op.getOperands(), [&](Value operand) {
                 return given.contains(operand.getDefiningOp());
               })) {
      truths.ops.push_back(&op);
      given.insert(&op);
    }
  }
  return truths;
}

/// Whether what is true takes fewer registers than the numbers that it is true
/// of, which branches gave.
bool Ordering::areFewer(ArrayRef<Operation *> truths) const {
  constexpr unsigned registerBits = 32;
  DenseSet<Value> numbers;
  unsigned words = 0, read = 0;
  for (Operation *truth : truths) {
    if (!waiting.contains(truth))
      continue;
    for (Value operand : truth->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && maker->getNumRegions() != 0 &&
          operand.getType().isIntOrFloat() && numbers.insert(operand).second)
        words += llvm::divideCeil(operand.getType().getIntOrFloatBitWidth(),
                                  registerBits);
    read += llvm::any_of(truth->getUsers(), [&](Operation *user) {
      return !llvm::is_contained(truths, user);
    });
  }
  return words > read;
}

void Ordering::run() {
  SmallVector<Operation *> anchors, movable;
  for (Operation &op : *block)
    (isMovable(&op) ? movable : anchors).push_back(&op);
  if (movable.size() < manyIntegers)
    return;
  waiting.insert_range(movable);
  size_t placed = 0;
  auto [truths, truthsBefore] = collectTruths();
  for (Operation *anchor : anchors) {
    size_t end = truthsBefore.lookup(anchor);
    if (placed < end && areFewer(ArrayRef(truths).slice(placed, end - placed)))
      for (; placed < end; ++placed)
        if (waiting.erase(truths[placed])) {
          placeOperands(truths[placed], anchor);
          truths[placed]->moveBefore(anchor);
        }
    placeOperands(anchor, anchor);
  }
  // What nobody in the block reads.
  for (Operation *op : movable)
    if (waiting.contains(op))
      op->moveBefore(anchors.back());
}

namespace {
struct GPUOrderIntegers final
    : attn::impl::GPUOrderIntegersBase<GPUOrderIntegers> {
  void runOnOperation() override {
    getOperation().walk([](Block *block) {
      if (block->getParent()->getParentOfType<gpu::GPUFuncOp>())
        Ordering(block).run();
    });
  }
};
} // namespace
