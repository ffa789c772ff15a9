//===- TileBuffers.h - vectors as memory, by element ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_TILETOLOOPS_TILEBUFFERS_H
#define ATTN_CONVERSION_TILETOLOOPS_TILEBUFFERS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace attn {

/// Emits a nest of loops over `shape`; `body` gets the induction variables.
void emitLoops(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
               function_ref<void(OpBuilder &, ValueRange)> body);

/// As above with bounds; a nest over no dimension is the body alone.
void emitLoops(OpBuilder &builder, Location loc, ValueRange lower,
               ValueRange upper,
               function_ref<void(OpBuilder &, ValueRange)> body);

/// Where the vector values of one kernel live. Buffers are allocated at the
/// entry of the function, freed before it returns, and shared by values of one
/// type whose lives do not overlap; so a loop allocates nothing.
class TileBuffers {
public:
  explicit TileBuffers(func::FuncOp kernel) : kernel(kernel) {}

  /// A buffer for a value of this type, free until `release`.
  Value acquire(VectorType type);
  void release(Value buffer);

  /// Names `buffer` as the place of `value`.
  void bind(Value value, Value buffer) { buffers[value] = buffer; }
  /// The place of `value`; null for a deferred one.
  Value lookup(Value value) const { return buffers.lookup(value); }

  /// Element `indices` of a vector value: a load, or the expression of a
  /// deferred operation.
  Value element(OpBuilder &builder, Location loc, Value value,
                ValueRange indices);

  /// Writes every element of `value` to `buffer`.
  void fill(OpBuilder &builder, Location loc, Value value, Value buffer);

  /// Emits the allocations and deallocations.
  void finish();

private:
  func::FuncOp kernel;
  llvm::DenseMap<Value, Value> buffers;
  llvm::MapVector<Type, SmallVector<Value>> idle;
  SmallVector<Value> all;
};

} // namespace attn

#endif // ATTN_CONVERSION_TILETOLOOPS_TILEBUFFERS_H
