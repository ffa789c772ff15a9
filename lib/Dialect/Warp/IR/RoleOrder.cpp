//===- RoleOrder.cpp - the order of items in roles --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W3 (a) of warp.kernel: each two roles use what they have in common in the
// same loops and the same order, and all roles agree on one order. Loops over
// consecutive blocks count as one where it depends on the group which of them
// goes through a block: they do the same with the items. The common order is
// looked for loop by loop: what two roles have in common is one node, and each
// role says which of its nodes comes before which. A cycle of these are roles
// that wait for each other.
//
//===----------------------------------------------------------------------===//

#include "RoleSteps.h"
#include "SameValues.h"
#include "attn/Dialect/Warp/IR/GroupLoops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace attn;
using namespace attn::warp;

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

std::optional<ItemUse> attn::warp::getItemUse(Operation *op) {
  if (auto await = dyn_cast<AwaitOp>(op))
    return ItemUse{await.getRing(), await.getItem(), /*isFill=*/false};
  if (auto copy = dyn_cast<CopyAsyncOp>(op))
    return ItemUse{copy.getRing(), copy.getItem(), /*isFill=*/true};
  if (auto store = dyn_cast<StoreFragOp>(op); store && store.getItem())
    return ItemUse{store.getTarget(), store.getItem(), /*isFill=*/true};
  if (auto send = dyn_cast<SendOp>(op))
    return ItemUse{send.getRing(), send.getItem(), /*isFill=*/true};
  if (auto receive = dyn_cast<ReceiveOp>(op))
    return ItemUse{receive.getRing(), receive.getItem(), /*isFill=*/false};
  return std::nullopt;
}

/// Before the condition nothing happens.
static LogicalResult verifyBefore(scf::WhileOp loop) {
  for (Operation &op : loop.getBeforeBody()->without_terminator())
    if (!isMemoryEffectFree(&op))
      return op.emitOpError("stands before the condition of a loop of "
                            "roles, expected operations without effects");
  return success();
}

LogicalResult attn::warp::listSteps(Block *block, std::vector<Step> &steps) {
  for (Operation &op : *block) {
    if (std::optional<ItemUse> use = getItemUse(&op)) {
      steps.push_back({&op, use, {}});
      continue;
    }
    if (auto turn = dyn_cast<TurnOp>(op)) {
      if (failed(listSteps(turn.getBodyBlock(), steps)))
        return failure();
      continue;
    }
    std::vector<Step> inner;
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        if (failed(listSteps(&nested, inner)))
          return failure();
    if (inner.empty())
      continue;
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      if (failed(verifyBefore(loop)))
        return failure();
    if (!isa<scf::ForOp, scf::WhileOp>(op))
      return inner.front().op->emitOpError("stands under '")
             << op.getName() << "', items of roles are used in loops only";
    steps.push_back({&op, std::nullopt, std::move(inner)});
  }
  return success();
}

std::vector<Step>
attn::warp::filterSteps(ArrayRef<Step> steps,
                        llvm::function_ref<bool(const ItemUse &)> counts) {
  std::vector<Step> result;
  for (const Step &step : steps) {
    if (step.use && counts(*step.use))
      result.push_back(step);
    if (step.use)
      continue;
    std::vector<Step> body = filterSteps(step.body, counts);
    if (!body.empty())
      result.push_back({step.op, std::nullopt, std::move(body), step.last});
  }
  return result;
}

/// Drops what has no counterpart. `wholes` are the bounds of a group that
/// passes over nothing.
static void dropPassedOver(std::vector<Step> &steps,
                           DenseMap<Value, Value> &wholes) {
  llvm::erase_if(steps, [&](const Step &step) {
    auto loop = dyn_cast<scf::ForOp>(step.op);
    std::optional<PassedEnd> end = loop ? getPassedEnd(loop) : std::nullopt;
    if (end == PassedEnd::Lower)
      wholes[loop.getUpperBound()] = loop.getLowerBound();
    if (end == PassedEnd::Upper)
      wholes[loop.getLowerBound()] = loop.getUpperBound();
    return end.has_value();
  });
  for (Step &step : steps)
    dropPassedOver(step.body, wholes);
}

bool attn::warp::isContinued(const Step &loop, const Step &next) {
  auto before = dyn_cast<scf::ForOp>(loop.last ? loop.last : loop.op);
  auto after = dyn_cast<scf::ForOp>(next.op);
  return before && after && before.getUpperBound() == after.getLowerBound() &&
         dependsOnGroup(after.getLowerBound());
}

/// What a loop over blocks uses for one block; nothing where blocks differ.
static std::vector<Step> getStepsOfBlock(const Step &loop) {
  size_t blocks =
      getConstantIntValue(cast<scf::ForOp>(loop.op).getStep()).value_or(0);
  if (loop.last) // reduced to one block
    blocks = 1;
  if (blocks == 0 || loop.body.size() % blocks != 0)
    return {};
  size_t size = loop.body.size() / blocks;
  for (auto [number, step] : llvm::enumerate(loop.body))
    if (!step.use || step.use->ring != loop.body[number % size].use->ring)
      return {};
  return std::vector<Step>(loop.body.begin(), loop.body.begin() + size);
}

/// Where one loop ends and the next begins may depend on the group: these are
/// one loop to other roles.
static LogicalResult joinLoops(std::vector<Step> &steps) {
  std::vector<Step> joined;
  for (Step &step : steps) {
    if (failed(joinLoops(step.body)))
      return failure();
    if (joined.empty() || !isContinued(joined.back(), step)) {
      joined.push_back(std::move(step));
      continue;
    }
    Step &chain = joined.back();
    std::vector<Step> before = getStepsOfBlock(chain);
    std::vector<Step> after = getStepsOfBlock(step);
    auto isSame = [](const Step &a, const Step &b) {
      return a.use->ring == b.use->ring;
    };
    if (before.empty() || !llvm::equal(before, after, isSame)) {
      InFlightDiagnostic diag = step.op->emitOpError(
          "uses other items for a block, or in another order, than the loop "
          "before it, expected the same: it depends on the group which blocks "
          "are whose");
      diag.attachNote(chain.op->getLoc()) << "the loop before it";
      return diag;
    }
    chain.body = std::move(before);
    chain.last = step.op;
  }
  steps = std::move(joined);
  return success();
}

//===----------------------------------------------------------------------===//
// Two roles
//===----------------------------------------------------------------------===//

namespace {
/// Steps that are one and the same to the roles that have them.
using Common = llvm::EquivalenceClasses<Operation *>;

/// Compares the lists of two roles.
class Pair {
public:
  Pair(RoleOp first, RoleOp second, const DenseMap<Value, Value> &wholes,
       Common &common)
      : first(first), second(second), common(common), same(wholes) {}

  LogicalResult compare(ArrayRef<Step> left, ArrayRef<Step> right);
  LogicalResult checkBounds();

private:
  LogicalResult refuse(Operation *left, Operation *right);

  RoleOp first, second;
  Common &common;
  SameValues same;
};
} // namespace

/// Told where an item is awaited, if there is such a place.
LogicalResult Pair::refuse(Operation *left, Operation *right) {
  Operation *at = right ? right : left;
  InFlightDiagnostic diag =
      at->emitOpError("does not meet its counterpart: @")
      << first.getSymName() << " and @" << second.getSymName()
      << " must use the items of the rings between them in the same loops and "
         "order";
  if (left && right)
    diag.attachNote(left->getLoc()) << "@" << first.getSymName() << " is here";
  return failure();
}

LogicalResult Pair::compare(ArrayRef<Step> left, ArrayRef<Step> right) {
  size_t number = 0;
  for (; number < std::min(left.size(), right.size()); ++number) {
    const Step &a = left[number], &b = right[number];
    if (bool(a.use) != bool(b.use) || (a.use && a.use->ring != b.use->ring))
      return refuse(a.op, b.op);
    common.unionSets(a.op, b.op);
    if (isa<SendOp, ReceiveOp>(a.op)) {
      auto getNumbers = [](Operation *op) {
        auto send = dyn_cast<SendOp>(op);
        return send ? ValueRange(send.getValues())
                    : ValueRange(op->getResults());
      };
      for (auto [x, y] : llvm::zip_equal(getNumbers(a.op), getNumbers(b.op)))
        same.add(x, y);
    }
    if (a.use)
      continue;
    if (!areSameLoops({a.op, a.last}, {b.op, b.last}, same))
      return refuse(a.op, b.op);
    if (failed(compare(a.body, b.body)))
      return failure();
  }
  if (left.size() > number)
    return refuse(left[number].op, nullptr);
  if (right.size() > number)
    return refuse(nullptr, right[number].op);
  return success();
}

LogicalResult Pair::checkBounds() {
  if (same.isKept())
    return success();
  return first->getParentOp()->emitOpError("has loops in @")
         << first.getSymName() << " and @" << second.getSymName()
         << " whose bounds do not stay the same from iteration to iteration";
}

/// What of a role's list another role has to do with.
static std::vector<Step> filterFor(RoleOp other, ArrayRef<Step> steps) {
  return filterSteps(steps, [&](const ItemUse &use) {
    return use.isFill ? drains(other, use.ring)
                      : getFiller(use.ring) == other.getSymName();
  });
}

static LogicalResult verifyPair(const RoleSteps &left, const RoleSteps &right,
                                const DenseMap<Value, Value> &wholes,
                                Common &common) {
  std::vector<Step> a = filterFor(right.role, left.steps);
  std::vector<Step> b = filterFor(left.role, right.steps);
  Pair pair(left.role, right.role, wholes, common);
  if (failed(pair.compare(a, b)))
    return failure();
  return pair.checkBounds();
}

//===----------------------------------------------------------------------===//
// All roles
//===----------------------------------------------------------------------===//

namespace {
/// The steps of one loop, or of all roles outside of loops.
class StepGraph {
public:
  StepGraph(Common &common, ArrayRef<std::pair<RoleOp, ArrayRef<Step>>> lists);

  LogicalResult verify();

private:
  /// That a role has one step before another.
  struct Edge {
    Operation *to, *from, *at;
    RoleOp role;
  };
  Operation *nodeOf(const Step &step) {
    return *common.findLeader(common.insert(step.op));
  }
  LogicalResult visit(Operation *node);
  LogicalResult refuse(Operation *node);

  Common &common;
  llvm::MapVector<Operation *, SmallVector<Edge>> edges;
  llvm::MapVector<Operation *, SmallVector<std::pair<RoleOp, ArrayRef<Step>>>>
      bodies;
  enum State { New, Open, Done };
  DenseMap<Operation *, State> states;
  SmallVector<Edge> path;
};
} // namespace

StepGraph::StepGraph(Common &common,
                     ArrayRef<std::pair<RoleOp, ArrayRef<Step>>> lists)
    : common(common) {
  for (auto [role, steps] : lists)
    for (auto [number, step] : llvm::enumerate(steps)) {
      Operation *node = nodeOf(step);
      edges[node];
      if (!step.use)
        bodies[node].push_back({role, step.body});
      if (number != 0)
        edges[nodeOf(steps[number - 1])].push_back(
            {node, steps[number - 1].op, step.op, role});
    }
}

/// The path ends where a step of it comes again.
LogicalResult StepGraph::refuse(Operation *node) {
  auto *first =
      llvm::find_if(llvm::reverse(path),
                    [&](const Edge &edge) {
                      return nodeOf({edge.from, std::nullopt, {}}) == node;
                    })
          .base() -
      1;
  std::string roles;
  for (Edge &edge : llvm::make_range(first, path.end()))
    roles += "@" + edge.role.getSymName().str() + ", ";
  InFlightDiagnostic diag =
      first->at->emitOpError("is where roles wait for each other in a cycle: ")
      << roles << "and @" << first->role.getSymName() << " again";
  for (Edge &edge : llvm::make_range(first, path.end())) {
    diag.attachNote(edge.from->getLoc())
        << "@" << edge.role.getSymName() << " must be done with this";
    diag.attachNote(edge.at->getLoc()) << "before it comes to this";
  }
  return diag;
}

LogicalResult StepGraph::visit(Operation *node) {
  if (states[node] == Done)
    return success();
  if (states[node] == Open)
    return refuse(node);
  states[node] = Open;
  for (Edge &edge : edges[node]) {
    path.push_back(edge);
    if (failed(visit(edge.to)))
      return failure();
    path.pop_back();
  }
  states[node] = Done;
  return success();
}

LogicalResult StepGraph::verify() {
  for (Operation *node : llvm::make_first_range(edges))
    if (failed(visit(node)))
      return failure();
  for (auto &[node, lists] : bodies)
    if (failed(StepGraph(common, lists).verify()))
      return failure();
  return success();
}

LogicalResult attn::warp::verifyOrder(KernelOp kernel,
                                      ArrayRef<RoleSteps> roles) {
  std::vector<RoleSteps> matched = roles.vec();
  DenseMap<Value, Value> wholes;
  for (RoleSteps &list : matched) {
    dropPassedOver(list.steps, wholes);
    if (failed(joinLoops(list.steps)))
      return failure();
  }
  Common common;
  for (size_t first = 0; first < matched.size(); ++first)
    for (size_t second = first + 1; second < matched.size(); ++second) {
      // What is awaited is compared with what is copied.
      bool isSwapped = matched[second].role.isCopy();
      const RoleSteps &left = matched[isSwapped ? second : first];
      const RoleSteps &right = matched[isSwapped ? first : second];
      if (failed(verifyPair(left, right, wholes, common)))
        return failure();
    }
  SmallVector<std::pair<RoleOp, ArrayRef<Step>>> lists;
  for (const RoleSteps &list : matched)
    lists.push_back({list.role, list.steps});
  return StepGraph(common, lists).verify();
}
