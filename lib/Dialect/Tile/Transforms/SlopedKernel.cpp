//===- SlopedKernel.cpp - a kernel whose scores have a slope --------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SlopedKernel.h"

#include "attn/Dialect/Tile/Analysis/ScoreTrend.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Whether `value` can be computed in another kernel, from what is outside of
/// `kernel` and from `leaves`.
static bool isCloneable(Value value, KernelOp kernel, ArrayRef<Value> leaves) {
  if (llvm::is_contained(leaves, value) ||
      !kernel->isAncestor(value.getParentRegion()->getParentOp()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != kernel.getBody())
    return false;
  auto isPlain = [](Operation *inner) {
    return isMemoryEffectFree(inner) || isa<memref::LoadOp, scf::IfOp>(inner);
  };
  bool arePlain = true;
  op->walk([&](Operation *inner) { arePlain &= isPlain(inner); });
  SetVector<Value> read(llvm::from_range, op->getOperands());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  return arePlain && llvm::all_of(read, [&](Value operand) {
           return isCloneable(operand, kernel, leaves);
         });
}

/// The load whose rows are multiplied, as it stands in memory.
static LoadOp getWholeLoad(Value value) {
  auto load = value.getDefiningOp<LoadOp>();
  bool isWhole = load && load.getIndices().size() == 4 && !load.getPacked() &&
                 load.getSlices() == 1 &&
                 cast<VectorType>(load.getType()).getRank() == 2;
  return isWhole ? load : LoadOp();
}

/// Whether two loops compute the same scores.
static bool isSame(const KeySlope &lhs, const KeySlope &rhs) {
  auto areSame = [](ArrayRef<ConstantTerm> some,
                    ArrayRef<ConstantTerm> others) {
    return llvm::equal(some, others, [](const auto &one, const auto &other) {
      return one.constant == other.constant && one.factors == other.factors;
    });
  };
  return areSame(lhs.scale, rhs.scale) && areSame(lhs.slope, rhs.slope) &&
         lhs.peak.has_value() == rhs.peak.has_value() &&
         (!lhs.peak || lhs.peak->minus(*rhs.peak) == 0);
}

static bool readStep(scf::ForOp loop, SlopedKernel &kernel,
                     std::string &reason) {
  OnlineSoftmaxOp softmax = findSoftmax(loop);
  auto scores =
      softmax ? softmax.getScores().getDefiningOp<ScoresOp>() : ScoresOp();
  auto product = scores
                     ? scores.getScores().getDefiningOp<vector::ContractionOp>()
                     : vector::ContractionOp();
  if (!product) {
    reason = "a loop has not one product of queries and keys, and its softmax";
    return false;
  }
  kernel.query = getWholeLoad(product.getLhs());
  kernel.key = getWholeLoad(product.getRhs());
  kernel.value = LoadOp();
  for (auto other : loop.getBody()->getOps<vector::ContractionOp>())
    if (other != product)
      kernel.value = getWholeLoad(other.getRhs());
  if (!kernel.query || !kernel.key || !kernel.value ||
      isa<VectorType>(scores.getHead().getType())) {
    reason = "queries, keys or values are not read as they stand in memory";
    return false;
  }
  std::optional<KeySlope> form = readKeySlope(scores.getScore());
  if (!form) {
    reason = "scores are not linear in the product and the key's position";
    return false;
  }
  std::optional<KeyInterval> shown = readKeyInterval(scores.getMask());
  if (!shown) {
    reason = "the mask does not show each row one interval of keys";
    return false;
  }
  if (!kernel.form.slope.empty() && !isSame(kernel.form, *form)) {
    reason = "the loops have different score functions";
    return false;
  }
  kernel.form = std::move(*form);
  kernel.rowsOfTile = cast<VectorType>(kernel.query.getType()).getDimSize(0);
  // Blocks inside the interval have no mask.
  llvm::append_range(kernel.shown.lower, shown->lower);
  llvm::append_range(kernel.shown.upper, shown->upper);
  kernel.keysOfBlock =
      cast<VectorType>(scores.getKeys().getType()).getDimSize(1);
  return true;
}

/// Whether all of `offsets` are at least `least`, or at most.
static bool areBeyond(ArrayRef<KeyOffset> offsets, const KeyOffset &end,
                      bool above) {
  return llvm::all_of(offsets, [&](const KeyOffset &offset) {
    std::optional<int64_t> distance =
        above ? offset.minus(end) : end.minus(offset);
    return distance && *distance >= 0;
  });
}

/// Whether each row that sees a key sees the one of the greatest bias; of a
/// peak, if there is a key at that position.
static bool seesNearest(const SlopedKernel &kernel) {
  const KeyInterval &shown = kernel.shown;
  switch (kernel.nearest) {
  case SlopedKernel::Nearest::Peak:
    return areBeyond(shown.upper, *kernel.form.peak, /*above=*/true) &&
           areBeyond(shown.lower, *kernel.form.peak, /*above=*/false);
  case SlopedKernel::Nearest::First:
    return shown.lower.empty();
  case SlopedKernel::Nearest::Last:
    return shown.lower.empty() ||
           (!shown.upper.empty() &&
            llvm::all_of(shown.lower, [&](const KeyOffset &lower) {
              return areBeyond(shown.upper, lower, /*above=*/true);
            }));
  }
  llvm_unreachable("every case returns");
}

/// Whether what the scores are computed from can be computed elsewhere.
static bool canClone(const SlopedKernel &kernel) {
  LoadOp query = kernel.query, key = kernel.key;
  KernelOp grid = kernel.grid;
  Value leaves[] = {query.getIndices()[0], query.getIndices()[1]};
  auto can = [&](Value value) { return isCloneable(value, grid, leaves); };
  for (ArrayRef<ConstantTerm> terms :
       {ArrayRef(kernel.form.scale), ArrayRef(kernel.form.slope)})
    for (const ConstantTerm &term : terms)
      if (!llvm::all_of(term.factors, can))
        return false;
  // Where a peak is has to be known before the kernel.
  if (kernel.form.peak)
    for (auto [value, count] : kernel.form.peak->values)
      if (grid->isAncestor(value.getParentRegion()->getParentOp()))
        return false;
  return can(key.getIndices()[1]);
}

FailureOr<SlopedKernel> SlopedKernel::read(KernelOp grid, std::string &reason) {
  SlopedKernel kernel;
  kernel.grid = grid;
  FailureOr<BlockLoops> chain = matchKeyLoops(grid.getBody(), reason);
  if (failed(chain))
    return failure();
  kernel.chain = *chain;
  if (!llvm::all_of(chain->loops, countsKeyBlocks)) {
    reason = "the loops count visits of key blocks";
    return failure();
  }
  for (scf::ForOp loop : chain->loops)
    if (!readStep(loop, kernel, reason))
      return failure();
  ScoreTrend trend = readScoreTrend(chain->front());
  kernel.nearest = kernel.form.peak             ? SlopedKernel::Nearest::Peak
                   : trend == ScoreTrend::Grows ? SlopedKernel::Nearest::Last
                                                : SlopedKernel::Nearest::First;
  bool isKnown = kernel.form.peak || trend != ScoreTrend::None;
  if (!isKnown || !seesNearest(kernel)) {
    reason = "which key of a row has the greatest bias is not known";
    return failure();
  }
  if (!canClone(kernel)) {
    reason = "scale or slope are computed from more than batch and head";
    return failure();
  }
  return kernel;
}
