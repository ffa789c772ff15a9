//===- TensorMaps.cpp - what boxes TMA copies ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/TensorMaps.h"

#include <algorithm>

using namespace attn;
using namespace attn::runtime;

namespace {
// What a tensor map is made of: an argument or a workspace.
struct MapSource {
  ElementKind element;
  int64_t rank;
  const int64_t *sizes;
  std::array<int64_t, 4> strides;
  void *data = nullptr;
  std::optional<int64_t> offset; // of a workspace

  bool hasElements() const {
    return std::find(sizes, sizes + rank, 0) == sizes + rank;
  }
};
} // namespace

static MapSource findMapSource(const Artifact &artifact, int64_t number,
                               const Arguments &arguments,
                               const LaunchCall &launch) {
  MapSource source = {};
  auto numArguments = static_cast<int64_t>(arguments.size());
  if (number < numArguments) {
    const Argument &tensor = arguments[number];
    source.element = artifact.arguments[number].element;
    source.rank = tensor.rank;
    source.sizes = tensor.sizes;
    std::copy_n(tensor.strides, tensor.rank, source.strides.begin());
    source.data = tensor.data;
    return source;
  }
  number -= numArguments;
  const WorkspaceCall &workspace = launch.workspaces[number];
  const VariantInfo &variant = artifact.variants[launch.variant];
  source.element = variant.workspaces[number].element;
  source.rank = static_cast<int64_t>(workspace.sizes.size());
  source.sizes = workspace.sizes.data();
  source.strides[source.rank - 1] = 1;
  for (int64_t i = source.rank - 1; i > 0; --i)
    source.strides[i - 1] = source.strides[i] * source.sizes[i];
  source.offset = workspace.offset;
  return source;
}

// Strides of dimensions that have one element say nothing and may be anything;
// the driver wants multiples of 16. An empty tensor has no map, but a kernel
// may copy a box of it all the same (and use nothing of that): all zeros.
Result<TensorMapCall> runtime::describeTensorMap(const Artifact &artifact,
                                                 const TensorMapInfo &info,
                                                 const Arguments &arguments,
                                                 const LaunchCall &launch) {
  MapSource source = findMapSource(artifact, info.argument, arguments, launch);
  TensorMapCall call;
  call.element = source.element;
  call.box[0] = static_cast<uint32_t>(info.boxColumns);
  call.box[1] = static_cast<uint32_t>(info.boxRows);
  call.swizzleBytes = info.swizzleBytes;
  constexpr int64_t panel = 2; // the dimension
  if (info.boxPanels > 1) {
    call.rank = 5;
    call.box[panel] = static_cast<uint32_t>(info.boxPanels);
  }
  if (!source.hasElements())
    return call;
  call.data = source.data;
  call.offset = source.offset;
  int64_t bytes = elementBytes(call.element);
  for (int64_t number = 0; number < source.rank; ++number) {
    int64_t dimension = source.rank - 1 - number;
    // Heads and batches come after the panels.
    int64_t i = info.boxPanels > 1 && number >= panel ? number + 1 : number;
    call.sizes[i] = static_cast<uint64_t>(source.sizes[dimension]);
    if (i == 0 || source.sizes[dimension] <= 1)
      continue;
    int64_t stride = source.strides[dimension] * bytes;
    constexpr int64_t alignment = 16;
    if (source.offset && stride % alignment != 0)
      return Status::error(
          "a workspace has a stride of " + std::to_string(stride) +
          " bytes in dimension " + std::to_string(dimension) +
          ", its tensor map wants a multiple of " + std::to_string(alignment));
    call.strides[i - 1] = static_cast<uint64_t>(stride);
  }
  if (info.boxPanels > 1) {
    call.sizes[panel] = call.sizes[0] / info.boxColumns;
    call.strides[panel - 1] = info.boxColumns * bytes;
    call.sizes[0] = info.boxColumns;
  }
  return call;
}

bool runtime::isOfNothing(const Artifact &artifact, const TensorMapInfo &info,
                          const Arguments &arguments,
                          const LaunchCall &launch) {
  return !findMapSource(artifact, info.argument, arguments, launch)
              .hasElements();
}
