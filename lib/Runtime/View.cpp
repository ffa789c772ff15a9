//===- View.cpp - arguments as kernels see them --------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/View.h"

#include <algorithm>

using namespace attn;
using namespace attn::runtime;

using Parts = std::vector<std::vector<Dimension>>;

// What the known parts of each dimension of the argument make together, and
// whether one part takes the rest.
static Status splitSizes(const ArgumentInfo &info, const Argument &tensor,
                         std::vector<int64_t> &rest) {
  std::vector<int64_t> known(info.shape.size(), 1);
  std::vector<bool> isOpen(info.shape.size(), false);
  for (const auto &dimension : info.view)
    for (const ViewPart &part : dimension)
      if (part.size < 0)
        isOpen[part.dim] = true;
      else
        known[part.dim] *= part.size;
  for (size_t i = 0; i < known.size(); ++i) {
    int64_t size = tensor.sizes[i];
    bool fits =
        isOpen[i] ? known[i] > 0 && size % known[i] == 0 : size == known[i];
    if (!fits)
      return Status::error("size of dimension " + std::to_string(i) + " is " +
                           std::to_string(size) + ", wanted " +
                           (isOpen[i] ? "a multiple of " : "") +
                           std::to_string(known[i]));
    rest.push_back(isOpen[i] ? size / known[i] : 1);
  }
  return Status();
}

// Several dimensions that are seen as one may be more than any tensor has: of
// an empty one, or where strides are 0.
static std::optional<int64_t> count(const std::vector<Dimension> &parts) {
  int64_t count = 1;
  bool fits = true;
  for (const Dimension &part : parts) {
    if (part.size == 0)
      return 0;
    fits &= !__builtin_mul_overflow(count, part.size, &count);
  }
  return fits ? std::optional(count) : std::nullopt;
}

Result<Parts> runtime::viewParts(const ArgumentInfo &info,
                                 const Argument &tensor) {
  Parts parts;
  if (info.view.empty()) {
    for (int64_t i = 0; i < tensor.rank; ++i) {
      parts.emplace_back();
      if (tensor.sizes[i] != 1)
        parts.back().push_back({tensor.sizes[i], tensor.strides[i]});
    }
    return parts;
  }
  std::vector<int64_t> rest;
  Status status = splitSizes(info, tensor, rest);
  if (!status.ok())
    return status;
  bool isEmpty = std::find(tensor.sizes, tensor.sizes + tensor.rank, 0) !=
                 tensor.sizes + tensor.rank;
  for (const auto &dimension : info.view) {
    parts.emplace_back();
    for (const ViewPart &part : dimension) {
      int64_t size = part.size < 0 ? rest[part.dim] : part.size, stride = 0;
      if (size == 1)
        continue;
      // A step counts elements of the dimension: no more than there are. The
      // strides of a tensor without elements say nothing.
      int64_t span;
      if (!isEmpty && (__builtin_mul_overflow(tensor.strides[part.dim],
                                              part.step, &stride) ||
                       __builtin_mul_overflow(stride, size, &span)))
        return Status::error("stride of dimension " + std::to_string(part.dim) +
                             " is " + std::to_string(tensor.strides[part.dim]) +
                             ", the tensor leaves the address space");
      parts.back().push_back({size, stride});
    }
    if (!count(parts.back()))
      return Status::error("its sizes are more than 64 bits count");
  }
  return parts;
}

std::vector<int64_t> runtime::viewSizes(const Parts &parts) {
  std::vector<int64_t> sizes;
  for (const auto &dimension : parts)
    sizes.push_back(*count(dimension));
  return sizes;
}

std::optional<std::vector<int64_t>> runtime::viewStrides(const Parts &parts) {
  std::vector<int64_t> strides;
  for (const auto &dimension : parts) {
    for (size_t i = 1; i < dimension.size(); ++i)
      if (dimension[i - 1].stride != dimension[i].size * dimension[i].stride)
        return std::nullopt;
    strides.push_back(dimension.empty() ? 0 : dimension.back().stride);
  }
  return strides;
}
