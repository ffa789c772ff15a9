//===- ForwardKernels.h - the kernels of attention ------------ -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_FORWARDKERNELS_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_FORWARDKERNELS_H

#include "QueryBlock.h"

namespace attn {

/// The results that the function returns, and the memrefs for them.
struct ForwardResults {
  SmallVector<Value, 2> returned, outputs;
};

/// A block of queries over all blocks of keys: o, m and l.
SoftmaxState buildSteps(OpBuilder &b, const QueryKernel &kernel,
                        const QueryBlock &block);

/// Writes what the softmax gives, once the sink has joined.
void buildEpilogue(OpBuilder &b, const QueryKernel &kernel,
                   const QueryBlock &block, const ForwardResults &results,
                   SoftmaxState state);

/// The kernels of a plan with `split_keys`. `b` stands before the return of the
/// function, which has that name.
void buildSplitForward(OpBuilder &b, const QueryKernel &kernel, StringRef name,
                       const ForwardResults &results);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_FORWARDKERNELS_H
