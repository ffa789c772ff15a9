//===- OverlapProducts.cpp - the products of two blocks side by side ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step of the loop over key blocks is a chain: scores, softmax, product
// with the values. Moved on by one step, the product with the values of block
// n - 1 stands beside the scores of block n, which do not depend on it:
//
//   S = Q K[lo]^T;  P, m, l = softmax(S)                    the first block
//   for n = lo + 1 to hi:
//     S = Q K[n]^T
//     o = o + P V[n - 1]
//     P', m, l, correction = softmax(S, m, l)
//     o = o * correction;  P = P'
//   o = o + P V[hi - 1]                                      the last block
//
// The operations on every number, and their order, stay what they were.
//
// The block of a visit may be another function of the loop's induction variable
// than itself (tile-peel-masks); the values are those of the visit before.
//
// Where there is no block at all the first one is computed nevertheless: all of
// it is masked, P is 0, and the values come from after the end (so they are
// 0, whatever memory holds).
//
//===----------------------------------------------------------------------===//

#include "CutBlock.h"
#include "attn/Dialect/Tile/Analysis/KeyLoops.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILEOVERLAPPRODUCTS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
/// The parts of one step of a loop that carries (o, m, l).
struct ProductStep : SoftmaxStep {
  scf::ForOp loop;
  vector::ContractionOp scores;   // Q K^T
  LoadOp values;                  // V[n]
  unsigned rowIndex = 0;          // of the values' indices, that of the row
  SmallVector<Operation *> place; // computes it from the induction variable
  vector::ContractionOp product;  // P V + rescaled

  /// True for what moves or is built anew: the rest stays before the softmax.
  bool isAfterSoftmax(Operation *op) const {
    return op == rounding || op == dropping || op == stretched ||
           op == rescaled || op == product;
  }
};

/// A chain of loops: each starts where and from what the one before ended.
struct Chain {
  SmallVector<ProductStep, 3> steps;
  /// The step that masks most, and of those that mask as much the one that does
  /// most: it is right for every block. (Where the score function saturates
  /// there is less to do.)
  size_t general = 0;
};
} // namespace

/// The operations in the body of `loop` that compute `value` from the induction
/// variable: arithmetic, and reads of memory. Fails if there are others.
static LogicalResult findPlace(Value value, scf::ForOp loop,
                               SmallVectorImpl<Operation *> &place) {
  SetVector<Operation *> found;
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (next == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(next))
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || op->getNumRegions() != 0 ||
        !(isPure(op) || isa<memref::LoadOp>(op)))
      return failure();
    if (found.insert(op))
      llvm::append_range(worklist, op->getOperands());
  }
  place.assign(found.begin(), found.end());
  llvm::sort(place,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return success();
}

/// True if the score function reads no product: nobody does then.
static bool ignoresProduct(OnlineSoftmaxOp softmax) {
  auto scores = softmax.getScores().getDefiningOp<ScoresOp>();
  return scores && scores.hasScore() &&
         scores.getScore().getArgument(0).use_empty();
}

/// Matches one loop; says in `reason` what is missing.
static FailureOr<ProductStep> matchStep(scf::ForOp loop, std::string &reason) {
  if (loop.getNumRegionIterArgs() != 3) {
    reason = "a loop over key blocks does not carry o, m and l";
    return failure();
  }
  FailureOr<SoftmaxStep> softmaxStep = matchSoftmaxStep(loop, reason);
  if (failed(softmaxStep))
    return failure();
  ProductStep step;
  static_cast<SoftmaxStep &>(step) = *softmaxStep;
  step.loop = loop;
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  step.product = yield.getOperand(0).getDefiningOp<vector::ContractionOp>();
  if (!step.product || step.product.getAcc() != step.rescaled ||
      step.getOutput() != loop.getRegionIterArg(0) ||
      step.softmax.getMax() != loop.getRegionIterArg(1) ||
      step.softmax.getSum() != loop.getRegionIterArg(2) ||
      yield.getOperand(1) != step.softmax.getNewMax() ||
      yield.getOperand(2) != step.softmax.getNewSum()) {
    reason = "the output is not rescaled by an online softmax";
    return failure();
  }
  step.values = step.product.getRhs().getDefiningOp<LoadOp>();
  if (step.product.getLhs() != step.weights || !step.values ||
      step.values->getBlock() != loop.getBody()) {
    reason = "the output is not a product of the weights with loaded values";
    return failure();
  }
  if (step.product.getLhsType().getElementType().isF32()) {
    reason = "a product of f32 is done where it stands, two blocks of scores "
             "only take registers";
    return failure();
  }
  unsigned numRows = 0;
  for (auto [number, index] : llvm::enumerate(step.values.getIndices()))
    if (!loop.isDefinedOutsideOfLoop(index)) {
      step.rowIndex = number;
      ++numRows;
    }
  if (numRows != 1 || failed(findPlace(step.values.getIndices()[step.rowIndex],
                                       loop, step.place))) {
    reason = "the values are not those of the loop's key block";
    return failure();
  }
  for (auto contraction : loop.getBody()->getOps<vector::ContractionOp>())
    if (contraction != step.product)
      step.scores = contraction;
  if (!step.scores || !step.scores->isBeforeInBlock(step.softmax) ||
      ignoresProduct(step.softmax)) {
    reason = "no product of queries and keys";
    return failure();
  }
  // What moves must not feed anything else.
  if (!step.rescaled->hasOneUse() || !step.weights.hasOneUse()) {
    reason = "the rescaled output has another use";
    return failure();
  }
  return step;
}

/// How much a step masks, and after that how much it does.
static std::pair<unsigned, size_t> measureStep(ProductStep &step) {
  unsigned masks = 0;
  if (auto scores = step.softmax.getScores().getDefiningOp<ScoresOp>())
    masks = (scores.hasMask() ? 1 : 0) + (scores.getBelow() ? 1 : 0);
  size_t amount = 0;
  step.loop->walk([&](Operation *) { ++amount; });
  return {masks, amount};
}

/// Matches the loops of a kernel.
static FailureOr<Chain> matchChain(KernelOp kernel, std::string &reason) {
  FailureOr<BlockLoops> loops = matchKeyLoops(kernel.getBody(), reason);
  if (failed(loops))
    return failure();
  Chain chain;
  for (scf::ForOp loop : loops->loops) {
    FailureOr<ProductStep> step = matchStep(loop, reason);
    if (failed(step))
      return failure();
    chain.steps.push_back(*step);
  }
  std::pair<unsigned, size_t> most;
  for (auto [number, step] : llvm::enumerate(chain.steps)) {
    std::pair<unsigned, size_t> amount = measureStep(step);
    if (amount < most)
      continue;
    most = amount;
    chain.general = number;
  }
  return chain;
}

/// The first row of the values of visit `visit`.
static Value placeValues(RewriterBase &b, ProductStep step, Value visit) {
  IRMapping mapping;
  mapping.map(step.loop.getInductionVar(), visit);
  for (Operation *op : step.place) {
    Operation *copy = b.clone(*op, mapping);
    SmallVector<Value> folded;
    if (succeeded(b.tryFold(copy, folded)) && !folded.empty()) {
      mapping.map(op->getResults(), folded);
      b.eraseOp(copy);
    }
  }
  return mapping.lookupOrDefault(step.values.getIndices()[step.rowIndex]);
}

static Value loadValues(OpBuilder &b, ProductStep step, Value firstKey) {
  IRMapping mapping;
  mapping.map(step.values.getIndices()[step.rowIndex], firstKey);
  return b.clone(*step.values.getOperation(), mapping)->getResult(0);
}

static Value multiply(OpBuilder &b, ProductStep step, Value weights,
                      Value values, Value accumulator) {
  IRMapping mapping;
  mapping.map(step.product.getLhs(), weights);
  mapping.map(step.product.getRhs(), values);
  mapping.map(step.product.getAcc(), accumulator);
  return b.clone(*step.product.getOperation(), mapping)->getResult(0);
}

/// Clones everything up to the softmax, and what happens to its weights, for
/// the block and the statistics that `mapping` gives. `afterScores` is called
/// after the product of queries and keys.
static Value cloneSoftmax(OpBuilder &b, ProductStep step, IRMapping &mapping,
                          function_ref<void()> afterScores) {
  // The load of the values is built where it is needed, unless it is that of
  // the keys, too.
  bool isShared = !step.values->hasOneUse();
  for (Operation &op : step.loop.getBody()->without_terminator()) {
    if (step.isAfterSoftmax(&op) || (&op == step.values && !isShared))
      continue;
    b.clone(op, mapping);
    if (&op == step.scores)
      afterScores();
  }
  Value weights = mapping.lookup(step.softmax.getProbabilities());
  for (Operation *op : {step.rounding, step.dropping})
    if (op)
      weights = b.clone(*op, mapping)->getResult(0);
  return weights;
}

FailureOr<int64_t> attn::tile::overlapProducts(RewriterBase &b, KernelOp kernel,
                                               std::string &reason) {
  FailureOr<Chain> matched = matchChain(kernel, reason);
  if (failed(matched))
    return failure();
  Chain &chain = *matched;
  ProductStep front = chain.steps.front(), general = chain.steps[chain.general];
  Value lo = front.loop.getLowerBound();
  Value hi = chain.steps.back().loop.getUpperBound();
  Location loc = front.loop.getLoc();

  // The first block, always under the mask and guarded: it may not exist.
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(front.loop);
  IRMapping mapping;
  mapping.map(general.loop.getInductionVar(), lo);
  mapping.map(general.loop.getRegionIterArgs(), front.loop.getInitArgs());
  Value weights = cloneSoftmax(b, general, mapping, [] {});
  mapping.lookup(general.softmax.getNewMax())
      .getDefiningOp<OnlineSoftmaxOp>()
      .setGuard(true);
  SmallVector<Value> state = {
      front.loop.getInitArgs()[0], mapping.lookup(general.softmax.getNewMax()),
      mapping.lookup(general.softmax.getNewSum()), weights};
  // Without a mask, of a block that may not exist nothing shall stay.
  auto isAnyVisited = [&] {
    return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, lo,
                                         hi);
  };
  if (Value exists = isAnyVisited();
      measureStep(general).first == 0 && !matchPattern(exists, m_One())) {
    Value noWeights = arith::ConstantOp::create(
        b, loc, cast<TypedAttr>(b.getZeroAttr(weights.getType())));
    Value before[] = {front.loop.getInitArgs()[1], front.loop.getInitArgs()[2],
                      noWeights};
    for (auto [value, other] :
         llvm::zip_equal(MutableArrayRef(state).drop_front(), before))
      value = arith::SelectOp::create(b, loc, exists, value, other);
  }

  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value second = b.createOrFold<arith::AddIOp>(loc, lo, one);
  Value lowerBound = second;
  auto steps = ArrayRef(chain.steps);
  if (chain.general == 0 && isOverOneBlockAtMost(front.loop))
    steps = steps.drop_front();
  for (ProductStep step : steps) {
    b.setInsertionPoint(front.loop);
    Value upperBound =
        b.createOrFold<arith::MaxSIOp>(loc, step.loop.getUpperBound(), second);
    auto loop = scf::ForOp::create(b, step.loop.getLoc(), lowerBound,
                                   upperBound, step.loop.getStep(), state);
    b.setInsertionPointToEnd(loop.getBody());
    IRMapping inLoop;
    inLoop.map(step.loop.getInductionVar(), loop.getInductionVar());
    inLoop.map(step.loop.getRegionIterArgs(),
               loop.getRegionIterArgs().drop_back());
    Value o;
    Value newWeights = cloneSoftmax(b, step, inLoop, [&] {
      Value previous =
          arith::SubIOp::create(b, loc, loop.getInductionVar(), one);
      Value values = loadValues(b, step, placeValues(b, step, previous));
      o = multiply(b, step, loop.getRegionIterArg(3), values,
                   loop.getRegionIterArg(0));
    });
    // The output is rescaled with this block's correction.
    inLoop.map(step.loop.getRegionIterArg(0), o);
    b.clone(*step.stretched.getOperation(), inLoop);
    Value rescaled =
        b.clone(*step.rescaled.getOperation(), inLoop)->getResult(0);
    scf::YieldOp::create(
        b, loc,
        ValueRange{rescaled, inLoop.lookup(step.softmax.getNewMax()),
                   inLoop.lookup(step.softmax.getNewSum()), newWeights});
    state = llvm::to_vector_of<Value>(loop.getResults());
    lowerBound = upperBound;
  }

  // The last block; after the end of the values if there is none.
  b.setInsertionPoint(front.loop);
  Value last = b.createOrFold<arith::SubIOp>(loc, hi, one);
  Value firstKey = placeValues(b, general, last);
  Value end = b.createOrFold<memref::DimOp>(loc, general.values.getView(),
                                            general.rowIndex);
  firstKey =
      b.createOrFold<arith::SelectOp>(loc, isAnyVisited(), firstKey, end);
  Value values = loadValues(b, general, firstKey);
  Value o = multiply(b, general, state[3], values, state[0]);

  b.replaceAllUsesWith(chain.steps.back().loop.getResults(),
                       {o, state[1], state[2]});
  for (ProductStep step : llvm::reverse(chain.steps))
    b.eraseOp(step.loop);
  return int64_t(chain.steps.size());
}

namespace {
struct TileOverlapProducts final
    : attn::SchedulePass<
          attn::tile::impl::TileOverlapProductsBase<TileOverlapProducts>,
          KernelOp, TileForm::Folded, attn::CleanUp::CSE> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("loops", overlapProducts(rewriter, kernel, reason), reason);
  }
};
} // namespace
