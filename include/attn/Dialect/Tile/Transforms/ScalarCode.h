//===- ScalarCode.h - scalar regions as code on vectors ------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_TRANSFORMS_SCALARCODE_H
#define ATTN_DIALECT_TILE_TRANSFORMS_SCALARCODE_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// Clones a region of scalar code (that of `tile.scores`, say) as code on
/// vectors at `builder`, and gives what it yields as a vector of `shape`, M x
/// N. `arguments` stand for those of its block: scalars, M x 1, 1 x N or M x N.
/// Every value has the smallest of these shapes that holds it. What does not
/// change from step to step of the loop that `builder` stands in is computed
/// before `head`: that loop, or the first one of its chain. Where `builder`
/// stands in no loop, `head` may be an operation before it: before that goes
/// what is one number per row. `root` may be another value of the region than
/// what it yields; `outside` says what stands for values from outside of the
/// region.
Value expandScalarCode(OpBuilder &builder, Operation *head, Region &region,
                       ValueRange arguments, ArrayRef<int64_t> shape,
                       Value root = {}, const IRMapping &outside = {});

/// One element of a memref, at indices of i32; out of range gives 0.
Value loadElement(OpBuilder &builder, Location loc, Value view,
                  ValueRange indices);

/// Leaves one of equal operations in a function of kernels, and one of equal
/// reads that `loadElement` made of what nobody writes: the code of two regions
/// that begin with such a read is then the same code.
void shareScalarCode(RewriterBase &rewriter, func::FuncOp function);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_TRANSFORMS_SCALARCODE_H
