//===- DeferSum.cpp - row sums are added up across lanes once -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The running row sum is l' = l * c + rowsum(p), with a correction c that is
// the same for the whole row. A row is spread over the four lanes of a quad, so
// each rowsum moves data between lanes. As the step is linear in l and c does
// not depend on the lane, every lane can keep the sum of its own columns,
//
//   l_q' = l_q * c + (sum of the columns that lane q holds),
//
// and l = l_0 + l_1 + l_2 + l_3 at the end. The partial sums are an Mx4
// fragment.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPDEFERSUM
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// In one loop: iteration argument `number` is l, `step` is l * c + rowsum.
struct SumStep {
  scf::ForOp loop;
  unsigned number;
  math::FmaOp step;
  ReduceOp rowSum;
};
} // namespace

/// The step of iteration argument `number`, if it has the form and nothing else
/// in the body sees the sum.
static std::optional<SumStep> matchStep(scf::ForOp loop, unsigned number) {
  Value sum = loop.getRegionIterArg(number);
  if (!isa<FragType>(sum.getType()) || !sum.hasOneUse())
    return std::nullopt;
  auto step = dyn_cast<math::FmaOp>(*sum.user_begin());
  if (!step || step->getBlock() != loop.getBody() || step.getA() != sum ||
      step.getB() == sum || !step->hasOneUse() ||
      loop.getYieldedValues()[number] != step.getResult())
    return std::nullopt;
  auto rowSum = step.getC().getDefiningOp<ReduceOp>();
  if (!rowSum || rowSum.getKind() != ReduceKind::Add || !rowSum->hasOneUse() ||
      rowSum.getValue().getType().getShape()[1] == layout::laneColumns)
    return std::nullopt;
  return SumStep{loop, number, step, rowSum};
}

static bool isZeroSplat(Value value) {
  auto splat = value.getDefiningOp<SplatOp>();
  return splat && matchPattern(splat.getScalar(), m_AnyZeroFloat());
}

/// The row sum of a step in front of the loops, from a sum that is zero:
/// 0 * c + rowsum. Null if `init` has another form or other users.
static ReduceOp matchFirstRowSum(Value init) {
  auto step = init.getDefiningOp<math::FmaOp>();
  if (!step || !step->hasOneUse() || !isZeroSplat(step.getA()))
    return {};
  auto rowSum = step.getC().getDefiningOp<ReduceOp>();
  if (!rowSum || rowSum.getKind() != ReduceKind::Add || !rowSum->hasOneUse() ||
      rowSum.getValue().getType().getShape()[1] == layout::laneColumns)
    return {};
  return rowSum;
}

/// The steps of a chain of loops that hand on one sum, which begins as zero, or
/// as a first step from zero, with iteration argument `number` of `loop`. Empty
/// if some loop has another form.
static SmallVector<SumStep> matchChain(scf::ForOp loop, unsigned number) {
  SmallVector<SumStep> chain;
  Value init = loop.getInitArgs()[number];
  if (!isZeroSplat(init) && !matchFirstRowSum(init))
    return chain;
  while (true) {
    std::optional<SumStep> step = matchStep(loop, number);
    if (!step)
      return chain;
    chain.push_back(*step);
    scf::ForOp next;
    for (OpOperand &use : loop.getResult(number).getUses())
      if (auto user = dyn_cast<scf::ForOp>(use.getOwner())) {
        next = user;
        number = use.getOperandNumber() - user.getNumControlOperands();
      }
    if (!next)
      return chain;
    loop = next;
  }
}

static FragType getLaneType(Type type) {
  auto frag = cast<FragType>(type);
  return FragType::get(frag.getContext(),
                       {frag.getShape()[0], layout::laneColumns},
                       frag.getElementType(), frag.getKind(), frag.getWarps());
}

/// One loop keeps its sum per lane; `init` is what it starts from. Gives the
/// partial sums behind it; other users of the result get their total.
static Value deferStep(RewriterBase &rewriter, SumStep &match, Value init) {
  scf::ForOp loop = match.loop;
  Location loc = match.step.getLoc();
  Type total = loop.getResult(match.number).getType();
  FragType lanes = getLaneType(total);
  rewriter.setInsertionPoint(match.step);
  Value rowSum = ReduceOp::create(rewriter, loc, lanes, ReduceKind::Add,
                                  match.rowSum.getValue());
  Value correction =
      BroadcastOp::create(rewriter, loc, lanes, match.step.getB());
  rewriter.modifyOpInPlace(loop, [&] {
    loop.getInitArgsMutable()[match.number].set(init);
    loop.getRegionIterArg(match.number).setType(lanes);
    loop.getResult(match.number).setType(lanes);
  });
  rewriter.replaceOpWithNewOp<math::FmaOp>(
      match.step, loop.getRegionIterArg(match.number), correction, rowSum,
      match.step.getFastmath());
  rewriter.eraseOp(match.rowSum);

  rewriter.setInsertionPointAfter(loop);
  auto sum = ReduceOp::create(rewriter, loc, total, ReduceKind::Add,
                              loop.getResult(match.number));
  rewriter.replaceAllUsesExcept(loop.getResult(match.number), sum, sum);
  return loop.getResult(match.number);
}

/// What the chain starts from, per lane.
static Value createFirstLanes(RewriterBase &rewriter, Value init) {
  Location loc = init.getLoc();
  FragType lanes = getLaneType(init.getType());
  ReduceOp rowSum = matchFirstRowSum(init);
  Value zero = rowSum ? init.getDefiningOp<math::FmaOp>().getA() : init;
  Value zeroLanes = SplatOp::create(rewriter, loc, lanes,
                                    zero.getDefiningOp<SplatOp>().getScalar());
  if (!rowSum)
    return zeroLanes;
  auto step = init.getDefiningOp<math::FmaOp>();
  Value first = ReduceOp::create(rewriter, loc, lanes, ReduceKind::Add,
                                 rowSum.getValue());
  Value correction = BroadcastOp::create(rewriter, loc, lanes, step.getB());
  return math::FmaOp::create(rewriter, loc, zeroLanes, correction, first,
                             step.getFastmath());
}

static bool deferChain(RewriterBase &rewriter, scf::ForOp loop,
                       unsigned number) {
  SmallVector<SumStep> chain = matchChain(loop, number);
  if (chain.empty())
    return false;
  rewriter.setInsertionPoint(loop);
  Value init = loop.getInitArgs()[number];
  Operation *firstStep = init.getDefiningOp<math::FmaOp>();
  Operation *firstRowSum = matchFirstRowSum(init);
  Value lanes = createFirstLanes(rewriter, init);
  for (SumStep &step : chain)
    lanes = deferStep(rewriter, step, lanes);
  if (firstStep) {
    rewriter.eraseOp(firstStep);
    rewriter.eraseOp(firstRowSum);
  }
  // The totals between the loops have lost their user.
  for (SumStep &step : chain)
    for (Operation *user : llvm::make_early_inc_range(
             step.loop.getResult(step.number).getUsers()))
      if (user->use_empty() && isa<ReduceOp>(user))
        rewriter.eraseOp(user);
  return true;
}

int64_t attn::warp::deferRowSums(RewriterBase &rewriter, KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  int64_t deferred = 0;
  for (scf::ForOp loop : loops)
    for (unsigned number = 0; number < loop.getNumResults(); ++number)
      deferred += deferChain(rewriter, loop, number);
  return deferred;
}

namespace {
struct WarpDeferSum final : attn::warp::impl::WarpDeferSumBase<WarpDeferSum> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk(
        [&](KernelOp kernel) { (void)deferRowSums(rewriter, kernel); });
  }
};
} // namespace
