//===- View.h - arguments as kernels see them ----------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel may see a tensor in other dimensions than its caller: (length, dim)
// as one batch and one head of that, (batch, length, heads * dim) with the
// heads apart and in front. `ArgumentInfo::view` says how. Needs no GPU.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_VIEW_H
#define ATTN_RUNTIME_VIEW_H

#include "attn/Runtime/Arguments.h"

namespace attn::runtime {

struct Dimension {
  int64_t size = 1, stride = 0;
};

/// The parts that each dimension of the kernel counts through, the outermost
/// first; none for one element. Where the argument is seen as it is, each has
/// one part. An error where a size cannot be split as the view wants it.
Result<std::vector<std::vector<Dimension>>> viewParts(const ArgumentInfo &info,
                                                      const Argument &tensor);

/// The sizes of the kernel's dimensions.
std::vector<int64_t>
viewSizes(const std::vector<std::vector<Dimension>> &parts);

/// Strides of the kernel's dimensions; nothing where the parts of one do not
/// lie one after the other.
std::optional<std::vector<int64_t>>
viewStrides(const std::vector<std::vector<Dimension>> &parts);

} // namespace attn::runtime

#endif // ATTN_RUNTIME_VIEW_H
