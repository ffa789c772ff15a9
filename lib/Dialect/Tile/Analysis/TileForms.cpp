//===- TileForms.cpp - by what the forms of a tile program are known -----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/TileForms.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Support/Form.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// A loop with a step of its own in it, or null.
static scf::ForOp getKeyLoop(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop && findSoftmax(loop) ? loop : scf::ForOp();
}

/// Lists are what the function allocates; captures are its arguments.
static bool readsList(Operation *op) {
  scf::ForOp loop = getKeyLoop(op);
  return loop &&
         llvm::any_of(
             loop.getBody()->getOps<memref::LoadOp>(), [](memref::LoadOp load) {
               return load.getMemRef().getDefiningOp<memref::AllocOp>();
             });
}

/// Begins or ends where a block of queries says.
static bool isPartial(Operation *op) {
  scf::ForOp loop = getKeyLoop(op);
  auto kernel = op->getParentOfType<KernelOp>();
  return loop && kernel && !readsList(loop) &&
         (!isZeroInteger(loop.getLowerBound()) ||
          kernel->isAncestor(
              loop.getUpperBound().getParentRegion()->getParentOp()));
}

/// Counts down: its number is subtracted from one before the loop.
static bool isReversed(Operation *op) {
  scf::ForOp loop = getKeyLoop(op);
  if (!loop || !loop.getInductionVar().hasOneUse())
    return false;
  auto distance = dyn_cast<arith::SubIOp>(*loop.getInductionVar().user_begin());
  return distance && distance.getRhs() == loop.getInductionVar();
}

static bool isRanged(Operation *op) {
  auto scores = dyn_cast<ScoresOp>(op);
  return scores && scores.getRanged();
}

static bool hasVectorMask(Operation *op) {
  auto softmax = dyn_cast<OnlineSoftmaxOp>(op);
  return softmax && softmax.getScores().getDefiningOp<arith::SelectOp>();
}

static bool isFolded(Operation *op) {
  auto softmax = dyn_cast<OnlineSoftmaxOp>(op);
  return softmax && softmax.getExp2();
}

static bool isUnfolded(Operation *op) {
  auto softmax = dyn_cast<OnlineSoftmaxOp>(op);
  return softmax && !softmax.getExp2() && !softmax.getExact();
}

/// The step of a first block, whose weights a loop takes over.
static bool isFirstStep(Operation *op) {
  return isa<OnlineSoftmaxOp>(op) && isa<KernelOp>(op->getParentOp());
}

static bool isConditional(Operation *op) {
  return isa<OnlineSoftmaxOp>(op) && isa<scf::IfOp>(op->getParentOp());
}

// Dialects of other rooms are known by name only.
static bool isAttention(Operation *op) {
  return op->getName().getStringRef() == "attn.attention";
}
static bool isWarpKernel(Operation *op) {
  return op->getName().getStringRef() == "warp.kernel";
}

template <typename Op> static bool isOp(Operation *op) { return isa<Op>(op); }

static constexpr Sign listed[] = {
    {readsList, "a loop that takes its key blocks from a list",
     "tile-list-blocks"}};
static constexpr Sign peeled[] = {
    {isPartial, "a loop over some of the key blocks", "tile-peel-masks"}};
static constexpr Sign grouped[] = {{isOp<GroupBoundsOp>,
                                    "key blocks of a group of rows",
                                    "tile-group-bounds"}};
static constexpr Sign ranged[] = {
    {isRanged, "a mask that compares keys with ranges", "tile-keys-to-ranges"}};
static constexpr Sign reversed[] = {
    {isReversed, "a loop from the last key block to the first",
     "tile-reverse-keys"}};
static constexpr Sign folded[] = {
    {isFolded, "a softmax with exp2", "tile-fold-exp2"}};
static constexpr Sign overlapped[] = {
    {isFirstStep, "a first step before its loop", "tile-overlap-products"}};
static constexpr Sign expanded[] = {
    {hasVectorMask, "a mask of vectors", "tile-expand-scores"}};
static constexpr Sign lazy[] = {
    {isConditional, "a softmax under a condition", "tile-lazy-max"}};
static constexpr Sign warp[] = {
    {isWarpKernel, "a warp.kernel", "convert-tile-to-warp"}};

// A form lacks a part of these.
static constexpr Sign remains[] = {
    {isUnfolded, "a softmax without exp2", "tile-fold-exp2"},
    {isAttention, "an attn.attention", "convert-attn-to-tile"},
    {isOp<ShareBlocksOp>, "a tile.share_blocks", "tile-share-blocks"},
    {isOp<ScoresOp>, "a tile.scores", "tile-expand-scores"},
    {isOp<OnlineSoftmaxOp>, "a tile.online_softmax", "tile-expand-softmax"}};
static constexpr ArrayRef<Sign> attention(remains + 1, 1),
    shares(remains + 1, 2), scores(remains + 1, 3), unfolded(remains, 4),
    unexpanded(remains + 1, 4);

static constexpr Form forms[] = {
    {"tile-stepped", {}, attention},
    {"tile-listed", listed, attention},
    {"tile-peeled", peeled, attention},
    {"tile-shared", {}, shares},
    {"tile-grouped", grouped, shares},
    {"tile-ranged", ranged, shares},
    {"tile-reversed", reversed, shares},
    {"tile-folded", folded, shares},
    {"tile-overlapped", overlapped, shares},
    {"tile-expanded", expanded, unfolded},
    {"tile-lazy", lazy, scores},
    {"tile-flat", {}, unexpanded},
    {"warp-sync", warp, {}},
};

LogicalResult tile::requireForm(Operation *root, TileForm form,
                                StringRef pass) {
  return attn::requireForm(root, forms, size_t(form), pass);
}
