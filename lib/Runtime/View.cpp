//===- View.cpp - arguments as kernels see them --------------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Runtime/View.h"

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
  for (const auto &dimension : info.view) {
    parts.emplace_back();
    for (const ViewPart &part : dimension) {
      int64_t size = part.size < 0 ? rest[part.dim] : part.size, stride = 0;
      if (size == 1)
        continue;
      // A step counts elements of the dimension: no more than there are.
      if (size != 0 &&
          __builtin_mul_overflow(tensor.strides[part.dim], part.step, &stride))
        return Status::error("stride of dimension " + std::to_string(part.dim) +
                             " is " + std::to_string(tensor.strides[part.dim]) +
                             ", the tensor leaves the address space");
      parts.back().push_back({size, stride});
    }
  }
  return parts;
}

std::vector<int64_t> runtime::viewSizes(const Parts &parts) {
  std::vector<int64_t> sizes;
  for (const auto &dimension : parts) {
    sizes.push_back(1);
    for (const Dimension &part : dimension)
      sizes.back() *= part.size;
  }
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
