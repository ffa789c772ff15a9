//===- AttnToTile.h - attn to tile ---------------------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pieces of convert-attn-to-tile that other C++ code may call.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_ATTNTOTILE_H
#define ATTN_CONVERSION_ATTNTOTILE_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// A function that can become kernels, completely matched.
struct KernelMatch {
  func::FuncOp func;
  /// attn.attention, attn.attention_backward or attn.attention_jvp.
  ScoredOp attention;
  /// Scalar code and tensor.dim, in order.
  SmallVector<Operation *> scalarOps;
};

/// True if `func` holds an operation that becomes kernels.
bool hasAttention(func::FuncOp func);

/// Matches `func`, which must have an attention, or says why not.
FailureOr<KernelMatch> matchKernels(func::FuncOp func);

/// Checks that `region` can be computed element by element.
LogicalResult checkRegion(Region &region);

/// Checks that the regions of an attention with a plan are not too large for
/// its target.
LogicalResult checkRegionCost(ScoredOp op);

/// Copies a checked region into `to`, one of scalar code of the tile dialect.
/// `operands` are what its first arguments stand for, of which scalars of i32
/// are the same for a whole block; `captures` what the others stand for:
/// memrefs for tensors, scalars as they are. What depends on no row and no
/// column is built at `outer`, before the loop. What is yielded is `root`, or
/// what the region yields.
void copyRegion(OpBuilder &outer, OpBuilder &inner, Region &from, Region &to,
                ValueRange operands, ValueRange captures, Value root = {});

/// Builds the kernel of an attn.attention, beside `match.func`; the source
/// function stays.
func::FuncOp buildForward(OpBuilder &builder, KernelMatch match);

/// Builds the kernel of an attn.attention_jvp, beside `match.func`; the source
/// function stays.
func::FuncOp buildJvp(OpBuilder &builder, KernelMatch match);

/// Builds the kernels of an attn.attention_backward, beside `match.func`; the
/// source function stays.
func::FuncOp buildBackward(OpBuilder &builder, KernelMatch match);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_H
