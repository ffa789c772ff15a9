//===- ScalarBody.h - a region as code of one position -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOLINALG_SCALARBODY_H
#define ATTN_LIB_CONVERSION_ATTNTOLINALG_SCALARBODY_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "mlir/IR/ValueRange.h"

namespace mlir {
class OpBuilder;
} // namespace mlir

namespace attn {

class CaptureAddOp;

/// Builds what an attn.capture_add does, from its value and indices there.
using AddBuilder = llvm::function_ref<void(CaptureAddOp, mlir::Value value,
                                           mlir::ValueRange indices)>;

/// Clones the body of a region at the insertion point of `b`, for
/// one position, and returns what it yields. `arguments` stand for the block
/// arguments; captured tensors are read in place, out of range as 0. With
/// `widen`, f32 values of the body are f64 (an f32 argument must be f64 or is
/// extended); f16 and bf16 stay, as the program asks for them by name.
Value buildScalarBody(OpBuilder &b, Region &region, ValueRange arguments,
                      bool widen, AddBuilder add = nullptr);

/// buffer[indices], or 0 where an index is out of range.
Value buildLoad(OpBuilder &b, Location loc, Value buffer, ValueRange indices);

/// How many elements of buffer[indices] are <= value: all are counted, sorted
/// or not.
Value buildSearch(OpBuilder &b, Location loc, Value buffer, ValueRange indices,
                  Value value);

/// The tensor with `value` added to its element at the indices, or as it is
/// where an index is out of range.
Value buildAdd(OpBuilder &b, Location loc, Value tensor, ValueRange indices,
               Value value);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOLINALG_SCALARBODY_H
