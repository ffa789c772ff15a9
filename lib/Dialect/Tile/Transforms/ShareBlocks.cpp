//===- ShareBlocks.cpp - loops over one share of the blocks ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chain of loops over the blocks [lo, hi) of a kernel goes through
//
//   size  = ceil((hi - lo) / count)
//   first = min(lo + number size, hi)
//   end   = min(first + size, hi)
//
// and every bound between two loops is clamped into [first, end). What the
// loops count, blocks or visits of a list, does not matter. Loops that are no
// chain, as those over two lists, are shared one by one.
//
// A share may be empty, and is then one after the last block: there passes
// that compute a first block in any case do not find a hidden one. So the
// results are chosen once more after the loops.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILESHAREBLOCKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// What an empty share gives is what its loops started with.
static void chooseResults(RewriterBase &rewriter, const BlockLoops &chain,
                          Value first, Value end) {
  Location loc = chain.back().getLoc();
  rewriter.setInsertionPointAfter(chain.back());
  Value isAny = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt,
                                      first, end);
  for (auto [init, result] :
       llvm::zip_equal(chain.getInits(), chain.getResults())) {
    auto type = cast<VectorType>(result.getType()).clone(rewriter.getI1Type());
    Value isTaken = vector::BroadcastOp::create(rewriter, loc, type, isAny);
    auto chosen = arith::SelectOp::create(rewriter, loc, isTaken, result, init);
    rewriter.replaceAllUsesExcept(result, chosen, chosen);
  }
}

/// Divides what the loops of a chain, or one loop, go through.
static void shareChain(RewriterBase &rewriter, ShareBlocksOp op,
                       const BlockLoops &chain) {
  rewriter.setInsertionPoint(chain.front());
  Location loc = op.getLoc();
  Value lo = chain.getLowerBound(), hi = chain.getUpperBound();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  auto count = static_cast<int64_t>(op.getCount());
  Value number = op.getNumber();
  Value blocks = rewriter.createOrFold<arith::SubIOp>(loc, hi, lo);
  Value raised =
      rewriter.createOrFold<arith::AddIOp>(loc, blocks, constant(count - 1));
  Value size =
      rewriter.createOrFold<arith::DivUIOp>(loc, raised, constant(count));
  Value offset = arith::MulIOp::create(rewriter, loc, size, number);
  Value first = arith::MinSIOp::create(
      rewriter, loc, rewriter.createOrFold<arith::AddIOp>(loc, lo, offset), hi);
  Value end = arith::MinSIOp::create(
      rewriter, loc, arith::AddIOp::create(rewriter, loc, first, size), hi);
  SmallVector<Value> bounds = {first};
  for (scf::ForOp loop : ArrayRef(chain.loops).drop_front())
    bounds.push_back(arith::MinSIOp::create(
        rewriter, loc,
        arith::MaxSIOp::create(rewriter, loc, loop.getLowerBound(), first),
        end));
  bounds.push_back(end);
  for (size_t place = 0; place < chain.loops.size(); ++place) {
    scf::ForOp loop = chain.loops[place];
    rewriter.modifyOpInPlace(loop, [&] {
      loop.setLowerBound(bounds[place]);
      loop.setUpperBound(bounds[place + 1]);
    });
    // Rows may have seen no key in the blocks of other shares.
    if (FailureOr<ScoresOp> scores = findMaskedScores(loop); succeeded(scores))
      if (OnlineSoftmaxOp softmax = findSoftmax(*scores))
        rewriter.modifyOpInPlace(softmax, [&] { softmax.setGuard(true); });
  }
  chooseResults(rewriter, chain, first, end);
}

/// The loops over blocks of a kernel, each by itself, if what each goes through
/// does not depend on what another one gave.
static FailureOr<SmallVector<BlockLoops>>
matchSingleLoops(KernelOp kernel, std::string &reason) {
  SmallVector<scf::ForOp> loops = findLoopsOverBlocks(kernel);
  SmallVector<BlockLoops> result;
  for (scf::ForOp loop : loops) {
    if (loop->getBlock() != kernel.getBody() || !hasUnitStep(loop)) {
      reason = "a loop over blocks stands in another operation, or counts by "
               "more than one";
      return failure();
    }
    SetVector<Operation *> before;
    BackwardSliceOptions options;
    options.inclusive = true;
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound()})
      if (failed(getBackwardSlice(bound, &before, options))) {
        reason = "a loop over blocks has bounds that are not known";
        return failure();
      }
    if (llvm::any_of(loops, [&](scf::ForOp other) {
          return before.contains(other.getOperation());
        })) {
      reason = "a loop over blocks ends where the one before says";
      return failure();
    }
    if (!llvm::all_of(loop.getResultTypes(), llvm::IsaPred<VectorType>)) {
      reason = "a loop over blocks gives something else than tiles";
      return failure();
    }
    result.push_back({{loop}});
  }
  return result;
}

LogicalResult attn::tile::shareBlocks(RewriterBase &rewriter, ShareBlocksOp op,
                                      std::string &reason) {
  auto kernel = cast<KernelOp>(op->getParentOp());
  OpBuilder::InsertionGuard guard(rewriter);
  FailureOr<BlockLoops> chain = matchKeyLoops(kernel.getBody(), reason);
  bool isChain =
      succeeded(chain) && llvm::all_of(chain->loops, [&](scf::ForOp loop) {
        return chain->isKnownBefore(loop.getUpperBound());
      });
  if (isChain) {
    shareChain(rewriter, op, *chain);
  } else {
    // Where a mask hides everything no loop is left.
    FailureOr<SmallVector<BlockLoops>> loops = matchSingleLoops(kernel, reason);
    if (failed(loops))
      return failure();
    for (const BlockLoops &single : *loops) {
      // A chain goes forward; one of two lists may end where it has not begun.
      scf::ForOp loop = single.front();
      rewriter.setInsertionPoint(loop);
      Value end = rewriter.createOrFold<arith::MaxSIOp>(
          op.getLoc(), loop.getLowerBound(), loop.getUpperBound());
      rewriter.modifyOpInPlace(loop, [&] { loop.setUpperBound(end); });
      shareChain(rewriter, op, single);
    }
  }
  rewriter.eraseOp(op);
  return success();
}

namespace {
struct TileShareBlocks final
    : attn::tile::impl::TileShareBlocksBase<TileShareBlocks> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireForm(getOperation(), TileForm::Peeled, getArgument())))
      return signalPassFailure();
    SmallVector<ShareBlocksOp> ops;
    getOperation()->walk([&](ShareBlocksOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (ShareBlocksOp op : ops) {
      std::string reason;
      if (succeeded(shareBlocks(rewriter, op, reason)))
        continue;
      op.emitOpError("finds no loops to share out: ") << reason;
      return signalPassFailure();
    }
  }
};
} // namespace
