//===- Relayout.cpp - tensors in layouts that kernels do not take --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/Relayout.h"

#include <cstring>

using namespace attn;
using namespace attn::runtime;

// Elements of a tensor without gaps lie that far apart; rows may be padded.
static std::vector<int64_t> denseStrides(const std::vector<int64_t> &sizes,
                                         int64_t rowMultiple) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    if (__builtin_mul_overflow(stride, sizes[i], &stride))
      return {};
    if (i + 1 == sizes.size())
      stride = (stride + rowMultiple - 1) / rowMultiple * rowMultiple;
  }
  return strides;
}

static bool isDense(const Argument &tensor) {
  int64_t stride = 1;
  for (int64_t i = tensor.rank; i-- > 0;) {
    if (tensor.sizes[i] != 1 && tensor.strides[i] != stride)
      return false;
    stride *= tensor.sizes[i];
  }
  return true;
}

std::string runtime::describeMisfit(const ArgumentInfo &info,
                                    const Argument &tensor) {
  int64_t bytes = elementBytes(info.element);
  int64_t alignment = std::max(info.alignment, bytes);
  auto describe = [&](int64_t i) {
    return "stride of dimension " + std::to_string(i) + " is " +
           std::to_string(tensor.strides[i]);
  };
  // First, as a transposed tensor breaks other rules as well.
  int64_t last = tensor.rank - 1;
  if (last >= 0 && tensor.sizes[last] != 1 && tensor.strides[last] != 1)
    return describe(last) + ", the innermost one must be 1";
  for (int64_t i = 0; i < last; ++i) {
    if (tensor.sizes[i] == 1)
      continue;
    if (tensor.strides[i] < 0)
      return describe(i) + ", kernels take none below 0";
    // No overflow: the shape was checked.
    if (tensor.strides[i] * bytes % alignment != 0)
      return describe(i) + " elements of " + std::to_string(bytes) +
             " bytes, wanted a multiple of " + std::to_string(alignment) +
             " bytes";
  }
  if (reinterpret_cast<uintptr_t>(tensor.data) % alignment != 0)
    return "data pointer is not aligned to " + std::to_string(alignment) +
           " bytes";
  return info.isDense && !isDense(tensor) ? "there are gaps between elements"
                                          : "";
}

// Which of the artifact's kernels copies elements of that size.
static const RelayoutInfo *findKernel(const Artifact &artifact, int64_t bytes,
                                      int64_t &number) {
  for (size_t i = 0; i < artifact.relayouts.size(); ++i)
    if (artifact.relayouts[i].elementBytes == bytes) {
      number = static_cast<int64_t>(i);
      return &artifact.relayouts[i];
    }
  return nullptr;
}

namespace {
/// A dimension of a copy: of the caller's tensor, and packed.
struct CopiedDimension {
  int64_t size, stride, packed;
};
} // namespace

// The dimensions of a copy, the outermost first; more than a kernel takes only
// where no two neighbours are one.
static std::vector<CopiedDimension>
copiedDimensions(const std::vector<std::vector<Dimension>> &parts,
                 const std::vector<int64_t> &packed) {
  std::vector<CopiedDimension> dimensions;
  for (size_t k = 0; k < parts.size(); ++k) {
    int64_t stride = packed[k];
    std::vector<CopiedDimension> inner;
    for (size_t i = parts[k].size(); i-- > 0;) {
      inner.push_back({parts[k][i].size, parts[k][i].stride, stride});
      stride *= parts[k][i].size;
    }
    dimensions.insert(dimensions.end(), inner.rbegin(), inner.rend());
  }
  for (size_t i = 1;
       i < dimensions.size() &&
       dimensions.size() > static_cast<size_t>(kMaxRelayoutRank);) {
    CopiedDimension &outer = dimensions[i - 1], &inner = dimensions[i];
    if (outer.stride == inner.size * inner.stride &&
        outer.packed == inner.size * inner.packed) {
      inner.size *= outer.size;
      dimensions.erase(dimensions.begin() + static_cast<ptrdiff_t>(i) - 1);
    } else {
      ++i;
    }
  }
  return dimensions;
}

Result<RelayoutCall>
runtime::planRelayout(const Artifact &artifact, size_t argument, void *data,
                      const std::vector<std::vector<Dimension>> &parts,
                      std::string reason, std::vector<int64_t> &strides) {
  const ArgumentInfo &info = artifact.arguments[argument];
  RelayoutCall call;
  call.reason = std::move(reason);
  call.argument = static_cast<int64_t>(argument);
  call.isOutput = info.isOutput;
  call.data = data;
  call.elementBytes = elementBytes(info.element);
  const RelayoutInfo *kernel =
      findKernel(artifact, call.elementBytes, call.kernel);
  if (!kernel)
    return Status::error(call.reason);

  // Rows as far apart as the kernel wants them.
  std::vector<int64_t> sizes = viewSizes(parts);
  strides = denseStrides(sizes, std::max(info.alignment, call.elementBytes) /
                                    call.elementBytes);
  int64_t elements = 1;
  if (strides.size() != sizes.size() ||
      (!sizes.empty() &&
       __builtin_mul_overflow(strides[0], sizes[0], &elements)) ||
      __builtin_mul_overflow(elements, call.elementBytes, &call.place.bytes))
    return Status::error(call.reason +
                         ", and a copy does not fit the address space");
  std::vector<CopiedDimension> dimensions = copiedDimensions(parts, strides);
  if (dimensions.size() > static_cast<size_t>(kMaxRelayoutRank))
    return Status::error(call.reason + " (no more than " +
                         std::to_string(kMaxRelayoutRank) +
                         " dimensions are copied)");
  for (size_t i = dimensions.size(), d = kMaxRelayoutRank; i-- > 0;) {
    --d;
    call.sizes[d] = dimensions[i].size;
    call.strides[d] = dimensions[i].stride;
    call.packed[d] = dimensions[i].packed;
  }

  int64_t inBlocks = call.sizes[2] * call.sizes[3];
  int64_t blocks = (inBlocks + kernel->elements - 1) / kernel->elements;
  constexpr int64_t kMaxGrid[] = {0x7fffffff, 0xffff, 0xffff};
  const std::array<int64_t, 3> grid = {blocks, call.sizes[1], call.sizes[0]};
  for (size_t i = 0; i < grid.size(); ++i) {
    if (grid[i] > kMaxGrid[i])
      return Status::error(call.reason + ", and it is too large to be copied");
    call.grid[i] = static_cast<uint32_t>(grid[i]);
  }
  return call;
}

static void packView(void *data, const std::array<int64_t, 4> &sizes,
                     const std::array<int64_t, 4> &strides,
                     std::vector<uint64_t> &parameters) {
  uint64_t address = reinterpret_cast<uintptr_t>(data);
  parameters.insert(parameters.end(), {address, address, 0});
  parameters.insert(parameters.end(), sizes.begin(), sizes.end());
  parameters.insert(parameters.end(), strides.begin(), strides.end());
}

std::vector<uint64_t> runtime::relayoutParameters(const RelayoutCall &call,
                                                  void *packed) {
  std::vector<uint64_t> parameters;
  if (call.isOutput) {
    packView(packed, call.sizes, call.packed, parameters);
    packView(call.data, call.sizes, call.strides, parameters);
  } else {
    packView(call.data, call.sizes, call.strides, parameters);
    packView(packed, call.sizes, call.packed, parameters);
  }
  return parameters;
}

void runtime::relayoutHere(const RelayoutCall &call, void *packed) {
  auto *here = static_cast<char *>(packed);
  auto *there = static_cast<char *>(call.data);
  for (int64_t a = 0; a < call.sizes[0]; ++a)
    for (int64_t b = 0; b < call.sizes[1]; ++b)
      for (int64_t c = 0; c < call.sizes[2]; ++c)
        for (int64_t d = 0; d < call.sizes[3]; ++d) {
          auto offset = [&](const std::array<int64_t, 4> &strides) {
            return (a * strides[0] + b * strides[1] + c * strides[2] +
                    d * strides[3]) *
                   call.elementBytes;
          };
          char *inner = here + offset(call.packed);
          char *outer = there + offset(call.strides);
          std::memcpy(call.isOutput ? outer : inner,
                      call.isOutput ? inner : outer, call.elementBytes);
        }
}
