//===- MaskSample.h - how much of a mask tiles visit -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_MASKSAMPLE_H
#define ATTN_LIB_PLAN_MASKSAMPLE_H

#include "attn/Plan/Budget.h"
#include "mlir/IR/Region.h"

namespace attn::plan {

/// Evaluates a mask for some queries, and counts what tiles of the usual sizes
/// visit for them. Empty where tiles of all sizes visit about the same, as of
/// an interval, and where data or floats decide.
std::vector<TileVisits> sampleMask(mlir::Region &mask);

} // namespace attn::plan

#endif // ATTN_LIB_PLAN_MASKSAMPLE_H
