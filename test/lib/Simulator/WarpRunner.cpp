//===- WarpRunner.cpp - one warp of a warp kernel ---------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpRunner.h"

#include "attn/Layout/Descriptors.h"

using namespace mlir;
using namespace attn;
using namespace attn::simulator;
using namespace attn::warp;

WarpRunner::WarpRunner(WarpBlock &block, RoleOp role, int64_t warp)
    : block(block), role(role), warp(warp),
      blockWarp(role ? role.getFirstWarp() + warp : warp),
      values(layout::warpSize, block.place, /*shared=*/nullptr,
             block.launch.global) {
  if (role && warp >= role.getActiveWarps()) {
    idleNumber = warp - role.getActiveWarps();
    this->warp = 0;
  }
  enter(block.kernel.getBodyBlock());
}

std::string WarpRunner::getName() {
  if (!role)
    return "warp " + std::to_string(warp);
  std::string name = "@" + role.getSymName().str();
  if (idleNumber)
    return "idle warp " + std::to_string(*idleNumber) + " of " + name;
  if (role.isCopy())
    return name;
  return "warp " + std::to_string(warp) + " of " + name;
}

WarpRunner::Content WarpRunner::take(Value value) {
  Content content;
  if (auto use = uses.find(value); use != uses.end())
    content.use = use->second;
  else if (auto product = pending.find(value); product != pending.end())
    content.product = product->second;
  else
    content.lanes = values.get(value);
  return content;
}

void WarpRunner::put(Value value, Content content) {
  if (content.use.ring)
    uses[value] = content.use;
  else if (content.product >= 0)
    pending[value] = content.product;
  else
    values.set(value, std::move(content.lanes));
}

SmallVector<WarpRunner::Content> WarpRunner::takeAll(OperandRange range) {
  return llvm::map_to_vector(range, [&](Value value) { return take(value); });
}

LogicalResult WarpRunner::refuse(Operation *op, const Twine &message) {
  return op->emitOpError(message) << " (" << getName() << ")";
}

void WarpRunner::putAll(ValueRange values, MutableArrayRef<Content> contents) {
  for (auto [value, content] : llvm::zip_equal(values, contents))
    put(value, std::move(content));
}

WarpRunner::Step WarpRunner::fail(Operation *op, const Twine &message) {
  (void)refuse(op, message);
  return Failed;
}

/// Goes on after `op`, waits or fails, as the answer says.
WarpRunner::Step WarpRunner::settle(Operation *op, const Answer &answer) {
  if (answer.kind == Answer::Wrong)
    return fail(op, answer.reason);
  if (answer.kind == Answer::Wait) {
    // That it came may be what others wait for.
    if (waitsAt != op)
      block.hasNews = true;
    waitsAt = op;
    reason = answer.reason;
    return Waits;
  }
  waitsAt = nullptr;
  block.hasNews = true;
  ++frames.back().next;
  return Met;
}

LogicalResult WarpRunner::checkNothingInFlight() {
  for (const Product &product : products)
    if (product.depth >= frames.size())
      return refuse(product.op, "is in flight at the end of its block");
  return success();
}

WarpRunner::Step WarpRunner::beginLoop(scf::ForOp loop) {
  Frame frame = {
      loop.getBody()->begin(), values.getSigned(loop.getLowerBound()),
      values.getSigned(loop.getUpperBound()), values.getSigned(loop.getStep())};
  SmallVector<Content> inits = takeAll(loop.getInitArgs());
  if (frame.induction >= frame.upper) {
    putAll(loop.getResults(), inits);
    ++frames.back().next;
    return Ran;
  }
  putAll(loop.getRegionIterArgs(), inits);
  set(loop.getInductionVar(), {Part(layout::warpSize, frame.induction)});
  frames.push_back(frame);
  return Ran;
}

WarpRunner::Step WarpRunner::leaveLoop(scf::ForOp loop, Operation *yield) {
  Frame &frame = frames.back();
  frame.induction += frame.increment;
  SmallVector<Content> carried = takeAll(yield->getOperands());
  if (frame.induction < frame.upper) {
    putAll(loop.getRegionIterArgs(), carried);
    set(loop.getInductionVar(), {Part(layout::warpSize, frame.induction)});
    frame.next = loop.getBody()->begin();
    return Ran;
  }
  putAll(loop.getResults(), carried);
  frames.pop_back();
  ++frames.back().next;
  return Ran;
}

/// From the condition of `scf.while` to its body, or out of it.
WarpRunner::Step WarpRunner::leaveCondition(scf::ConditionOp condition) {
  auto loop = condition->getParentOfType<scf::WhileOp>();
  SmallVector<Content> passed = takeAll(condition.getArgs());
  if (values.getSigned(condition.getCondition()) != 0) {
    putAll(loop.getAfterArguments(), passed);
    frames.back().next = loop.getAfterBody()->begin();
    return Ran;
  }
  putAll(loop.getResults(), passed);
  frames.pop_back();
  ++frames.back().next;
  return Ran;
}

WarpRunner::Step WarpRunner::runRegion(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return beginLoop(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    SmallVector<Content> inits = takeAll(loop.getInits());
    putAll(loop.getBeforeArguments(), inits);
    enter(loop.getBeforeBody());
    return Ran;
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    const Part &condition = values.get(branch.getCondition())[0];
    if (!llvm::all_equal(condition))
      return fail(op, "branches differently in the lanes of a warp");
    Region &region =
        condition[0] ? branch.getThenRegion() : branch.getElseRegion();
    if (region.empty())
      ++frames.back().next;
    else
      enter(&region.front());
    return Ran;
  }
  if (auto other = dyn_cast<RoleOp>(op)) {
    if (other != role) {
      ++frames.back().next;
      return Ran;
    }
    if (!role.isCopy())
      set(role.getGroup(),
          {Part(layout::warpSize, warp / layout::warpsPerGroup)});
    enter(other.getBodyBlock());
    return Ran;
  }
  if (auto beside = dyn_cast<BesideOp>(op)) {
    if (!idleNumber) {
      ++frames.back().next;
      return Ran;
    }
    set(beside.getWarp(), {Part(layout::warpSize, *idleNumber)});
    enter(beside.getBodyBlock());
    return Ran;
  }
  if (auto bounds = dyn_cast<GroupBoundsOp>(op)) {
    // It stands in no role.
    for (Value result : bounds.getResults())
      put(result, take(bounds.getWhole(result)));
    ++frames.back().next;
    return Ran;
  }
  if (auto all = dyn_cast<AllOp>(op)) {
    enter(&all.getCondition().front());
    frames.back().induction = 0;
    set(all.getCondition().getArgument(0), {Part(layout::warpSize, 0)});
    return Ran;
  }
  auto turn = llvm::cast<TurnOp>(op);
  // Groups that go through different blocks take as many turns, not the same.
  Operation *key = op;
  if (!role.getGroup().use_empty())
    key = role;
  Step step = settle(op, block.turns.find(role)->second.enter(warp, key));
  if (step == Met) {
    --frames.back().next;
    enter(turn.getBodyBlock());
  }
  return step;
}

/// The condition of the next number, until it holds for one no more.
WarpRunner::Step WarpRunner::leaveNumber(AllOp all) {
  Frame &frame = frames.back();
  if (values.getSigned(all.getYielded()) != 0 &&
      ++frame.induction < AllOp::numAsked) {
    set(all.getCondition().getArgument(0),
        {Part(layout::warpSize, frame.induction)});
    frame.next = all.getCondition().front().begin();
    return Ran;
  }
  put(all.getResult(), take(all.getYielded()));
  frames.pop_back();
  ++frames.back().next;
  return Ran;
}

/// After the last operation of a block.
WarpRunner::Step WarpRunner::leave(Operation *terminator) {
  Operation *parent = terminator->getParentOp();
  if (isa<TurnOp>(parent)) {
    // Its products belong to the block around it.
    for (Product &product : products)
      product.depth = std::min(product.depth, frames.size() - 1);
    block.turns.find(role)->second.leave(warp);
    block.hasNews = true;
  } else if (failed(checkNothingInFlight())) {
    return Failed;
  }
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    return leaveLoop(loop, terminator);
  if (auto condition = dyn_cast<scf::ConditionOp>(terminator))
    return leaveCondition(condition);
  if (auto all = dyn_cast<AllOp>(parent))
    return leaveNumber(all);
  SmallVector<Content> yielded = takeAll(terminator->getOperands());
  if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
    putAll(loop.getBeforeArguments(), yielded);
    frames.back().next = loop.getBeforeBody()->begin();
    return Ran;
  }
  frames.pop_back();
  if (frames.empty())
    return Finished;
  putAll(parent->getResults(), yielded);
  ++frames.back().next;
  return Met;
}

WarpRunner::Step WarpRunner::step() {
  if (frames.empty())
    return Finished;
  Operation *op = getPlace();
  if (op->hasTrait<OpTrait::IsTerminator>())
    return leave(op);
  if (idleNumber && isa<RoleOp>(op->getParentOp()) && !isa<BesideOp>(op)) {
    ++frames.back().next;
    return Ran;
  }
  if (isa<scf::ForOp, scf::WhileOp, scf::IfOp, RoleOp, BesideOp, AllOp,
          GroupBoundsOp, TurnOp>(op))
    return runRegion(op);
  if (auto async = dyn_cast<CopyAsyncOp>(op))
    return copyAsync(async);
  if (auto sync = dyn_cast<CopyOp>(op))
    return copy(sync);
  if (auto slot = dyn_cast<StoreFragOp>(op))
    return storeFrag(slot);
  if (auto item = dyn_cast<TestOp>(op))
    return test(item);
  if (auto slot = dyn_cast<AwaitOp>(op))
    return await(slot);
  if (auto slot = dyn_cast<ReleaseOp>(op))
    return release(slot);
  if (auto product = dyn_cast<WaitOp>(op))
    return wait(product);
  if (auto tile = dyn_cast<DrawOp>(op))
    return draw(tile);
  if (auto numbers = dyn_cast<SendOp>(op))
    return send(numbers);
  if (auto numbers = dyn_cast<ReceiveOp>(op))
    return takeNumbers(numbers);
  if (auto end = dyn_cast<ExitIfOp>(op))
    return exitIf(end);

  std::optional<LogicalResult> done = executeFragments(op);
  if (!done)
    done = executeProducts(op);
  if (!done)
    done = executeTransfers(op);
  if (!done)
    done = values.execute(op);
  if (failed(*done))
    return Failed;
  ++frames.back().next;
  return Ran;
}
