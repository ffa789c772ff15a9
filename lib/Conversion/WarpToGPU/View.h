//===- View.h - a strided memref taken apart --------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_VIEW_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_VIEW_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace attn::warp {

/// A strided memref taken apart. Strides and sizes are i64 values, constants
/// where the type says so.
struct View {
  MemRefType type;
  Value address; // i64, of the element at index 0
  SmallVector<Value> sizes, strides;
  int64_t elementBytes = 0;

  static FailureOr<View> get(OpBuilder &builder, Location loc, Value memref);
  /// The address of an element; `indices` are i64.
  Value addressOf(OpBuilder &builder, Location loc,
                  ArrayRef<Value> indices) const;
  /// Whether the innermost stride is known to be 1.
  bool isContiguous() const;
  /// Elements of a dimension from i64 index `at` on, as i32: a dimension has
  /// fewer than 2^31 elements, as the coordinates of the warp dialect are i32.
  Value left(OpBuilder &builder, Location loc, unsigned dim, Value at) const;
  /// The same from index `at` on, if it is a constant.
  std::optional<int64_t> knownLeft(unsigned dim, Value at) const;
};

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_VIEW_H
