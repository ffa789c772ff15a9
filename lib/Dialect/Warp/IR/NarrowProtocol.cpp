//===- NarrowProtocol.cpp - groups that pass over blocks --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W3 (d) of warp.kernel: what a group passes over is what the others use.
//
//===----------------------------------------------------------------------===//

#include "RoleSteps.h"
#include "attn/Dialect/Warp/IR/Parts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// What a loop over blocks uses.
struct BlockUse {
  llvm::MapVector<Value, int64_t> items;
  int64_t numTurns = 0;
  /// Blocks of one iteration.
  int64_t numBlocks = 0;

  /// As many items of each ring as blocks.
  bool isOnePerBlock() const {
    return llvm::all_of(items, [&](const auto &use) {
      return use.first && use.second == numBlocks;
    });
  }
};
} // namespace

static BlockUse getBlockUse(const Step &step) {
  BlockUse use;
  for (const Step &inner : step.body)
    ++use.items[inner.use ? inner.use->ring : Value()];
  step.op->walk([&](TurnOp) { ++use.numTurns; });
  use.numBlocks =
      getConstantIntValue(cast<scf::ForOp>(step.op).getStep()).value_or(0);
  return use;
}

/// A loop beside a narrowed range.
static LogicalResult verifyBlockUse(const Step &step,
                                    const BlockUse &expected) {
  BlockUse use = getBlockUse(step);
  bool isSame =
      use.isOnePerBlock() && use.items.size() == expected.items.size() &&
      use.numTurns * expected.numBlocks == expected.numTurns * use.numBlocks &&
      llvm::all_of(use.items, [&](const auto &item) {
        return expected.items.contains(item.first);
      });
  if (isSame)
    return success();
  return step.op->emitOpError(
      "uses other items or turns than the loops beside it: groups that pass "
      "over blocks must use one item of each ring for a block, and as many "
      "turns");
}

static LogicalResult verifyNarrow(NarrowOp narrow, ArrayRef<Step> steps) {
  const Step *lower = nullptr, *upper = nullptr, *own = nullptr;
  for (const Step &step : steps) {
    auto loop = dyn_cast<scf::ForOp>(step.op);
    if (!loop)
      continue;
    std::optional<PassedBlocks> passed = getPassedBlocks(loop);
    if (!passed && !own)
      own = &step;
    if (passed && passed->narrow == narrow) {
      const Step *&end = passed->end == PassedEnd::Lower ? lower : upper;
      if (end)
        return loop.emitOpError("passes over blocks a second time");
      end = &step;
    }
  }
  if (!own)
    return narrow.emitOpError("stands beside no loop over blocks");
  for (const Step &inner : own->body)
    if (inner.use && inner.use->isFill)
      return inner.op->emitOpError("fills an item in a loop that groups pass "
                                   "blocks of over");
  BlockUse expected = getBlockUse(*own);
  auto usesRings = [&](const Step &step) {
    return step.use ? expected.items.contains(step.use->ring)
                    : isa<scf::ForOp>(step.op);
  };
  for (const Step &step : steps) {
    if (!step.use && isa<scf::ForOp>(step.op) &&
        failed(verifyBlockUse(step, expected)))
      return failure();
    if (!usesRings(step) || &step == lower || &step == upper)
      continue;
    Operation *here = narrow->getBlock()->findAncestorOpInBlock(*step.op);
    if (lower && here->isBeforeInBlock(lower->op))
      return lower->op->emitOpError("passes over blocks after others, expected "
                                    "it before all");
    if (upper && upper->op->isBeforeInBlock(here))
      return upper->op->emitOpError("passes over blocks before others, "
                                    "expected it after all");
  }
  if ((!narrow.getFirst().use_empty() && !lower) ||
      (!narrow.getEnd().use_empty() && !upper))
    return narrow.emitOpError("gives a range whose other blocks nobody passes "
                              "over");
  for (auto [ring, number] : expected.items)
    if (auto type = dyn_cast<RingType>(ring.getType());
        type && type.getDepth() < 2)
      return narrow.emitOpError("needs rings of two slots, got ") << type;
  return success();
}

LogicalResult attn::warp::verifyNarrowed(ArrayRef<Step> steps, Block *block) {
  for (auto narrow : block->getOps<NarrowOp>())
    if (failed(verifyNarrow(narrow, steps)))
      return failure();
  for (const Step &step : steps)
    for (Region &region : step.op->getRegions())
      for (Block &nested : region)
        if (failed(verifyNarrowed(step.body, &nested)))
          return failure();
  return success();
}
