//===- LoopHeads.cpp - query heads that share a key head, one by one ------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Query heads that share a key head add up its gradients. With a block for each
// query head they write them to a workspace of f32, and a kernel reads them
// again: of four heads that share one, and a length of 1,024, that takes a
// fifth of the time. Here a block goes through all of these heads instead. Key
// and value are read once, and the sums stay where they are:
//
//   for each head of those that share the key head
//     for each block of queries
//       …
//   store
//
// What depends on the query head moves into the loop; the rest stays in front
// of it. There are fewer and longer blocks: a plan without the pass is better
// where they are fewer than multiprocessors.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace attn::tile {
#define GEN_PASS_DEF_TILELOOPHEADS
#include "attn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
/// A sum over the heads that share a key head: where it is shared, `branch`
/// stores what a block has to the workspace, and `adder` adds it up; else it
/// stores the result.
struct HeadSum {
  scf::IfOp branch;
  memref::AllocOp workspace;
  KernelOp adder;
  Value value;
};
} // namespace

/// The kernel besides `kernel` that reads a workspace; null if there are more.
static KernelOp findAdder(memref::AllocOp workspace, KernelOp kernel) {
  KernelOp adder;
  for (Operation *user : workspace->getUsers()) {
    auto owner = user->getParentOfType<KernelOp>();
    if (!owner || (adder && owner != kernel && owner != adder))
      return {};
    if (owner != kernel)
      adder = owner;
  }
  return adder;
}

static std::optional<HeadSum> matchSum(scf::IfOp branch) {
  auto kernel = dyn_cast<KernelOp>(branch->getParentOp());
  if (!kernel || branch.getNumResults() != 0 || !branch.elseBlock())
    return std::nullopt;
  auto store = dyn_cast<StoreOp>(branch.thenBlock()->front());
  if (!store || store.getAccumulate() ||
      store->getNextNode() != branch.thenBlock()->getTerminator())
    return std::nullopt;
  auto workspace = store.getView().getDefiningOp<memref::AllocOp>();
  KernelOp adder = workspace ? findAdder(workspace, kernel) : KernelOp();
  if (!adder)
    return std::nullopt;
  return HeadSum{branch, workspace, adder, store.getValue()};
}

/// The number of query heads to a key head: what the number of a block's head
/// is divided by.
static arith::DivSIOp findKeyHead(KernelOp kernel) {
  Value head = kernel.getNumber(1);
  for (Operation *user : head.getUsers())
    if (auto division = dyn_cast<arith::DivSIOp>(user))
      if (division.getLhs() == head &&
          division.getRhs().getParentRegion() != &kernel.getRegion())
        return division;
  return {};
}

namespace {
/// The loops that add up the value of a sum, one after the other, and the
/// operand of the first with which they begin.
struct SumChain {
  SmallVector<scf::ForOp> loops;
  OpOperand *first = nullptr;
};
} // namespace

static SumChain followSum(Value value, KernelOp kernel) {
  SumChain chain;
  while (auto loop = value.getDefiningOp<scf::ForOp>()) {
    if (loop->getParentOp() != kernel)
      return {};
    unsigned number = cast<OpResult>(value).getResultNumber();
    chain.loops.push_back(loop);
    chain.first = &loop.getInitsMutable()[number];
    value = chain.first->get();
  }
  if (chain.loops.empty() || !matchPattern(value, m_AnyZeroFloat()))
    return {};
  return chain;
}

namespace {
/// A kernel with such sums, and what stands in it.
struct HeadSums {
  SmallVector<HeadSum> sums;
  SmallVector<SumChain> chains;
  arith::DivSIOp keyHead;
  SetVector<Operation *> ofHead;

  Operation *end() { return sums.front().branch; }
  Value keyHeads() { return sums.front().adder.getHeads(); }
  SmallVector<Value> values() {
    return llvm::map_to_vector(
        sums, [](const HeadSum &sum) -> Value { return sum.value; });
  }
};
} // namespace

/// What depends on the head, and the loops.
static LogicalResult findHeadOps(KernelOp kernel, HeadSums &found) {
  for (Operation &op : kernel.getBody()->without_terminator()) {
    if (&op == found.end())
      break;
    bool isOfHead = llvm::is_contained(found.chains.front().loops, &op);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        isOfHead |= operand == kernel.getNumber(1) ||
                    found.ofHead.contains(operand.getDefiningOp());
    });
    if (&op == found.keyHead || !isOfHead)
      continue;
    // No block may end while others of its heads are needed.
    if (isa<ExitIfOp>(op))
      return failure();
    found.ofHead.insert(&op);
  }
  return success();
}

/// Nothing where it has no sums; else says in `reason` what is in the way, if
/// something is.
static std::optional<HeadSums> matchHeadSums(KernelOp kernel,
                                             std::string &reason) {
  HeadSums found;
  for (auto branch : kernel.getBody()->getOps<scf::IfOp>())
    if (std::optional<HeadSum> sum = matchSum(branch))
      found.sums.push_back(*sum);
  reason.clear();
  if (found.sums.empty())
    return std::nullopt;
  found.keyHead = findKeyHead(kernel);
  for (const HeadSum &sum : found.sums)
    found.chains.push_back(followSum(sum.value, kernel));
  auto areAlike = [&](const SumChain &chain) {
    return !chain.loops.empty() && chain.loops == found.chains.front().loops;
  };
  Operation *number = found.keyHeads().getDefiningOp();
  if (!found.keyHead || (number && !number->isBeforeInBlock(kernel)))
    reason = "its heads are not those of shared keys";
  else if (!llvm::all_of(found.chains, areAlike))
    reason = "its sums are not those of the same loops";
  else if (failed(findHeadOps(kernel, found)))
    reason = "a block may end for one of its heads";
  if (!reason.empty())
    return std::nullopt;

  for (Operation *op = found.end(); op != kernel.getTerminator();
       op = op->getNextNode())
    if (!isPure(op) && llvm::none_of(found.sums, [&](const HeadSum &sum) {
          return sum.branch == op;
        }))
      reason = "more is done behind its sums";
  SmallVector<Value> values = found.values();
  Block *body = kernel.getBody();
  for (Operation *op : found.ofHead)
    for (OpOperand &use : op->getUses())
      if (!llvm::is_contained(values, use.get()) &&
          !found.ofHead.contains(body->findAncestorOpInBlock(*use.getOwner())))
        reason = "something of a head is used behind its sums";
  if (!reason.empty())
    return std::nullopt;
  return found;
}

LogicalResult attn::tile::loopOverHeads(RewriterBase &rewriter, KernelOp kernel,
                                        std::string &reason) {
  std::optional<HeadSums> found = matchHeadSums(kernel, reason);
  if (!found)
    return failure();
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = kernel.getLoc();
  Value head = kernel.getNumber(1), perKeyHead = found->keyHead.getRhs();
  rewriter.setInsertionPoint(found->end());
  Value first = arith::MulIOp::create(rewriter, loc, head, perKeyHead);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  SmallVector<Value> inits;
  for (const SumChain &chain : found->chains)
    inits.push_back(chain.first->get());
  // Its bounds are those of all blocks, and of all roles of one.
  auto loop = scf::ForOp::create(rewriter, loc, zero, perKeyHead, one, inits);
  rewriter.replaceOp(found->keyHead, head);

  SmallVector<Value> values = found->values();
  rewriter.setInsertionPointToEnd(loop.getBody());
  Value own =
      arith::AddIOp::create(rewriter, loc, first, loop.getInductionVar());
  auto yield = scf::YieldOp::create(rewriter, loc, values);
  for (Operation *op : found->ofHead)
    rewriter.moveOpBefore(op, yield);
  rewriter.replaceUsesWithIf(head, own, [&](OpOperand &use) {
    return loop->isProperAncestor(use.getOwner());
  });
  for (size_t i = 0; i < found->chains.size(); ++i) {
    OpOperand *start = found->chains[i].first;
    rewriter.modifyOpInPlace(start->getOwner(),
                             [&] { start->set(loop.getRegionIterArgs()[i]); });
  }
  for (auto [value, result] : llvm::zip_equal(values, loop.getResults()))
    rewriter.replaceUsesWithIf(value, result, [&](OpOperand &use) {
      return !loop->isAncestor(use.getOwner());
    });
  rewriter.modifyOpInPlace(
      kernel, [&] { kernel.getHeadsMutable().assign(found->keyHeads()); });

  SetVector<Operation *> behind;
  for (HeadSum &sum : found->sums) {
    rewriter.eraseOp(sum.branch.elseBlock()->getTerminator());
    rewriter.inlineBlockBefore(sum.branch.elseBlock(), sum.branch);
    rewriter.eraseOp(sum.branch);
    behind.insert(sum.adder);
  }
  for (Operation *adder : behind)
    rewriter.eraseOp(adder);
  for (HeadSum &sum : found->sums)
    rewriter.eraseOp(sum.workspace);
  return success();
}

namespace {
// Visits the function, as kernels behind the one that changes go.
struct TileLoopHeads final
    : attn::SchedulePass<attn::tile::impl::TileLoopHeadsBase<TileLoopHeads>,
                         func::FuncOp, TileForm::Flat> {
  using Base::Base;

  bool isWanted(func::FuncOp function) override {
    return !function.isDeclaration();
  }

  void transform(RewriterBase &rewriter, func::FuncOp function) override {
    for (Operation *op = &function.front().front(); op;
         op = op->getNextNode()) {
      auto kernel = dyn_cast<KernelOp>(op);
      if (!kernel)
        continue;
      std::string reason;
      if (succeeded(loopOverHeads(rewriter, kernel, reason)))
        passed(kernel.getLoc());
      else if (!reason.empty())
        missed(reason, kernel.getLoc());
    }
  }
};
} // namespace
