//===- PeelScores.cpp - blocks in which a score decides nothing -----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bias by distance, table[clamp(i - j, -R, R)], is one number from a distance
// on. With 64 keys in a block, rows r to r + 127 and R = 128,
//
//   min(i - j, R) is R for all pairs of block n   if r - 64 n - 63 >= R
//
// so that the loop over blocks divides at n = (r - 63 - R) / 64, and before it
// the table is read once. What decides such an operation is a comparison of
// integers; which blocks hold a pair for which it holds, and which hold one for
// which it fails, are visit sets (VisitSet.h). Where one of the sets has a
// bound, the other outcome is that of all blocks beyond.
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"
#include "ScoreChoice.h"
#include "ValueAxes.h"
#include "VectorCopies.h"

#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/ScoreTrend.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Analysis/VisitBounds.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEPEELSCORES
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Operations that choose, as many as are looked at in one loop.
static constexpr size_t maxChoices = 16;

//===----------------------------------------------------------------------===//
// Score functions
//===----------------------------------------------------------------------===//

/// The score functions of a step.
static SmallVector<ScoresOp, 2> getFunctions(scf::ForOp loop) {
  return SmallVector<ScoresOp, 2>(llvm::make_filter_range(
      loop.getBody()->getOps<ScoresOp>(),
      [](ScoresOp scores) { return scores.hasScore(); }));
}

/// Their operations, the same in each copy of the loop.
static SmallVector<Operation *> getOperations(scf::ForOp loop) {
  SmallVector<Operation *> ops;
  for (ScoresOp scores : getFunctions(loop))
    for (Operation &op : scores.getScore().front().without_terminator())
      ops.push_back(&op);
  return ops;
}

/// A read of memory, or a function that takes several instructions.
static bool isCostly(Operation *op) {
  if (isa<GatherOp, SearchOp>(op))
    return true;
  return isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
         !isa<math::FmaOp, math::AbsFOp, math::AbsIOp, math::CopySignOp,
              math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp,
              math::RoundEvenOp>(op);
}

/// Such operations that run for every score.
static int64_t countCostly(scf::ForOp loop) {
  int64_t count = 0;
  for (ScoresOp scores : getFunctions(loop)) {
    ValueAxes axes(scores, scores.getScore());
    for (Operation &op : scores.getScore().front().without_terminator())
      count += isCostly(&op) && axes.isPerScore(op.getResult(0));
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

namespace {
/// On one side of `blocks[!outcome]` a choice has this outcome in all blocks.
struct PieceDecision {
  const Choice *choice;
  bool outcome;

  ArrayRef<BlockInterval> others() const { return choice->blocks[!outcome]; }
};
using PieceDecisions = SmallVector<PieceDecision, 4>;
} // namespace

/// What a chooser gives with that outcome.
static Value getOutcome(RewriterBase &rewriter, Operation *op, bool outcome) {
  rewriter.setInsertionPoint(op);
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType();
  if (isa<arith::CmpIOp>(op)) {
    TypedAttr value = rewriter.getBoolAttr(outcome);
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, outcome);
    return arith::ConstantOp::create(rewriter, loc, value);
  }
  if (!isa<math::AbsIOp>(op) || outcome)
    return op->getOperand(outcome ? 0 : 1);
  Value zero =
      arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(type));
  return arith::SubIOp::create(rewriter, loc, zero, op->getOperand(0));
}

static void fold(RewriterBase &rewriter, Operation *op) {
  SmallVector<Value> folded;
  rewriter.setInsertionPoint(op);
  if (succeeded(rewriter.tryFold(op, folded)) && !folded.empty())
    rewriter.replaceOp(op, folded);
}

/// Writes a decision in place of what chooses, and where that decides more.
static void decideCopy(RewriterBase &rewriter, Operation *op, bool outcome) {
  SmallVector<Operation *> users = llvm::to_vector(op->getUsers());
  rewriter.replaceAllUsesWith(op->getResult(0),
                              getOutcome(rewriter, op, outcome));
  for (Operation *user : users)
    if (isa<arith::SelectOp>(user))
      fold(rewriter, user);
}

/// Writes decisions into the score functions of `loop`, and into what stands
/// beside them.
static void decide(RewriterBase &rewriter, scf::ForOp loop,
                   ArrayRef<PieceDecision> decisions) {
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Operation *> ops = getOperations(loop);
  SmallVector<std::pair<Operation *, bool>> copies;
  for (const PieceDecision &decision : decisions) {
    Operation *op = ops[decision.choice->number];
    auto scores = cast<ScoresOp>(op->getParentOp());
    for (Operation *copy : findVectorCopies(op, scores))
      copies.emplace_back(copy, decision.outcome);
  }
  for (const PieceDecision &decision : decisions) {
    Operation *op = ops[decision.choice->number];
    rewriter.replaceAllUsesWith(op->getResult(0),
                                getOutcome(rewriter, op, decision.outcome));
  }
  for (auto [copy, outcome] : copies)
    decideCopy(rewriter, copy, outcome);
  for (ScoresOp scores : getFunctions(loop)) {
    Block &block = scores.getScore().front();
    for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
      fold(rewriter, &op);
    eraseDeadOps(rewriter, &block);
  }
  if (!copies.empty())
    eraseDeadOps(rewriter, loop.getBody());
}

/// What is left to do for each score.
static int64_t countAfter(RewriterBase &rewriter, scf::ForOp loop,
                          ArrayRef<PieceDecision> decisions) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  auto copy = cast<scf::ForOp>(rewriter.clone(*loop));
  decide(rewriter, copy, decisions);
  int64_t count = countCostly(copy);
  rewriter.eraseOp(copy);
  return count;
}

/// The decisions on one side that leave the least to do, no more than it takes;
/// none if they leave as much as there is.
static PieceDecisions findDecisions(RewriterBase &rewriter, scf::ForOp loop,
                                    ArrayRef<Choice> choices, Side side) {
  PieceDecisions decisions;
  for (const Choice &choice : choices)
    for (bool outcome : {true, false})
      if (choice.isDecided(outcome, side)) {
        decisions.push_back({&choice, outcome});
        break;
      }
  int64_t least = countAfter(rewriter, loop, decisions);
  if (least == countCostly(loop))
    return {};
  for (size_t number = 0; number < decisions.size();) {
    PieceDecisions fewer(decisions);
    fewer.erase(fewer.begin() + number);
    if (countAfter(rewriter, loop, fewer) == least)
      decisions = std::move(fewer);
    else
      ++number;
  }
  return decisions;
}

/// Reads what decides in the score functions of `loop`.
static SmallVector<Choice, 0> readChoices(scf::ForOp loop) {
  SmallVector<Choice, 0> choices;
  for (auto [number, op] : llvm::enumerate(getOperations(loop)))
    if (choices.size() < maxChoices)
      if (std::optional<Choice> choice = readChoice(op, number, loop))
        choices.push_back(std::move(*choice));
  return choices;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The scores with a mask in another loop of a chain, whose mask depends on
/// nothing in that loop; null if there are none.
static ScoresOp findMask(ArrayRef<scf::ForOp> chain) {
  for (scf::ForOp loop : chain)
    for (auto scores : loop.getBody()->getOps<ScoresOp>()) {
      SetVector<Value> used;
      getUsedValuesDefinedAbove(scores.getMask(), used);
      if (scores.hasMask() && llvm::all_of(used, [&](Value value) {
            return loop.isDefinedOutsideOfLoop(value);
          }))
        return scores;
    }
  return {};
}

namespace {
/// As long as it lives, the score functions of `loop` stand beside the mask
/// that says which of the blocks there are: it hides nothing in them.
class KnownMask {
public:
  KnownMask(RewriterBase &rewriter, scf::ForOp loop, ArrayRef<scf::ForOp> chain)
      : rewriter(rewriter) {
    ScoresOp masked = findMask(chain);
    for (ScoresOp scores : getFunctions(loop))
      if (masked && !scores.hasMask()) {
        rewriter.cloneRegionBefore(masked.getMask(), scores.getMask(),
                                   scores.getMask().end());
        lent.push_back(scores);
      }
  }
  ~KnownMask() {
    for (ScoresOp scores : lent)
      rewriter.eraseBlock(&scores.getMask().front());
  }

private:
  RewriterBase &rewriter;
  SmallVector<ScoresOp, 2> lent;
};
} // namespace

/// The first block after those `before` that decisions are of, within `loop`;
/// or the first one of those after.
static Value emitBound(RewriterBase &rewriter, scf::ForOp loop,
                       ArrayRef<PieceDecision> decisions, Side side) {
  Location loc = loop.getLoc();
  Value bound =
      side == Side::Before ? loop.getUpperBound() : loop.getLowerBound();
  for (const PieceDecision &decision : decisions) {
    if (decision.others().empty())
      continue;
    VisitSet set;
    set.visited.assign(decision.others().begin(), decision.others().end());
    KeyBlockRange range =
        emitRange(rewriter, decision.choice->comparison.problem, set, loop);
    if (side == Side::Before)
      bound = rewriter.createOrFold<arith::MinSIOp>(loc, bound, range.lo);
    else
      bound = rewriter.createOrFold<arith::MaxSIOp>(loc, bound, range.hi);
  }
  return bound;
}

FailureOr<int64_t> attn::tile::peelScores(RewriterBase &rewriter,
                                          scf::ForOp loop,
                                          ArrayRef<scf::ForOp> chain,
                                          std::string &reason) {
  if (countCostly(loop) == 0) {
    reason = "no score function reads memory, or takes long, for each score";
    return failure();
  }
  if (!hasUnitStep(loop) || !countsKeyBlocks(loop)) {
    reason = "the loop counts visits of blocks in an order of their own";
    return failure();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = loop.getLoc();
  Value lo = loop.getLowerBound(), hi = loop.getUpperBound();
  Value first = lo, end = hi;
  SmallVector<Choice, 0> choices;
  PieceDecisions before, after;
  {
    KnownMask mask(rewriter, loop, chain);
    choices = readChoices(loop);
    before = findDecisions(rewriter, loop, choices, Side::Before);
    after = findDecisions(rewriter, loop, choices, Side::After);
    // With the bounds of the other loops.
    std::string why;
    bool isChain = succeeded(matchBlockLoops(chain, why));
    rewriter.setInsertionPoint(isChain ? chain.front() : loop);
    if (!before.empty())
      first = emitBound(rewriter, loop, before, Side::Before);
    if (!after.empty()) {
      end = emitBound(rewriter, loop, after, Side::After);
      end = rewriter.createOrFold<arith::MinSIOp>(loc, end, hi);
      end = rewriter.createOrFold<arith::MaxSIOp>(loc, end, first);
    }
  }
  if (before.empty() && after.empty()) {
    reason = "nothing that takes long is the same for all scores of the blocks "
             "before, or after, some block";
    return failure();
  }
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> state(loop.getInitArgs());
  int64_t numLoops = 0;
  auto add = [&](Value from, Value to, ArrayRef<PieceDecision> decisions) {
    if (from == to)
      return;
    auto piece = cast<scf::ForOp>(rewriter.clone(*loop));
    piece.setLowerBound(from);
    piece.setUpperBound(to);
    piece.getInitArgsMutable().assign(state);
    state = llvm::to_vector_of<Value>(piece.getResults());
    decide(rewriter, piece, decisions);
    ++numLoops;
  };
  add(lo, first, before);
  add(first, end, {});
  add(end, hi, after);
  rewriter.replaceOp(loop, state);
  return numLoops;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Those of a chain that are worth more code: loops over blocks that show
/// everything, which most blocks do, or the only one there is.
static SmallVector<scf::ForOp> findLoops(ArrayRef<scf::ForOp> chain) {
  if (chain.size() == 1)
    return llvm::to_vector(chain);
  return llvm::to_vector(llvm::make_filter_range(chain, [](scf::ForOp loop) {
    return llvm::none_of(loop.getBody()->getOps<ScoresOp>(),
                         [](ScoresOp scores) { return scores.hidesKeys(); });
  }));
}

namespace {
struct TilePeelScores final
    : attn::SchedulePass<attn::tile::impl::TilePeelScoresBase<TilePeelScores>,
                         KernelOp, TileForm::Peeled, attn::CleanUp::CSE> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    llvm::MapVector<Block *, SmallVector<scf::ForOp>> chains;
    for (scf::ForOp loop : findLoopsOverBlocks(kernel))
      if (!getFunctions(loop).empty())
        chains[loop->getBlock()].push_back(loop);
    if (chains.empty())
      return missed("there is no loop over blocks with a score function");
    for (auto &[block, chain] : chains)
      for (scf::ForOp loop : findLoops(chain)) {
        std::string reason;
        report("loops", peelScores(rewriter, loop, chain, reason), reason);
      }
  }
};
} // namespace
