//===- ErrorTerms.cpp - what the error rule asks of a call ----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Check/ErrorTerms.h"

#include "attn/Runtime/View.h"

#include <cmath>
#include <cstring>

using namespace mlir;
using namespace attn;

namespace {
/// The longest row of each batch and head, as the kernel sees them.
struct LongestRows {
  int64_t batch = 0, heads = 0, dim = 0;
  std::vector<double> norms; // [batch][heads]
};
} // namespace

/// Where the elements 0, 1, … of a dimension lie, whose parts are counted
/// through from the innermost, the last.
static std::vector<int64_t>
placeElements(const std::vector<runtime::Dimension> &parts) {
  std::vector<int64_t> offsets = {0};
  for (const runtime::Dimension &part : parts) {
    std::vector<int64_t> inner;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < part.size; ++i)
        inner.push_back(offset + i * part.stride);
    offsets = std::move(inner);
  }
  return offsets;
}

static double readElement(const HostTensor &tensor, int64_t offset) {
  int64_t bytes = elementBytes(tensor.element());
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char *>(tensor.data()) + offset * bytes,
              bytes);
  return decodeElement(tensor.element(), bits);
}

static LongestRows measureRows(const ArgumentInfo &info,
                               const HostTensor &tensor) {
  LongestRows rows;
  runtime::Argument argument =
      runtime::Argument::tensor(nullptr, tensor.sizes().size(),
                                tensor.sizes().data(), tensor.strides().data());
  auto parts = runtime::viewParts(info, argument);
  if (!parts.ok() || parts->size() != 4)
    return rows;
  std::vector<int64_t> at[4];
  for (auto [offsets, dimension] : llvm::zip_equal(at, *parts))
    offsets = placeElements(dimension);
  rows.batch = at[0].size();
  rows.heads = at[1].size();
  rows.dim = at[3].size();
  for (int64_t batch : at[0])
    for (int64_t head : at[1]) {
      double longest = 0;
      for (int64_t row : at[2]) {
        double squares = 0;
        for (int64_t column : at[3]) {
          double element = readElement(tensor, batch + head + row + column);
          squares += element * element;
        }
        longest = std::max(longest, squares);
      }
      rows.norms.push_back(std::sqrt(longest));
    }
  return rows;
}

static double boundCutOff(ScoredOp op, const LongestRows &q,
                          const LongestRows &k, bool isF32) {
  double largest = 0;
  if (k.norms.empty() || q.batch != k.batch || q.heads % k.heads != 0)
    return 0;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      largest =
          std::max(largest, q.norms[b * q.heads + h] *
                                k.norms[b * k.heads + h * k.heads / q.heads]);
  largest *= std::fabs(op.getScaleValue());
  double steps = isF32 ? 3 * q.dim / 8.0 : q.dim / 16.0;
  return std::isfinite(largest) ? steps * largest * 0x1p-24 : 0;
}

ErrorTerms attn::findErrorTerms(ScoredOp op, const Artifact &manifest,
                                const Operands &operands) {
  LongestRows q, k;
  ErrorTerms terms;
  for (auto [info, tensor] :
       llvm::zip_equal(manifest.arguments, operands.tensors)) {
    if (!tensor)
      continue;
    if (info.is(ArgumentRole::Query)) {
      q = measureRows(info, *tensor);
      terms.element = tensor->element();
    }
    if (info.is(ArgumentRole::Key))
      k = measureRows(info, *tensor);
    if (info.is(ArgumentRole::Lse) && !info.isOutput && info.view.empty())
      terms.lse = tensor->values();
    // Rows of another shape are not found.
    if (info.is(ArgumentRole::QueryGradient) && !info.view.empty())
      terms.lse.clear();
    if (info.is(ArgumentRole::Value))
      for (double value : tensor->values())
        if (std::isfinite(value))
          terms.largestValue = std::max(terms.largestValue, std::fabs(value));
  }
  bool isF32 = terms.element == ElementKind::F32;
  terms.isSplit = isF32;
  terms.cutOff = boundCutOff(op, q, k, isF32);
  return terms;
}
