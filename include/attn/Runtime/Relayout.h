//===- Relayout.h - tensors in layouts that kernels do not take -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel reads rows of 16 bytes at addresses that are multiples of 16, and
// its innermost dimension is contiguous. A tensor that lies otherwise is copied
// into memory of the launch before the kernels run, a result after them:
// slower by the time of the copy, and the same bits. Needs no GPU.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_RELAYOUT_H
#define ATTN_RUNTIME_RELAYOUT_H

#include "attn/Runtime/View.h"

namespace attn::runtime {

/// Tensors of a higher rank are not copied.
inline constexpr int64_t kMaxRelayoutRank = 4;

/// Why kernels cannot take `tensor`, as they see it, as it lies; empty if they
/// can.
std::string describeMisfit(const ArgumentInfo &info, const Argument &tensor);

/// The copy of such a tensor, which the kernels see in `parts`: what to launch,
/// but for the place of the packed elements, and their strides. An error, with
/// the reason, where the artifact has no kernel for it.
Result<RelayoutCall>
planRelayout(const Artifact &artifact, size_t argument, void *data,
             const std::vector<std::vector<Dimension>> &parts,
             std::string reason, std::vector<int64_t> &strides);

/// The parameters of the kernel that copies `call`'s tensor to `packed` or, if
/// it is a result, from there.
std::vector<uint64_t> relayoutParameters(const RelayoutCall &call,
                                         void *packed);

/// The same copy, done here: of tensors in the host's memory.
void relayoutHere(const RelayoutCall &call, void *packed);

} // namespace attn::runtime

#endif // ATTN_RUNTIME_RELAYOUT_H
