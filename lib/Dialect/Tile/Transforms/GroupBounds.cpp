//===- GroupBounds.cpp - key blocks of a part of the rows -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The masked loops at both ends of a chain visit the key blocks that any row of
// the tile sees. Warpgroups that compute some of its rows each see fewer: under
// a causal mask the group of the first 64 of 256 rows has nothing to do with
// the last three of four blocks of 64 keys on the diagonal.
//
// The bounds of a part are those of its rows alone: the mask of the loop is
// read once more, for `rows` rows from that of `tile.group_bounds` on. Where
// the queries end inside a tile, a part after their end sees no key; one block
// it goes through nevertheless, as everybody does where there is one.
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Analysis/VisitBounds.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEGROUPBOUNDS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Whether `bound` differs from part to part, and is computed before the
/// loops by arithmetic alone: what memory holds would be read by every part.
static bool isWorthwhile(Value bound, GroupBoundsOp group) {
  Value row = group.getOwn().getArgument(0);
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) {
    return op->getBlock() == group->getBlock() ||
           op->getBlock() == row.getParentBlock();
  };
  return bound.getDefiningOp() &&
         succeeded(getBackwardSlice(bound, &slice, options)) &&
         llvm::any_of(slice,
                      [&](Operation *op) {
                        return llvm::is_contained(op->getOperands(), row);
                      }) &&
         llvm::all_of(slice, [](Operation *op) { return isPure(op); });
}

/// The blocks of `loop` that rows of `group` see; none where the mask does not
/// tell.
static std::optional<KeyBlockRange>
emitOwnRange(RewriterBase &rewriter, scf::ForOp loop, GroupBoundsOp group) {
  FailureOr<ScoresOp> scores = findMaskedScores(loop);
  if (failed(scores))
    return std::nullopt;
  MaskProblem problem = readMask(*scores, loop);
  problem.restrictRows(group.getOwn().getArgument(0), group.getRows());
  VisitSet set = computeVisitSet(problem.problem);
  if (set.visited.empty() || !isOneInterval(set))
    return std::nullopt;
  return emitRange(rewriter, problem, set, loop);
}

/// Whether `first`, the first row of a group, exists; null where every group
/// has one.
static Value emitHasRow(RewriterBase &rewriter, scf::ForOp front, Value first,
                        int64_t numRows) {
  // The rows are those of the queries, loaded before the loops.
  for (auto load : front->getBlock()->getOps<LoadOp>()) {
    auto type = cast<VectorType>(load.getResult().getType());
    if (!load->isBeforeInBlock(front) || type.getRank() != 2 ||
        load.getSlices() != 1 || type.getDimSize(0) != numRows)
      continue;
    Location loc = front.getLoc();
    unsigned dimension = load.getIndices().size() - 2;
    Value size =
        rewriter.createOrFold<memref::DimOp>(loc, load.getView(), dimension);
    std::optional<int64_t> known = getIntegerConstant(size);
    if (known && *known % numRows == 0)
      return {};
    Value row = arith::AddIOp::create(rewriter, loc,
                                      load.getIndices()[dimension], first);
    return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, row,
                                 size);
  }
  return {};
}

/// Whether a product reads what was computed of other rows: then all rows go
/// through every block.
static bool exchangesRows(scf::ForOp loop) {
  for (auto product : loop.getBody()->getOps<vector::ContractionOp>()) {
    AffineExpr depth = getAffineDimExpr(2, product.getContext());
    bool isTransposed = product.getIndexingMapsArray()[0].getResult(0) == depth;
    if (!product.getRhs().getDefiningOp<LoadOp>() ||
        (isTransposed && !product.getLhs().getDefiningOp<LoadOp>()))
      return true;
  }
  return false;
}

LogicalResult attn::tile::groupBounds(RewriterBase &rewriter, KernelOp kernel,
                                      int64_t rows, std::string &reason) {
  assert(rows >= 1 && "parts of at least one row");
  FailureOr<BlockLoops> chain = matchKeyLoops(kernel.getBody(), reason);
  if (failed(chain))
    return failure();
  scf::ForOp front = chain->front(), back = chain->back();
  int64_t numRows = getNumTileRows(*chain);
  if (numRows <= rows || numRows % rows != 0) {
    reason = "the rows of the tile are not several parts";
    return failure();
  }
  if (exchangesRows(front)) {
    reason = "the parts of the rows read what others compute";
    return failure();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(front);
  Location loc = front.getLoc();
  Value lo = front.getLowerBound(), hi = back.getUpperBound();
  auto group = GroupBoundsOp::create(rewriter, loc, lo, hi, rows);
  Block *own =
      rewriter.createBlock(&group.getOwn(), {}, {rewriter.getIndexType()}, loc);
  Value ownLo = lo, ownHi = hi;
  if (auto range = emitOwnRange(rewriter, front, group))
    if (isWorthwhile(range->lo, group))
      ownLo = range->lo;
  if (auto range = emitOwnRange(rewriter, back, group))
    if (isWorthwhile(range->hi, group))
      ownHi = range->hi;
  Value hasRow = emitHasRow(rewriter, front, own->getArgument(0), numRows);
  bool isLower = ownLo != lo, isUpper = ownHi != hi || hasRow;
  if (!isLower && !isUpper) {
    rewriter.eraseOp(group);
    reason = "the bounds of the loops are those of all parts of the rows";
    return failure();
  }
  // All parts go through the blocks between: `ownHi` is not below the loop.
  if (isLower)
    ownLo = arith::MinSIOp::create(rewriter, loc, ownLo, front.getUpperBound());
  if (hasRow)
    ownHi = arith::SelectOp::create(rewriter, loc, hasRow, ownHi, lo);
  YieldOp::create(rewriter, loc, {ownLo, ownHi});
  eraseDeadOps(rewriter, own);
  rewriter.setInsertionPoint(front);
  // Those between end with the part, too.
  if (hasRow)
    for (size_t number = 1; number < chain->loops.size(); ++number) {
      scf::ForOp loop = chain->loops[number - 1], next = chain->loops[number];
      Value bound = arith::MinSIOp::create(rewriter, loc, loop.getUpperBound(),
                                           group.getEnd());
      rewriter.modifyOpInPlace(loop, [&] { loop.setUpperBound(bound); });
      rewriter.modifyOpInPlace(next, [&] { next.setLowerBound(bound); });
    }
  if (isLower)
    rewriter.modifyOpInPlace(front,
                             [&] { front.setLowerBound(group.getFirst()); });
  if (isUpper)
    rewriter.modifyOpInPlace(back, [&] { back.setUpperBound(group.getEnd()); });
  return success();
}

namespace {
struct TileGroupBounds final
    : attn::SchedulePass<attn::tile::impl::TileGroupBoundsBase<TileGroupBounds>,
                         KernelOp, TileForm::Shared> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    if (rows < 1) {
      kernel.emitError("tile-group-bounds: got parts of ")
          << int64_t(rows) << " rows, expected at least 1";
      return signalPassFailure();
    }
    std::string reason;
    if (failed(groupBounds(rewriter, kernel, rows, reason)))
      return missed(reason);
    passed() << remark::metric("rows", int64_t(rows));
  }
};
} // namespace
