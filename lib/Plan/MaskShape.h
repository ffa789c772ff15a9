//===- MaskShape.h - what a mask shows a query -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How well large tiles suit a mask, told from its region alone. A guess for the
// choice of a plan: what is computed does not depend on it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_MASKSHAPE_H
#define ATTN_LIB_PLAN_MASKSHAPE_H

#include "mlir/IR/Region.h"

namespace attn::plan {

/// The mask compares sums of positions and scalars, once: as the causal one.
bool isHalf(mlir::Region &mask);

/// A query sees keys here and there: where data say so that are read by
/// position, every few keys (a remainder is compared for equality), or keys of
/// several intervals (one of several conditions, of which some bound the keys
/// from above and some from below).
bool isScattered(mlir::Region &mask);

/// A mask reads one number of each key, of 32 bits or fewer, maybe for each
/// query, and one of each query or none; beside these it compares positions as
/// they are. It has no quotients, no window that moves with the query, and
/// reads nothing where another number says.
bool comparesFew(mlir::Region &mask);

/// How many remainders say which keys of an interval show, where each block of
/// keys has visible ones in each tile of queries: they repeat within a block,
/// or, of queries, within a tile, nothing is read by position, and no condition
/// is an alternative. Else 0.
int64_t countPeriods(mlir::Region &mask);

/// A query sees keys for which data say the same: its document. No condition is
/// an alternative.
bool isOfDocuments(mlir::Region &mask);

/// How many keys before the query the mask shows: of a window, whose first key
/// is the query less a constant. 0: as many as there are, or that is not known.
/// Keys in other intervals are not counted.
int64_t countNearKeys(mlir::Region &mask);

/// How many keys the mask shows a query, at most and of most queries: those of
/// a window and the first ones, by constants. The first queries may see all.
/// 0: more, or that is not known.
int64_t countSeenKeys(mlir::Region &mask);

} // namespace attn::plan

#endif // ATTN_LIB_PLAN_MASKSHAPE_H
