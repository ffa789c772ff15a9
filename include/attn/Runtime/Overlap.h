//===- Overlap.h - tensors that share memory ------------------ -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A result is written in any order, and while arguments are still read: no two
// of its elements may share a place, nor may one of them with another tensor.
// Views of one allocation that lie between each other are apart all the same:
// slices of a packed (batch, length, 3, heads, dim), say. Both questions are
// answered from sizes and strides alone; what is not seen to be apart counts as
// overlapping.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_OVERLAP_H
#define ATTN_RUNTIME_OVERLAP_H

#include "attn/Runtime/Arguments.h"

namespace attn::runtime {

/// Two elements of `tensor`, which has some, may lie in one place. Exact, but
/// for three and more dimensions that interlock, which no layout of nested
/// dimensions does.
bool overlapsItself(const Argument &tensor);

/// An element of `a` and one of `b`, with elements of that many bytes, may
/// share a byte. Exact where one range of addresses lies after the other, or
/// where both tensors are slices of one.
bool overlap(const Argument &a, int64_t bytesOfA, const Argument &b,
             int64_t bytesOfB);

} // namespace attn::runtime

#endif // ATTN_RUNTIME_OVERLAP_H
