//===- GroupBounds.cpp - key blocks of a part of the rows -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a chain visit the key blocks that any row of the tile sees, and
// mask those in which any row sees less than all. Warpgroups that compute some
// of its rows each see fewer: under a causal mask the group of the first 64 of
// 256 rows has nothing to do with the last three of four blocks of 64 keys on
// the diagonal, and of a window of 256 keys no block is full for 256 rows,
// three of five are for 64.
//
// The bounds of a part are those of its rows alone: the mask of the loops is
// read once more, for `rows` rows from that of `tile.group_bounds` on. Where
// the queries end inside a tile, a part after their end sees no key; one block
// it goes through nevertheless, as everybody does where there is one.
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/ScoreTrend.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Analysis/VisitBounds.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/OptionalPasses.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEGROUPBOUNDS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Whether `bound` is computed before the loops by arithmetic alone: what
/// memory holds would be read by every part. `differs` where it depends on the
/// part.
static bool isComputable(Value bound, GroupBoundsOp group, bool &differs) {
  Value row = group.getOwn().getArgument(0);
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) {
    return op->getBlock() == group->getBlock() ||
           op->getBlock() == row.getParentBlock();
  };
  if (bound.getDefiningOp() && failed(getBackwardSlice(bound, &slice, options)))
    return false;
  differs |= llvm::any_of(slice, [&](Operation *op) {
    return llvm::is_contained(op->getOperands(), row);
  });
  return llvm::all_of(slice, [](Operation *op) { return isPure(op); });
}

/// Whether `bound` differs from part to part.
static bool isWorthwhile(Value bound, GroupBoundsOp group) {
  bool differs = false;
  return isComputable(bound, group, differs) && differs;
}

//===----------------------------------------------------------------------===//
// The chain
//===----------------------------------------------------------------------===//

/// A loop of `chain` that is masked, or null. All of them have the same mask.
static scf::ForOp findMaskedLoop(const BlockLoops &chain) {
  for (scf::ForOp loop : chain.loops)
    if (succeeded(findMaskedScores(loop)))
      return loop;
  return {};
}

/// Whether two loops have the same score functions: blocks may go from one to
/// the other.
static bool haveSameScores(scf::ForOp loop, scf::ForOp other) {
  auto left = loop.getBody()->getOps<ScoresOp>();
  auto right = other.getBody()->getOps<ScoresOp>();
  if (!llvm::hasSingleElement(left) || !llvm::hasSingleElement(right))
    return false;
  return OperationEquivalence::isRegionEquivalentTo(
      &(*left.begin()).getScore(), &(*right.begin()).getScore(),
      OperationEquivalence::IgnoreLocations);
}

/// The place in `chain` of the only loop without a mask, if no more than one
/// stands before it, and one after it, and they differ by the mask alone.
static std::optional<size_t> findFullLoop(const BlockLoops &chain) {
  std::optional<size_t> full;
  for (auto [place, loop] : llvm::enumerate(chain.loops)) {
    if (succeeded(findMaskedScores(loop)))
      continue;
    if (full)
      return std::nullopt;
    full = place;
  }
  if (!full || *full > 1 || *full + 2 < chain.loops.size())
    return std::nullopt;
  scf::ForOp masked = findMaskedLoop(chain);
  if (!masked || !countsKeyBlocks(masked) ||
      !haveSameScores(chain.loops[*full], masked))
    return std::nullopt;
  return full;
}

/// Whether a step multiplies f32, which takes too much code to have it twice.
static bool hasLongStep(scf::ForOp loop) {
  return llvm::any_of(loop.getBody()->getOps<vector::ContractionOp>(),
                      [](vector::ContractionOp product) {
                        return product.getLhsType().getElementType().isF32();
                      });
}

/// Whether a chain is one loop because no block is full for all rows.
static bool hasNoFullBlock(const BlockLoops &chain) {
  scf::ForOp loop = chain.front();
  if (chain.loops.size() != 1 || hasLongStep(loop) || !countsKeyBlocks(loop) ||
      failed(findMaskedScores(loop)))
    return false;
  VisitSet set =
      computeVisitSet(readMask(*findMaskedScores(loop), loop).problem);
  return !set.visited.empty() && isOneInterval(set) && isAllMasked(set);
}

/// Makes three loops of one: all blocks are in the first, before those that are
/// full.
static BlockLoops divide(RewriterBase &rewriter, scf::ForOp loop) {
  rewriter.setInsertionPoint(loop);
  BlockLoops chain;
  SmallVector<Value> state(loop.getInitArgs());
  for (bool isFirst : {true, false, false}) {
    auto part = cast<scf::ForOp>(rewriter.clone(*loop));
    if (!isFirst)
      part.setLowerBound(loop.getUpperBound());
    part.getInitArgsMutable().assign(state);
    state = llvm::to_vector_of<Value>(part.getResults());
    chain.loops.push_back(part);
  }
  dropMask(rewriter, chain.loops[1]);
  rewriter.replaceOp(loop, state);
  return chain;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// The blocks of `chain` that rows of `group` see; none where the mask does not
/// tell.
static std::optional<KeyBlockRange> emitOwnRange(RewriterBase &rewriter,
                                                 const BlockLoops &chain,
                                                 GroupBoundsOp group) {
  scf::ForOp masked = findMaskedLoop(chain);
  if (!masked)
    return std::nullopt;
  Value lo = chain.getLowerBound(), hi = chain.getUpperBound();
  MaskProblem problem = readMask(*findMaskedScores(masked), masked, lo, hi);
  problem.restrictRows(group.getOwn().getArgument(0), group.getRows());
  VisitSet set = computeVisitSet(problem.problem);
  if (set.visited.empty() || !isOneInterval(set))
    return std::nullopt;
  return emitRange(rewriter, problem, set, masked, lo, hi);
}

/// Whether the blocks that are full differ from part to part.
static bool hasOwnFullBlocks(const KeyBlockRange &range, GroupBoundsOp group) {
  bool differs = false;
  return !range.isAllMasked && isComputable(range.fullLo, group, differs) &&
         isComputable(range.fullHi, group, differs) && differs;
}

/// The bounds of `chain`, those that differ replaced by those of `range`. With
/// `hasOwnEnds` a part begins or ends elsewhere than others: else a bound that
/// is the same for all parts would be none of a part in the role that computes,
/// and one in the role that loads, and their loops would not be the same.
static SmallVector<Value> chooseBounds(const BlockLoops &chain,
                                       const KeyBlockRange &range,
                                       GroupBoundsOp group, bool hasOwnEnds) {
  SmallVector<Value> own = chain.getBounds();
  if (isWorthwhile(range.lo, group))
    own.front() = range.lo;
  if (isWorthwhile(range.hi, group))
    own.back() = range.hi;
  std::optional<size_t> full = findFullLoop(chain);
  if (!full || !hasOwnFullBlocks(range, group))
    return own;
  bool isFirst = *full == 0, isLast = *full + 1 == chain.loops.size();
  if ((range.hasLower && isFirst) || (range.hasUpper && isLast))
    return own;
  if (!isFirst)
    own[*full] = range.fullLo;
  if (!isLast)
    own[*full + 1] = range.fullHi;
  if (!hasOwnEnds &&
      !llvm::all_of(ArrayRef(own).drop_front().drop_back(),
                    [&](Value bound) { return isWorthwhile(bound, group); }))
    return chain.getBounds();
  return own;
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
  int64_t numRows = getNumTileRows(*chain);
  if (numRows <= rows || numRows % rows != 0) {
    reason = "the rows of the tile are not several parts";
    return failure();
  }
  if (exchangesRows(chain->front())) {
    reason = "the parts of the rows read what others compute";
    return failure();
  }
  if (!llvm::all_of(chain->loops, [&](scf::ForOp loop) {
        return chain->isKnownBefore(loop.getUpperBound());
      })) {
    reason = "a loop over blocks ends where the one before says";
    return failure();
  }
  std::optional<int64_t> first = getIntegerConstant(chain->getLowerBound());
  std::optional<int64_t> end = getIntegerConstant(chain->getUpperBound());
  if (first && end && *first >= *end) {
    reason = "there are no blocks of keys";
    return failure();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(chain->front());
  Location loc = chain->front().getLoc();
  auto group = GroupBoundsOp::create(rewriter, loc, chain->getBounds(), rows);
  Block *body =
      rewriter.createBlock(&group.getOwn(), {}, {rewriter.getIndexType()}, loc);
  std::optional<KeyBlockRange> range = emitOwnRange(rewriter, *chain, group);
  Value hasRow =
      emitHasRow(rewriter, chain->front(), body->getArgument(0), numRows);
  bool hasOwnEnds = hasRow || (range && (isWorthwhile(range->lo, group) ||
                                         isWorthwhile(range->hi, group)));
  if (range && hasOwnEnds && hasNoFullBlock(*chain) &&
      hasOwnFullBlocks(*range, group)) {
    *chain = divide(rewriter, chain->front());
    rewriter.setInsertionPoint(group);
    auto ofThree =
        GroupBoundsOp::create(rewriter, loc, chain->getBounds(), rows);
    rewriter.inlineRegionBefore(group.getOwn(), ofThree.getOwn(),
                                ofThree.getOwn().begin());
    rewriter.eraseOp(group);
    group = ofThree;
  }
  SmallVector<Value> bounds = chain->getBounds();
  SmallVector<Value> own =
      range ? chooseBounds(*chain, *range, group, hasOwnEnds) : bounds;
  rewriter.setInsertionPointToEnd(body);
  if (hasRow)
    own.back() = arith::SelectOp::create(rewriter, loc, hasRow, own.back(),
                                         bounds.front());
  if (own == bounds) {
    rewriter.eraseOp(group);
    reason = "the bounds of the loops are those of all parts of the rows";
    return failure();
  }
  YieldOp::create(rewriter, loc, own);
  eraseDeadOps(rewriter, body);
  // Ends that are the same for all parts stay; what is between them lies
  // between those of the part.
  SmallVector<Value> results(group.getResults());
  if (own.front() == bounds.front())
    results.front() = bounds.front();
  if (own.back() == bounds.back())
    results.back() = bounds.back();
  for (size_t place = 0; place < chain->loops.size(); ++place) {
    scf::ForOp loop = chain->loops[place];
    rewriter.modifyOpInPlace(loop, [&] {
      loop.setLowerBound(results[place]);
      loop.setUpperBound(results[place + 1]);
    });
  }
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
    if (!kernel.getPlan().getPasses().runs(OptionalPass::GroupBounds))
      return missed("the kernel's plan leaves them out");
    std::string reason;
    if (failed(groupBounds(rewriter, kernel, rows, reason)))
      return missed(reason);
    passed() << remark::metric("rows", int64_t(rows));
  }
};
} // namespace
