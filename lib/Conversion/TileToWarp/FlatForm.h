//===- FlatForm.h - what convert-tile-to-warp accepts ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETOWARP_FLATFORM_H
#define ATTN_LIB_CONVERSION_TILETOWARP_FLATFORM_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Layout/Fragments.h"
#include "attn/Support/TargetInfo.h"

namespace attn {

/// A kernel in the flat tile form.
struct FlatKernel {
  tile::KernelOp kernel;
  const TargetInfo &target;
  /// Whether products of f32 do without the tensor cores.
  bool ieee = false;
};

/// How warps have a value of a kernel: its tiles in the grid in which the warps
/// share rows of a block (`chooseGridColumns`), those of fewer rows along the
/// columns.
layout::Fragment spread(VectorType type, PlanAttr plan);

/// The flat tile form: a `tile.kernel` whose body has no `tile.online_softmax`,
/// whose vectors have rank 2 (rank 1 only as a column Mx1 that loses its unit
/// dimension) and fit the warps of the plan, and whose loaded tiles are
/// operands of `vector.contract` only. Emits what does not fit.
FailureOr<FlatKernel> matchFlatKernel(tile::KernelOp kernel);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_TILETOWARP_FLATFORM_H
