//===- PeelMasks.cpp - full, partial and empty key blocks -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"

#include "attn/Dialect/Tile/Analysis/BlockCounts.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Analysis/VisitBounds.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEPEELMASKS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// The operands on which it depends whether a value is finite; all are, if
/// there are none. Nothing for what may be -inf whatever they are.
static std::optional<ValueRange> getFiniteParts(Value value) {
  Operation *op = value.getDefiningOp();
  bool isFinite = false;
  DenseElementsAttr elements;
  FloatAttr number;
  if (!op)
    isFinite = isa<IntegerType>(getElementTypeOrSelf(value));
  else if (matchPattern(value, m_Constant(&elements)))
    isFinite =
        elements.isSplat() && elements.getSplatValue<APFloat>().isFinite();
  else if (matchPattern(value, m_Constant(&number)))
    isFinite = number.getValue().isFinite();
  else if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
               math::FmaOp, math::Exp2Op, math::ExpOp, math::AbsFOp>(op))
    return op->getOperands();
  else if (isa<arith::SelectOp>(op))
    return op->getOperands().drop_front();
  else
    isFinite = isa<arith::SIToFPOp, arith::UIToFPOp, math::TanhOp>(op);
  return isFinite ? std::optional<ValueRange>(ValueRange()) : std::nullopt;
}

/// True unless `scores` may hold -inf although everything is visible: a sum or
/// product of finite numbers counts as finite, an element read from memory or
/// an argument may be anything.
static bool mayBeMinusInf(Value scores) {
  SetVector<Value> reached;
  reached.insert(scores);
  for (size_t next = 0; next < reached.size(); ++next) {
    Value value = reached[next];
    std::optional<ValueRange> parts = getFiniteParts(ScoresOp::resolve(value));
    if (!parts)
      return true;
    reached.insert(parts->begin(), parts->end());
  }
  return false;
}

/// A step whose rows all see a key needs no guard if no score is -inf.
static void dropGuard(RewriterBase &rewriter, ScoresOp op) {
  Value scores = op.hasScore()
                     ? op.getScore().front().getTerminator()->getOperand(0)
                     : Value(op.getScores());
  if (mayBeMinusInf(scores))
    return;
  if (OnlineSoftmaxOp softmax = findSoftmax(op))
    rewriter.modifyOpInPlace(softmax, [&] { softmax.setGuard(false); });
}

void attn::tile::dropMask(RewriterBase &rewriter, scf::ForOp loop) {
  FailureOr<ScoresOp> found = findMaskedScores(loop);
  if (failed(found))
    return;
  ScoresOp op = *found;
  // In a block where everything shows every row sees a key.
  dropGuard(rewriter, op);
  rewriter.modifyOpInPlace(op, [&] { op.getBelowMutable().clear(); });
  if (op.hasMask())
    rewriter.eraseBlock(&op.getMask().front());
  eraseDeadOps(rewriter, loop.getBody());
}

/// True if no iteration runs, whatever the run time values.
static bool isNeverEntered(Value lowerBound, Value upperBound) {
  if (lowerBound == upperBound)
    return true;
  APInt lower, upper;
  return matchPattern(lowerBound, m_ConstantInt(&lower)) &&
         matchPattern(upperBound, m_ConstantInt(&upper)) && lower.sge(upper);
}

namespace {
/// Builds the chain of loops in place of one.
class Peeling {
public:
  Peeling(RewriterBase &rewriter, scf::ForOp loop, const MaskProblem &problem,
          const VisitSet &set, bool oneLoop)
      : rewriter(rewriter), loop(loop), problem(problem), set(set),
        oneLoop(oneLoop), state(loop.getInitArgs()) {}

  PeeledLoop run();

private:
  scf::ForOp addSegment(Value lowerBound, Value upperBound, bool isMasked);
  void addRange();
  void addPieces();
  void mapVisits(scf::ForOp segment);

  RewriterBase &rewriter;
  scf::ForOp loop;
  const MaskProblem &problem;
  const VisitSet &set;
  bool oneLoop;
  SmallVector<Value> state;
  PeeledLoop peeled;
  /// Block = visit + shift, the last of those whose visits have begun. Numbers
  /// of blocks have 32 bits: those of all pieces live as long as the loops.
  struct Piece {
    Value firstVisit, shift;
  };
  SmallVector<Piece> pieces;
};
} // namespace

scf::ForOp Peeling::addSegment(Value lowerBound, Value upperBound,
                               bool isMasked) {
  if (isNeverEntered(lowerBound, upperBound))
    return nullptr;
  auto segment = cast<scf::ForOp>(rewriter.clone(*loop));
  segment.setLowerBound(lowerBound);
  segment.setUpperBound(upperBound);
  segment.getInitArgsMutable().assign(state);
  state = llvm::to_vector_of<Value>(segment.getResults());
  peeled.segments.push_back(segment);
  if (!isMasked) {
    peeled.unmasked = segment;
    dropMask(rewriter, segment);
  } else if (set.isFirstBlockSeen && pieces.empty()) {
    dropGuard(rewriter, *findMaskedScores(segment));
  }
  return segment;
}

void Peeling::addRange() {
  KeyBlockRange range = emitRange(rewriter, problem, set, loop);
  if (range.isAllMasked || (oneLoop && (range.hasLower || range.hasUpper))) {
    addSegment(range.lo, range.hi, /*isMasked=*/true);
    return;
  }
  if (range.hasLower)
    addSegment(range.lo, range.fullLo, /*isMasked=*/true);
  addSegment(range.fullLo, range.fullHi, /*isMasked=*/false);
  if (range.hasUpper)
    addSegment(range.fullHi, range.hi, /*isMasked=*/true);
}

/// Visits count through the masked pieces, then the full ones.
void Peeling::addPieces() {
  KeyBlockPieces blocks = emitPieces(rewriter, problem, set, loop);
  Location loc = loop.getLoc();
  auto narrow = [&](Value number) {
    return rewriter.createOrFold<arith::IndexCastOp>(loc, rewriter.getI32Type(),
                                                     number);
  };
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value visits = zero;
  auto addPiece = [&](KeyBlockPiece piece) {
    if (isNeverEntered(piece.lo, piece.hi))
      return;
    Value shift = rewriter.createOrFold<arith::SubIOp>(loc, piece.lo, visits);
    pieces.push_back({narrow(visits), narrow(shift)});
    Value length =
        rewriter.createOrFold<arith::SubIOp>(loc, piece.hi, piece.lo);
    visits = rewriter.createOrFold<arith::AddIOp>(loc, visits, length);
  };
  llvm::for_each(blocks.masked, addPiece);
  Value numMasked = visits;
  llvm::for_each(blocks.full, addPiece);
  auto add = [&](Value lowerBound, Value upperBound, bool isMasked) {
    if (scf::ForOp segment = addSegment(lowerBound, upperBound, isMasked))
      mapVisits(segment);
  };
  if (oneLoop)
    return add(zero, visits, /*isMasked=*/true);
  add(zero, numMasked, /*isMasked=*/true);
  add(numMasked, visits, /*isMasked=*/false);
}

/// Computes the block number from the visit in `segment`.
void Peeling::mapVisits(scf::ForOp segment) {
  Location loc = segment.getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(segment.getBody());
  auto visit = arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(),
                                          segment.getInductionVar());
  Value shift = pieces.front().shift;
  for (const Piece &piece : ArrayRef<Piece>(pieces).drop_front()) {
    Value isBehind = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::sge, visit, piece.firstVisit);
    shift =
        arith::SelectOp::create(rewriter, loc, isBehind, piece.shift, shift);
  }
  Value block = arith::IndexCastOp::create(
      rewriter, loc, rewriter.getIndexType(),
      arith::AddIOp::create(rewriter, loc, visit, shift));
  rewriter.replaceAllUsesExcept(segment.getInductionVar(), block, visit);
}

PeeledLoop Peeling::run() {
  if (isOneInterval(set))
    addRange();
  else
    addPieces();
  rewriter.replaceOp(loop, state);
  return peeled;
}

FailureOr<PeeledLoop> attn::tile::peelMasks(RewriterBase &rewriter,
                                            scf::ForOp loop,
                                            std::string &reason, bool oneLoop) {
  FailureOr<ScoresOp> scores = findMaskedScores(loop);
  if (failed(scores)) {
    reason = "not one tile.scores that hides keys";
    return failure();
  }
  MaskProblem problem = readMask(*scores, loop);
  VisitSet set = computeVisitSet(problem.problem);
  auto isEverything = [](const BlockInterval &interval) {
    return interval.constraints.empty();
  };
  if (llvm::any_of(set.visited, isEverything) &&
      llvm::any_of(set.masked, isEverything)) {
    reason = problem.isTooLarge || problem.problem.effort <= 0
                 ? "the mask is too large to be read as bounds of rows and keys"
             : problem.hasOpaque
                 ? "the mask depends on more than bounds of rows and keys"
                 : "every key block may show something and hide something";
    return failure();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  std::optional<BlockCounts> counts = countBlocks(problem, set, loop);
  PeeledLoop peeled = Peeling(rewriter, loop, problem, set, oneLoop).run();
  peeled.counts = counts;
  peeled.numIntervals = set.visited.size();
  peeled.isFirstBlockSeen = set.isFirstBlockSeen;
  return peeled;
}

/// Whether two copies of the step are more code than a multiprocessor keeps.
/// Products of f32 on tensor cores are unrolled: 16 rows and 8 columns of a
/// warp take about 20 instructions for each 8 columns of k.
static bool isLongStep(scf::ForOp loop) {
  constexpr int64_t bytesPerTile = 20 * 16, mostBytes = 64 * 1024;
  auto kernel = loop->getParentOfType<KernelOp>();
  if (!kernel || kernel.getPlan().getTarget() == attn::TargetKind::CPU)
    return false;
  int64_t numTiles = 0;
  for (auto product : loop.getBody()->getOps<vector::ContractionOp>()) {
    VectorType left = product.getLhsType();
    auto result = dyn_cast<VectorType>(product.getResultType());
    if (result && left.getElementType().isF32())
      numTiles += left.getNumElements() * result.getNumElements() /
                  result.getDimSize(0) / (16 * 8 * 8);
  }
  return numTiles / kernel.getPlan().getWarps() * bytesPerTile > mostBytes;
}

namespace {
struct TilePeelMasks final
    : attn::SchedulePass<attn::tile::impl::TilePeelMasksBase<TilePeelMasks>,
                         scf::ForOp, TileForm::Listed, attn::CleanUp::CSE> {
  using Base::Base;

  bool isWanted(scf::ForOp loop) override { return isLoopOverBlocks(loop); }

  void transform(RewriterBase &rewriter, scf::ForOp loop) override {
    Location loc = loop.getLoc();
    std::string reason;
    FailureOr<PeeledLoop> peeled =
        peelMasks(rewriter, loop, reason, selective && isLongStep(loop));
    if (failed(peeled))
      return missed(reason);
    if (peeled->counts)
      remark::analysis(
          loc, remark::RemarkOpts::name("key-blocks").category(getArgument()))
          << remark::metric("visited", peeled->counts->visited)
          << remark::metric("masked", peeled->counts->masked)
          << remark::metric("skipped",
                            peeled->counts->all - peeled->counts->visited);
    passed() << remark::metric("segments", peeled->segments.size())
             << remark::metric("unmasked", peeled->unmasked ? 1 : 0)
             << remark::metric("intervals", peeled->numIntervals)
             << remark::metric("rows-seen", peeled->isFirstBlockSeen ? 1 : 0);
  }
};
} // namespace
