//===- Work.cpp - how much a call computes and moves -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Tune/Work.h"

#include "attn/Runtime/View.h"

using namespace mlir;
using namespace attn;

namespace {
/// Keys low <= j - i <= high are visible to query i.
struct Band {
  int64_t low, high;
  void narrow(int64_t otherLow, int64_t otherHigh) {
    low = std::max(low, otherLow);
    high = std::min(high, otherHigh);
  }
};
} // namespace

static int64_t countVisiblePairs(ArrayAttr variants, int64_t queries,
                                 int64_t keys) {
  Band band{-queries, keys};
  auto offset = [&](Alignment alignment) {
    return alignment == Alignment::BottomRight ? keys - queries : 0;
  };
  if (variants)
    for (Attribute variant : variants) {
      if (auto causal = dyn_cast<CausalAttr>(variant))
        band.narrow(-queries, offset(causal.getAlignment()));
      if (auto window = dyn_cast<WindowAttr>(variant)) {
        int64_t shift = offset(window.getAlignment());
        band.narrow(window.getLeft() < 0 ? -queries : shift - window.getLeft(),
                    window.getRight() < 0 ? keys : shift + window.getRight());
      }
    }
  int64_t pairs = 0;
  for (int64_t i = 0; i < queries; ++i) {
    int64_t first = std::max<int64_t>(0, i + band.low);
    int64_t last = std::min(keys - 1, i + band.high);
    pairs += std::max<int64_t>(0, last - first + 1);
  }
  return pairs;
}

Work attn::countWork(ScoredOp op, ArrayAttr variants, const Artifact &manifest,
                     const Operands &operands) {
  Work work;
  std::vector<int64_t> q, k, v;
  for (auto [info, tensor] :
       llvm::zip_equal(manifest.arguments, operands.tensors)) {
    if (!tensor)
      continue;
    work.bytes += static_cast<double>(tensor->numElements()) *
                  elementBytes(tensor->element());
    // As the kernel sees them.
    runtime::Argument argument = runtime::Argument::tensor(
        nullptr, tensor->sizes().size(), tensor->sizes().data(),
        tensor->strides().data());
    auto parts = runtime::viewParts(info, argument);
    if (!parts.ok())
      continue;
    std::vector<int64_t> sizes = runtime::viewSizes(*parts);
    if (info.is(ArgumentRole::Query))
      q = sizes;
    if (info.is(ArgumentRole::Key))
      k = sizes;
    if (info.is(ArgumentRole::Value))
      v = sizes;
  }
  if (q.size() != 4 || k.size() != 4)
    return work;
  work.queries = q[2];
  work.batchHeads = q[0] * q[1];
  work.pairs = q[2] * k[2];
  work.countedPairs = countVisiblePairs(variants, q[2], k[2]);
  // Scores and weights again, then the products of three gradients; two
  // products more for each product of the forward.
  bool isBackward = isa<AttentionBackwardOp>(op);
  bool isJvp = isa<AttentionJvpOp>(op);
  double perPair = isJvp        ? 3.0 * (q[3] + v[3])
                   : isBackward ? 3.0 * q[3] + 2.0 * v[3]
                                : 1.0 * (q[3] + v[3]);
  work.flops = 2.0 * work.countedPairs * perPair * q[0] * q[1];
  return work;
}
