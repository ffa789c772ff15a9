//===- ProducerSlice.h - what copies depend on -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_PRODUCERSLICE_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_PRODUCERSLICE_H

#include "attn/Dialect/Warp/IR/Warp.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <string>

namespace attn::warp {

/// Whether an operation may stand before the roles, for both: scalars,
/// computed without effects other than reads.
bool isShared(Operation &op);

/// Whether an operation, which is not shared, draws tiles from memory and does
/// nothing else.
bool findsTile(Operation &op);

/// The operations in `scope` (the consumer, or the kernel as it was) that its
/// copies depend on, and the carried values among them.
class ProducerSlice {
public:
  explicit ProducerSlice(Operation *scope) : scope(scope) {}

  /// Fails if a box depends on what fragments or effects gave.
  /// What is sent counts as copied.
  LogicalResult compute(std::string &reason);
  /// Copies of `from`'s operations go to the insertion point.
  void clone(OpBuilder &builder, Block *from, IRMapping &map);

private:
  void cloneLoop(OpBuilder &builder, scf::ForOp loop, IRMapping &map);
  void cloneWhile(OpBuilder &builder, scf::WhileOp loop, IRMapping &map);
  LogicalResult needSources(BlockArgument argument);
  LogicalResult needSources(Operation *op, unsigned result);
  void needOp(Operation *op);
  void need(Value value);

  Operation *scope;
  DenseSet<Operation *> ops;
  DenseSet<Value> values;
  SmallVector<Value> worklist;
};

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_PRODUCERSLICE_H
