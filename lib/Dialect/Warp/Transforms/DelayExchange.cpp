//===- DelayExchange.cpp - exchanged tiles are read a step later ----------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the warps of a role write a tile that all of them read (dS of five
// products, for dQ), the groups meet in every step: none goes on until the last
// has written. Read one step later, the tile has long arrived, and one group
// may compute exponentials while another multiplies:
//
//   ring[0] = 0                                   nothing has been computed yet
//   for n = lo to hi, last = -1:
//     S, dP, dS of block n
//     ring[n - lo + 1] = dS
//     part = ring[n - lo] K                       dS of block `last`
//     dV += …;  dK += dS …
//     if last >= 0:  sums[last] += part
//     last = n
//   part = ring[hi - lo] K
//   if last >= 0:  sums[last] += part
//
// The operations on every number, and their order, stay what they were. The
// tile is stored before the products that follow, which may be a turn: ptxas
// 13.0 would compute what is stored behind them within that turn.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/IR/LoopValues.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPDELAYEXCHANGE
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

namespace {
/// What one step does with the tile.
struct ExchangeStep {
  scf::ForOp loop;
  BlockArgument counter; // of items, carried by the loop
  StoreFragOp fill;
  AwaitOp await;
  MmaOp product;
  ReleaseOp release;
  StoreOp sum;
  /// The first product that needs what the step computed.
  MmaOp firstLater;
};
} // namespace

template <typename Op> static Op getOnlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

static FailureOr<ExchangeStep> matchStep(StoreFragOp fill,
                                         std::string &reason) {
  ExchangeStep step;
  step.fill = fill;
  step.loop = dyn_cast<scf::ForOp>(fill->getParentOp());
  if (!step.loop) {
    reason = "the tile is not written in a loop";
    return failure();
  }
  Block *body = step.loop.getBody();
  for (auto await : body->getOps<AwaitOp>())
    if (await.getRing() == fill.getTarget() &&
        await.getItem() == fill.getItem())
      step.await = await;
  step.counter = dyn_cast<BlockArgument>(fill.getItem());
  if (!step.await || !step.counter ||
      step.counter.getOwner() != step.loop.getBody()) {
    reason = "the tile is not read in the step that writes it";
    return failure();
  }
  for (Operation *user : step.await.getSlot().getUsers()) {
    if (auto product = dyn_cast<MmaOp>(user))
      step.product = product;
    if (auto release = dyn_cast<ReleaseOp>(user))
      step.release = release;
  }
  if (step.product)
    step.sum = getOnlyUser<StoreOp>(step.product.getResult());
  auto isInBody = [&](Operation *op) { return op && op->getBlock() == body; };
  if (!isInBody(step.product) || !isInBody(step.release) ||
      !isInBody(step.sum) || !step.sum.getAccumulate() ||
      !llvm::hasNItems(step.await.getSlot().getUsers(), 2)) {
    reason = "what is computed of the tile is not added to memory alone";
    return failure();
  }
  // Known before the loop, but for the number of the block.
  for (Value operand : step.sum->getOperands())
    if (operand != step.product.getResult() &&
        operand != step.loop.getInductionVar() &&
        !step.loop.isDefinedOutsideOfLoop(operand)) {
      reason = "where the sum lies is computed in the step";
      return failure();
    }
  for (Value operand : step.product->getOperands())
    if (operand != step.await.getSlot() &&
        !step.loop.isDefinedOutsideOfLoop(operand)) {
      reason = "the tile is multiplied by what the step computes";
      return failure();
    }
  Operation *source = fill.getValue().getDefiningOp();
  for (auto product : body->getOps<MmaOp>())
    if (source && source->getBlock() == body &&
        source->isBeforeInBlock(product)) {
      step.firstLater = product;
      break;
    }
  if (!step.firstLater) {
    reason = "no product follows what makes the tile";
    return failure();
  }
  return step;
}

/// The steps of one ring, loop after loop, each of which begins with the number
/// that the one before ended with.
static FailureOr<SmallVector<ExchangeStep>> matchChain(RingOp ring,
                                                       std::string &reason) {
  SmallVector<ExchangeStep> steps;
  for (Operation *user : ring.getRing().getUsers()) {
    auto fill = dyn_cast<StoreFragOp>(user);
    if (!fill)
      continue;
    FailureOr<ExchangeStep> step = matchStep(fill, reason);
    if (failed(step))
      return failure();
    steps.push_back(*step);
  }
  auto isEarlier = [](const ExchangeStep &a, const ExchangeStep &b) {
    return a.loop->isBeforeInBlock(b.loop);
  };
  for (const ExchangeStep &step : steps)
    if (step.loop->getBlock() != steps.front().loop->getBlock()) {
      reason = "loops that write the tile stand in different blocks";
      return failure();
    }
  llvm::sort(steps, isEarlier);
  for (size_t number = 1; number < steps.size(); ++number) {
    Value last = getLastValue(steps[number - 1].counter);
    if (getCarriedValue(steps[number].counter)->init != last) {
      reason = "loops that write the tile do not follow each other";
      return failure();
    }
  }
  return steps;
}

/// Adds to memory, if there is anything to add.
static void addSum(RewriterBase &b, ExchangeStep step, Value part, Value last,
                   Value zero) {
  Location loc = step.sum.getLoc();
  Value exists =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, last, zero);
  auto branch = scf::IfOp::create(b, loc, exists);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  IRMapping mapping;
  mapping.map(step.product.getResult(), part);
  mapping.map(step.loop.getInductionVar(), last);
  b.clone(*step.sum.getOperation(), mapping);
}

/// The loop carries the number of its last block, too.
static void delayStep(RewriterBase &b, ExchangeStep &step, Value &last,
                      Value zero) {
  scf::ForOp loop = step.loop;
  auto yieldNumber = [](OpBuilder &, Location, ArrayRef<BlockArgument> args) {
    return SmallVector<Value>(args.begin(), args.end());
  };
  unsigned counter = step.counter.getArgNumber();
  FailureOr<LoopLikeOpInterface> replaced = loop.replaceWithAdditionalYields(
      b, last, /*replaceInitOperandUsesInLoop=*/false, yieldNumber);
  assert(succeeded(replaced) && "scf.for takes more carried values");
  loop = step.loop = cast<scf::ForOp>(**replaced);
  step.counter = loop.getBody()->getArgument(counter);
  Operation *yield = loop.getBody()->getTerminator();
  b.modifyOpInPlace(yield, [&] {
    yield->setOperand(yield->getNumOperands() - 1, loop.getInductionVar());
  });

  // Products that need the step run beside it.
  if (step.firstLater != step.product)
    b.moveOpBefore(step.product, step.firstLater);
  b.moveOpBefore(step.await, step.product);
  b.moveOpAfter(step.release, step.product);
  b.setInsertionPoint(step.await);
  Location loc = step.fill.getLoc();
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value next = arith::AddIOp::create(b, loc, step.counter, one);
  StoreFragOp::create(b, loc, step.fill.getValue(), step.fill.getTarget(),
                      next);
  Operation *lastProduct = nullptr;
  for (auto product : loop.getBody()->getOps<MmaOp>())
    lastProduct = product;
  b.setInsertionPointAfter(lastProduct);
  addSum(b, step, step.product.getResult(), loop.getRegionIterArgs().back(),
         zero);
  last = loop.getResults().back();
}

static void delayChain(RewriterBase &b, MutableArrayRef<ExchangeStep> steps) {
  OpBuilder::InsertionGuard guard(b);
  ExchangeStep &front = steps.front(), &back = steps.back();
  b.setInsertionPoint(front.loop);
  Location loc = front.fill.getLoc();
  auto type = cast<FragType>(front.fill.getValue().getType());
  Value nothing = arith::ConstantOp::create(
      b, loc, b.getFloatAttr(type.getElementType(), 0.0));
  Value tile = SplatOp::create(b, loc, type, nothing);
  StoreFragOp::create(b, loc, tile, front.fill.getTarget(),
                      getCarriedValue(front.counter)->init);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value last = arith::ConstantIndexOp::create(b, loc, -1);
  for (ExchangeStep &step : steps) {
    b.setInsertionPoint(step.loop);
    delayStep(b, step, last, zero);
  }

  // No step follows the last tile.
  b.setInsertionPointAfter(back.loop);
  Value number = getLastValue(back.counter);
  IRMapping mapping;
  mapping.map(back.counter, number);
  Operation *await = b.clone(*back.await.getOperation(), mapping);
  Value part = b.clone(*back.product.getOperation(), mapping)->getResult(0);
  b.clone(*back.release.getOperation(), mapping);
  addSum(b, back, part, last, zero);
  b.setInsertionPointAfter(await);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value next = arith::AddIOp::create(b, loc, number, one);
  b.replaceUsesWithIf(number, next, [&](OpOperand &use) {
    return use.getOwner() != await && use.getOwner() != next.getDefiningOp();
  });
  for (ExchangeStep &step : steps) {
    b.eraseOp(step.sum);
    b.eraseOp(step.fill);
  }
}

int64_t attn::warp::delayExchanges(RewriterBase &rewriter, KernelOp kernel,
                                   int64_t limit, std::string &reason) {
  int64_t numDelayed = 0;
  for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>()) {
    RoleOp role = kernel.getRole(getFiller(ring.getRing()));
    if (!role || role.isCopy() || !drains(role, ring.getRing()))
      continue;
    FailureOr<SmallVector<ExchangeStep>> steps = matchChain(ring, reason);
    if (failed(steps) || steps->empty())
      continue;
    // One tile is written while the one before is read.
    if (ring.getRing().getType().getDepth() == 1 &&
        !addSecondSlot(rewriter, ring, limit, reason))
      continue;
    delayChain(rewriter, *steps);
    ++numDelayed;
  }
  if (numDelayed == 0 && reason.empty())
    reason = "no role writes a tile for itself";
  return numDelayed;
}

namespace {
struct WarpDelayExchange final
    : attn::SchedulePass<
          attn::warp::impl::WarpDelayExchangeBase<WarpDelayExchange>, KernelOp,
          WarpForm::Roles> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("exchanges", delayExchanges(rewriter, kernel, sharedLimit, reason),
           reason);
  }
};
} // namespace
