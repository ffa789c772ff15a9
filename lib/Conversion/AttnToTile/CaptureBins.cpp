//===- CaptureBins.cpp - which sums by element a kernel has ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pass over all scores adds to the bins of one table or of several, those for
// which there is memory beside each other. Reads of one table that number its
// elements in the same way add to the same bins.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "attn/Layout/Descriptors.h"
#include "attn/Layout/Fragments.h"
#include "attn/Plan/Plan.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <limits>

using namespace mlir;
using namespace attn;

/// In multiples of which bins are counted.
static constexpr int64_t stepOfBins = 8;

/// Of the arguments of a pullback; that of the key follows.
static constexpr unsigned queryArgument =
    AttentionBackwardOp::kPullbackArguments - 2;

/// The one index that numbers the elements of a table, if it is one.
static Value findElementIndex(const CaptureSum &sum) {
  SmallVector<unsigned> dims = sum.getTableDims();
  return dims.size() == 1 ? sum.getIndex(dims.front()) : Value();
}

std::optional<ClampedDistance>
attn::findElementDistance(const CaptureSum &sum) {
  Value index = findElementIndex(sum);
  if (!index)
    return std::nullopt;
  Block &pullback = *CaptureAddOp(sum.op)->getBlock();
  return matchClampedDistance(index, pullback.getArgument(queryArgument),
                              pullback.getArgument(queryArgument + 1));
}

std::optional<PositionQuotient>
attn::findElementQuotient(const CaptureSum &sum) {
  Value index = findElementIndex(sum);
  Operation *quotient = index ? index.getDefiningOp() : nullptr;
  if (!isa_and_present<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp>(
          quotient))
    return std::nullopt;
  auto position = dyn_cast<BlockArgument>(quotient->getOperand(0));
  int64_t divisor = getConstantIntValue(quotient->getOperand(1)).value_or(0);
  if (!position || position.getArgNumber() < queryArgument || divisor <= 0)
    return std::nullopt;
  return PositionQuotient{position.getArgNumber() > queryArgument, divisor};
}

/// How many elements a table has, where that is known.
static std::optional<int64_t> countElements(const CaptureSum &sum) {
  auto type = cast<ShapedType>(CaptureAddOp(sum.op).getCapture().getType());
  int64_t count = 1;
  for (unsigned dim : sum.getTableDims()) {
    if (type.isDynamicDim(dim))
      return std::nullopt;
    count *= type.getDimSize(dim);
  }
  return count;
}

/// The elements that a plan is chosen for, and how many bins are enough: as
/// many as there are elements, up to what distances up to 64 to both sides
/// have.
static std::pair<int64_t, int64_t> countWanted(const CaptureSum &sum) {
  constexpr int64_t unknown = 64, known = 136;
  int64_t size = countElements(sum).value_or(unknown);
  return {size, std::clamp<int64_t>(llvm::alignTo(size, stepOfBins), stepOfBins,
                                    known)};
}

/// How many bins a plan for a GPU has memory for beside its tiles.
int64_t BackwardKernels::countBins(PlanAttr plan, bool hasRows) {
  constexpr int64_t bytesOfNumber = 4;
  constexpr int64_t barrierBytes = 4096;
  int64_t rows = plan.getBlockQ(), warps = plan.getWarps();
  int64_t bytesOfBin = bytesOfNumber * layout::warpSize * warps;
  if (hasRows)
    bytesOfBin *= layout::Fragment{layout::FragmentKind::Acc, rows, 1, warps}
                      .numRegisters();
  const TargetInfo &target = plan::getTarget(plan.getTarget());
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  bool hasPanels = target.hasWarpgroups && elementBytes == 2;
  auto countBytes = [&](int64_t columns) -> int64_t {
    int64_t bytes = columns * elementBytes;
    return hasPanels ? llvm::alignTo(bytes, layout::choosePanelBytes(bytes))
                     : bytes;
  };
  int64_t bytesOfRow = countBytes(paddedDim) + countBytes(paddedValueDim);
  int64_t left = target.sharedBytesPerBlock - barrierBytes -
                 (rows + plan.getStages() * plan.getBlockK()) * bytesOfRow;
  return std::max<int64_t>(left, 0) / bytesOfBin / stepOfBins * stepOfBins;
}

/// Gives each set of a pass its bins, out of so many for all, and says how many
/// chunks there are then; 0 where there is none for one.
int64_t BackwardKernels::shareBins(MutableArrayRef<BinSet> sets, int64_t bins) {
  // Some rows of the slot of a set are of no bin.
  int64_t left = bins - stepOfBins * static_cast<int64_t>(sets.size());
  int64_t others = sets.size(), chunks = 0;
  // The small ones first: what they do not need is for the others.
  SmallVector<std::pair<int64_t, size_t>> bySize;
  for (auto [number, set] : llvm::enumerate(sets))
    bySize.emplace_back(countWanted(set.parts.front()->sum).second, number);
  llvm::sort(bySize);
  for (auto [most, number] : bySize) {
    BinSet &set = sets[number];
    int64_t size = countWanted(set.parts.front()->sum).first;
    int64_t share = left / others-- / stepOfBins * stepOfBins;
    set.count = std::min(share, most);
    if (set.count <= 0)
      return 0;
    left -= set.count;
    chunks = std::max<int64_t>(chunks, llvm::divideCeil(size, set.count));
  }
  return chunks;
}

/// A plan in which warps have whole rows, that of the attention or one of fewer
/// rows, and how many bins it has for each set: all scores are made for each
/// chunk, or for all chunks together and a few more for each (of distances),
/// and take twice the time with half of the rows.
void BackwardKernels::planBins(BinPass &pass) {
  constexpr int64_t chunksOfAll = 32; // that take as long as all scores
  const CaptureSum &first = pass.sets.front().parts.front()->sum;
  bool hasRows = first.findTableRow().has_value();
  bool isBanded = pass.hasOneRead() && findElementDistance(first);
  pass.plan = getPlanOfRows();
  if (pass.plan.getTarget() == TargetKind::CPU) {
    constexpr int64_t enough = 1 << 20;
    pass.time = shareBins(pass.sets, enough);
    return;
  }
  bool hasGroups = plan::getTarget(pass.plan.getTarget()).hasWarpgroups;
  int64_t leastRows = hasGroups ? layout::groupOfWarpsRows : layout::groupRows;
  // Where none fits, what is placed says so.
  for (BinSet &set : pass.sets)
    set.count = stepOfBins;
  pass.time = std::numeric_limits<int64_t>::max() / 2; // two have a sum
  PlanAttr whole = pass.plan;
  int64_t cost = 1;
  for (int64_t rows = whole.getBlockQ(); rows % leastRows == 0;
       rows /= 2, cost *= 2) {
    int64_t warps = std::min(whole.getWarps(), rows / layout::groupRows);
    PlanAttr plan =
        whole.withTiles(rows, whole.getBlockK(), warps, whole.getStages());
    SmallVector<BinSet> sets = pass.sets;
    int64_t chunks = shareBins(sets, countBins(plan, hasRows));
    if (chunks == 0)
      continue;
    int64_t time = cost * (isBanded ? chunks + chunksOfAll : chunks);
    if (time >= pass.time)
      continue;
    pass = {std::move(sets), plan, time};
  }
}

/// Whether both number the elements of one capture in the same way.
static bool haveSameBins(const CaptureSum &a, const CaptureSum &b) {
  SmallVector<unsigned> dims = a.getTableDims();
  if (a.capture != b.capture || dims != b.getTableDims())
    return false;
  return llvm::all_of(llvm::seq<unsigned>(a.kinds.size()), [&](unsigned dim) {
    return llvm::is_contained(dims, dim) || a.getIndex(dim) == b.getIndex(dim);
  });
}

/// Whether a chunk of it needs few of all scores.
bool BackwardKernels::isOfFewScores(const BinPass &pass) {
  const CaptureSum &sum = pass.sets.front().parts.front()->sum;
  std::optional<int64_t> elements = countElements(sum);
  bool hasChunks = !elements || *elements > pass.sets.front().count;
  return hasChunks && pass.hasOneRead() &&
         (findElementDistance(sum) || findElementQuotient(sum));
}

/// The passes over all scores for sums by element. Sets of bins are beside each
/// other where the scores are made less often then.
SmallVector<BackwardKernels::BinPass, 2> BackwardKernels::planBinPasses() {
  SmallVector<BinPass, 2> passes;
  for (auto [number, part] : llvm::enumerate(otherSums)) {
    if (part.sum.form != SumForm::Table)
      continue;
    auto getFirst = [](const BinSet &set) -> const CaptureSum & {
      return set.parts.front()->sum;
    };
    BinSet *same = nullptr;
    for (BinPass &pass : passes)
      for (BinSet &set : pass.sets)
        if (haveSameBins(getFirst(set), part.sum))
          same = &set;
    if (same) {
      same->parts.push_back(&part);
      continue;
    }
    BinPass own;
    own.sets.emplace_back();
    own.sets.back().parts = {&part};
    own.sets.back().suffix = ("_capture_" + Twine(number)).str();
    planBins(own);
    bool isAlone = isOfFewScores(own);
    BinPass *joined = nullptr;
    for (BinPass &pass : passes) {
      const CaptureSum &first = getFirst(pass.sets.front());
      if (isAlone || isOfFewScores(pass) ||
          first.find(IndexKind::Key).has_value() !=
              part.sum.find(IndexKind::Key).has_value() ||
          first.findTableRow().has_value() !=
              part.sum.findTableRow().has_value())
        continue;
      BinPass both{pass.sets, {}, 0};
      both.sets.append(own.sets);
      planBins(both);
      if (both.time >= pass.time + own.time)
        continue;
      pass = std::move(both);
      joined = &pass;
      break;
    }
    if (!joined)
      passes.push_back(std::move(own));
  }
  return passes;
}
