//===- TensorMaps.h - what boxes TMA copies --------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_TENSORMAPS_H
#define ATTN_RUNTIME_TENSORMAPS_H

#include "attn/Runtime/Arguments.h"

namespace attn::runtime {

/// What the driver makes a kernel's tensor map of: an argument, or a workspace
/// of `launch`, which has its place.
Result<TensorMapCall> describeTensorMap(const Artifact &artifact,
                                        const TensorMapInfo &info,
                                        const Arguments &arguments,
                                        const LaunchCall &launch);

/// Whether the tensor has no elements.
bool isOfNothing(const Artifact &artifact, const TensorMapInfo &info,
                 const Arguments &arguments, const LaunchCall &launch);

} // namespace attn::runtime

#endif // ATTN_RUNTIME_TENSORMAPS_H
