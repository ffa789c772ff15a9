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

/// A function that can become a kernel, completely matched.
struct ForwardMatch {
  func::FuncOp func;
  AttentionOp attention;
  /// Scalar code and tensor.dim, in order.
  SmallVector<Operation *> scalarOps;
};

/// Matches `func`, which must contain an attn.attention, or says why not.
FailureOr<ForwardMatch> matchForward(func::FuncOp func);

/// Checks that `region` can be computed element by element.
LogicalResult checkRegion(Region &region);

/// Checks that the regions of an attention with a plan are not too large for
/// its target.
LogicalResult checkRegionCost(ScoredOp op);

/// Copies a checked region into `to`, a region of `tile.scores`; `captures` are
/// what its last arguments stand for: memrefs for tensors, scalars as they are.
/// What depends on no row and no column is built at `outer`, before the loop.
void copyRegion(OpBuilder &outer, OpBuilder &inner, Region &from, Region &to,
                ValueRange captures);

/// Builds the kernel beside `match.func`; the source function stays.
func::FuncOp buildForward(OpBuilder &builder, ForwardMatch match);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_H
