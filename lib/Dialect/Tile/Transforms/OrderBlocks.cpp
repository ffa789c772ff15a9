//===- OrderBlocks.cpp - longest query blocks first -----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/BlockCounts.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEORDERBLOCKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// True if later rows see at least as far to the right, and as far to the left.
static bool growsWithRow(const MaskProblem &problem, Value queryBlock) {
  VisitSet set = computeVisitSet(problem.problem);
  bool grows = false;
  for (const auto &[symbol, source] : problem.symbols) {
    if (source.value != queryBlock)
      continue;
    for (const BlockInterval &interval : set.visited) {
      // With n on the side of 0, a positive coefficient widens either bound.
      for (const LinearForm &bound : interval.upperBounds())
        grows |= bound.coefficient(symbol) > 0;
      for (const LinearForm &constraint : interval.constraints)
        if (constraint.coefficient(symbol) < 0)
          return false;
    }
  }
  return grows;
}

LogicalResult attn::tile::reverseQueryBlocks(RewriterBase &rewriter,
                                             KernelOp kernel,
                                             std::string &reason) {
  FailureOr<BlockLoops> loops = matchKeyLoops(kernel.getBody(), reason);
  if (failed(loops))
    return failure();
  if (loops->loops.size() != 1) {
    reason = "the loop over blocks is divided";
    return failure();
  }
  FailureOr<ScoresOp> scores = findMaskedScores(loops->front());
  std::optional<QueryNumbering> numbering = findQueryNumbering(kernel);
  if (failed(scores) || !numbering ||
      !growsWithRow(readMask(*scores, loops->front()), numbering->number)) {
    reason = "the mask does not show later rows more keys";
    return failure();
  }
  unsigned dimension = numbering->dimension;
  Value count = kernel.getGrid()[dimension];
  if (isOneInteger(count)) {
    reason = "the grid does not number several query blocks";
    return failure();
  }

  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = kernel.getLoc();
  rewriter.setInsertionPoint(kernel);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  Value last = rewriter.createOrFold<arith::SubIOp>(loc, count, one);
  rewriter.setInsertionPointToStart(kernel.getBody());
  Value number = kernel.getNumber(dimension);
  auto reversed = arith::SubIOp::create(rewriter, loc, last, number);
  rewriter.replaceAllUsesExcept(number, reversed, reversed);
  return success();
}

namespace {
struct TileOrderBlocks final
    : attn::SchedulePass<attn::tile::impl::TileOrderBlocksBase<TileOrderBlocks>,
                         KernelOp, TileForm::Stepped> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    if (failed(reverseQueryBlocks(rewriter, kernel, reason)))
      return missed(reason);
    passed() << "query blocks are numbered from the last to the first";
  }
};
} // namespace
