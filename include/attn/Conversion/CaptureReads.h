//===- CaptureReads.h - what regions read of captured tensors -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two promises about captured tensors depend on data: those that are searched,
// or promised to be sorted, are sorted (C28, C2 of attn.capture_search); and an
// index is inside (C30). One that is not reads 0, by definition; it is a
// mistake where the mask shows the position and the element has a say in what
// the region yields.
//
// Every value of a region gets a taint: whether it depends on an element out of
// range. A select, a conjunction or a factor of 0 that drops the element drops
// the taint: in `select(i < n, table[i], 0.0)` no index from n on is a mistake.
// What depends on the score x is not computed: it is not looked at where it is
// an index or a condition.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_CAPTUREREADS_H
#define ATTN_CONVERSION_CAPTUREREADS_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>

namespace attn {

/// The first broken promise, in numbers.
struct CaptureFinding {
  enum Kind : int64_t { None, OutOfRange, NotSorted };
  int64_t kind = None;
  int64_t capture = 0, dim = 0;
  /// The index, and the size of the dimension; or an element, and the one in
  /// front of it, which is larger.
  int64_t found = 0, limit = 0;
  /// Batch entry, head, query and key; or, of the element that is smaller, the
  /// row, counted through the leading dimensions, and its place there.
  std::array<int64_t, 4> where = {};

  static constexpr int64_t numNumbers = 9;
};

/// Makes `function`, which has an attn.attention without variants, look for the
/// first broken promise instead: its only result, a tensor of i64, has the
/// numbers of a CaptureFinding in their order.
void buildCaptureReads(mlir::func::FuncOp function);

} // namespace attn

#endif // ATTN_CONVERSION_CAPTUREREADS_H
