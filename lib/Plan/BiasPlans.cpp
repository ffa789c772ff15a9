//===- BiasPlans.cpp - plans of linear biases for many keys ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With a bias such as that of ALiBi keys far from the greatest one have no
// weight, and tile-hide-faint does not visit them. To know which, it reads
// queries, keys and values once more, whatever comes of it. H200, 16384 queries
// in all, hidden size 2048, normal queries and keys:
//
//   ALiBi of 32 heads (d = 64)   4096 keys 1.15, 8192 1.48, 16384 2.0 times as
//     of 16 heads (d = 128)      fast; 1.05, 1.38, 1.85
//   both sides (d = 64, 128)     4096 keys 1.64, 1.46, 8192 1.93, 1.72
//   slope 1 (d = 64)             4096 keys 7, 8192 14 times as fast
//
// with queries four times as large 4096 keys 1.08 and 0.99, 8192 1.34 and 1.24,
// and where no key is far enough 0.93 and 0.90, 0.97 and 0.95.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/KeySlope.h"
#include "attn/Plan/ChoosePlans.h"
#include "attn/Plan/Plan.h"
#include "attn/Support/OptionalPasses.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::plan;

/// So many keys are enough for any slope, and for one that is known so many
/// that the bias of the first and the last differ by 2048.
static constexpr int64_t enoughKeys = 8192, leastKeys = 1024;
static constexpr double enoughBias = 2048;

/// From how many keys on a bias that is linear along the keys of a row leaves
/// enough of them without weight; 0: there is none.
static int64_t countEnoughKeys(AttentionOp op) {
  bool isAlibi = false;
  if (ArrayAttr variants = op.getVariantsAttr())
    for (Attribute variant : variants) {
      if (!isa<CausalAttr, WindowAttr, AlibiAttr>(variant))
        return 0;
      isAlibi |= isa<AlibiAttr>(variant);
    }
  if (!readKeyInterval(op.getMask()))
    return 0;
  if (isAlibi)
    return op.getScore().empty() ? enoughKeys : 0;
  std::optional<KeySlope> form = readKeySlope(op.getScore());
  if (!form)
    return 0;
  double slope = 0;
  for (const ConstantTerm &term : form->slope) {
    if (!term.factors.empty())
      return enoughKeys;
    slope += term.constant;
  }
  double keys = enoughBias / std::fabs(slope);
  return int64_t(std::clamp(keys, double(leastKeys), double(enoughKeys)));
}

/// Of batch, heads, length, dim.
static int64_t getLength(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getDimSize(2);
}

SmallVector<PlanCase> plan::addBiasPlans(ScoredOp op,
                                         SmallVector<PlanCase> cases) {
  auto forward = dyn_cast<AttentionOp>(op.getOperation());
  if (!forward || !cases.back().plan ||
      cases.back().plan.getTarget() == TargetKind::CPU)
    return cases;
  int64_t enough = countEnoughKeys(forward);
  if (enough == 0)
    return cases;
  // A window of fewer keys, or of no one knows how many, hides them already
  // (of 1024 keys: 0.86 of the speed at d = 64, 0.76 at d = 128).
  Workload workload = getWorkload(op);
  if (workload.isWindow && workload.nearKeys < enough)
    return cases;
  using Quantity = LaunchQuantity;
  PlanCase many = cases.back();
  for (auto [tensor, quantity] :
       {std::pair<Value, Quantity>{op.getQuery(), Quantity::QueryLength},
        std::pair<Value, Quantity>{op.getKey(), Quantity::KeyLength}}) {
    int64_t length = getLength(tensor);
    if (ShapedType::isDynamic(length))
      many.condition.comparisons.push_back(
          {{1, {quantity}},
           {enough, {}},
           QuantityComparison::Kind::GreaterEqual});
    else if (length < enough)
      return cases;
  }
  PassSelection passes = many.plan.getPasses();
  passes.setUse(OptionalPass::HideFaint, PassUse::On);
  many.plan = many.plan.withPasses(passes);
  if (many.condition.comparisons.empty())
    return {many};
  cases.insert(cases.begin(), many);
  return cases;
}
