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

/// Values of one block of the kernel, which the arguments of a score or mask
/// region stand for.
struct RegionInputs {
  /// MxN scaled scores; null for a mask region.
  Value score;
  /// i32 scalars.
  Value batch, head;
  /// Coordinates of the block, vector<Mx1xi32> and vector<1xNxi32>.
  Value rows, columns;
  /// Memrefs for captured tensors, scalars as they are.
  SmallVector<Value> captures;
};

/// Checks that `region` can be computed element by element.
LogicalResult checkRegion(Region &region);

/// Checks that the regions of an attention with a plan are not too large for
/// its target.
LogicalResult checkRegionCost(AttentionOp op);

/// Clones a checked region of scalar code as code on vectors and returns the
/// yielded value as an MxN vector. Values that depend on no column are built at
/// `outer` (before the loop over the keys), the others at `inner`. Every value
/// has the smallest shape that holds it: a scalar, Mx1, 1xN or MxN.
Value inlineRegion(OpBuilder &outer, OpBuilder &inner, Region &region,
                   const RegionInputs &inputs);

/// Builds the kernel beside `match.func`; the source function stays.
func::FuncOp buildForward(OpBuilder &builder, ForwardMatch match);

} // namespace attn

#endif // ATTN_CONVERSION_ATTNTOTILE_H
