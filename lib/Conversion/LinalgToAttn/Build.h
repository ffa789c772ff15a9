//===- Build.h - attention in place of what was found -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_LINALGTOATTN_BUILD_H
#define ATTN_LIB_CONVERSION_LINALGTOATTN_BUILD_H

#include "Match.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::raise {

/// The variables of each dimension of a tensor, the slowest first.
using Dimensions = SmallVector<SmallVector<ExprRef>>;

/// Brings tensors from one arrangement of variables into another.
class Arrangement {
public:
  Arrangement(OpBuilder &b, Location loc, Extents &extents)
      : b(b), loc(loc), extents(extents) {}

  /// `tensor`, whose dimensions are `from`, with dimensions `to`.
  Value rearrange(Value tensor, const Dimensions &from, const Dimensions &to);
  /// `tensor` with elements of another float type.
  Value castElements(Value tensor, Type element);
  /// `tensor` with the static shape of `type`.
  Value castShape(Value tensor, RankedTensorType type);

private:
  OpFoldResult sizeOf(ExprRef variable);
  Value toAtoms(Value tensor, const Dimensions &from);
  Value fromAtoms(Value tensor, const Dimensions &to);

  OpBuilder &b;
  Location loc;
  Extents &extents;
};

/// A value or dimension of this size before the insertion point, of no
/// tensor in `avoided`; null if there is none.
Value readSize(OpBuilder &b, Location loc, Extents &extents, Extent extent,
               ArrayRef<Operation *> avoided = {});

/// Query, key and value as attention wants them.
struct AttentionOperands {
  Value query, key, value;
};
AttentionOperands buildOperands(OpBuilder &b, const AttentionMatch &match,
                                Extents &extents);

/// `output` and, if the graph has one, `lse` in the place of the graph, which
/// goes as far as nothing else uses it.
void replaceResults(RewriterBase &rewriter, const AttentionMatch &match,
                    Extents &extents, Value output, Value lse);

/// Puts five structured operations, and casts, in the place of what was found;
/// the last product.
Operation *buildNormalForm(RewriterBase &rewriter, const AttentionMatch &match,
                           Extents &extents);

/// Puts the operation in the place of what was found.
AttentionOp buildAttention(RewriterBase &rewriter, const AttentionMatch &match,
                           Extents &extents);

} // namespace attn::raise

#endif // ATTN_LIB_CONVERSION_LINALGTOATTN_BUILD_H
