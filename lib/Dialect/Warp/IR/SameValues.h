//===- SameValues.h - values that roles agree on -----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_IR_SAMEVALUES_H
#define ATTN_LIB_DIALECT_WARP_IR_SAMEVALUES_H

#include "attn/Dialect/Warp/IR/RingItem.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace attn::warp {

/// Values of the producer that are the same as values of the consumer, besides
/// those that are the same value.
class SameValues {
public:
  /// Bounds that depend on the group count as those that `wholes` has for them.
  explicit SameValues(const DenseMap<Value, Value> &wholes) : wholes(wholes) {}

  void add(Value producer, Value consumer) {
    pairs.insert({producer, consumer});
  }
  /// The bodies of two loops run together.
  void addLoops(Operation *producer, Operation *consumer) {
    loops.insert({producer, consumer});
  }

  bool areSame(Value producer, Value consumer);
  /// Whether what was taken to be the same at the start of a loop's body is
  /// the same at its end.
  bool isKept();

private:
  bool areCarried(Value producer, Value consumer);
  bool areComputed(Value producer, Value consumer);
  bool areFolded(Value producer, Value consumer);
  Value getWhole(Value value);
  RingItem fold(Value value, int depth);

  const DenseMap<Value, Value> &wholes;

  DenseSet<std::pair<Value, Value>> pairs;
  DenseSet<std::pair<Operation *, Operation *>> loops;
  SmallVector<std::pair<Value, Value>> atEnd;
};

/// A loop, or a chain of loops over blocks up to `last`.
struct LoopOrChain {
  Operation *first, *last;
};

/// Whether two loops run equally often, two chains through as many blocks.
bool areSameLoops(LoopOrChain producer, LoopOrChain consumer, SameValues &same);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_IR_SAMEVALUES_H
