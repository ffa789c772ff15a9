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
// fragment. (Products of l with a number of the row are linear, too.)
//
// Where a step keeps the old maximum unless a row sum reaches a limit (see
// tile-lazy-max), each lane compares its own part: no weight is above the part
// that it is in, so below the limit none is above the limit.
//
// Starting from a carried value we collect everything that must become partial
// with it: what it is computed from, down to zeros and row sums, and what is
// computed from it, up to votes and the results of loops, whose other users get
// the total. If anything else is on the way the sum stays as it is.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
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

static bool isZeroSplat(Value value) {
  auto splat = value.getDefiningOp<SplatOp>();
  return splat && matchPattern(splat.getScalar(), m_AnyZeroFloat());
}

/// A sum over whole rows, Mx1.
static bool isRowSum(Operation *op) {
  auto reduce = dyn_cast_or_null<ReduceOp>(op);
  return reduce && reduce.getKind() == ReduceKind::Add &&
         reduce.getResult().getType().getShape()[1] == 1 &&
         reduce.getValue().getType().getShape()[1] != layout::laneColumns;
}

static FragType getLaneType(Type type) {
  auto frag = cast<FragType>(type);
  return FragType::get(frag.getContext(),
                       {frag.getShape()[0], layout::laneColumns},
                       frag.getElementType(), frag.getKind(), frag.getWarps());
}

//===----------------------------------------------------------------------===//
// Match
//===----------------------------------------------------------------------===//

namespace {
/// The values that become partial sums together, and the comparisons of them.
struct PartialSums {
  SetVector<Value> values;
  SetVector<Operation *> compares;

  /// Adds a value and all that it draws in.
  bool add(Value value);

private:
  bool addProducer(Value value);
  bool addUse(OpOperand &use);
  bool addUser(OpOperand &use);
  bool addCompare(arith::CmpFOp compare, Value value);
};
} // namespace

bool PartialSums::add(Value value) {
  if (!values.insert(value))
    return true;
  auto frag = dyn_cast<FragType>(value.getType());
  if (!frag || frag.getShape()[1] != 1 || !frag.getElementType().isF32())
    return false;
  return addProducer(value) &&
         llvm::all_of(value.getUses(),
                      [&](OpOperand &use) { return addUse(use); });
}

/// A zero is made again, per lane; everything else is drawn in.
bool PartialSums::addProducer(Value value) {
  auto addOperand = [&](Value operand) {
    return isZeroSplat(operand) || add(operand);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && addOperand(loop.getTiedLoopInit(argument)->get()) &&
           addOperand(loop.getTiedLoopYieldedValue(argument)->get()) &&
           add(loop.getTiedLoopResult(argument));
  }
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  if (auto step = dyn_cast<math::FmaOp>(op))
    return addOperand(step.getA()) && addOperand(step.getC());
  if (auto step = dyn_cast<arith::AddFOp>(op))
    return addOperand(step.getLhs()) && addOperand(step.getRhs());
  if (auto product = dyn_cast<arith::MulFOp>(op))
    return addOperand(product.getLhs());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return add(loop.getTiedLoopRegionIterArg(result));
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return addOperand(
               branch.thenYield().getOperand(result.getResultNumber())) &&
           addOperand(branch.elseYield().getOperand(result.getResultNumber()));
  return isRowSum(op);
}

/// value >= limit, asked of the whole tile.
bool PartialSums::addCompare(arith::CmpFOp compare, Value value) {
  using arith::CmpFPredicate;
  bool isLimit = llvm::is_contained({CmpFPredicate::UGE, CmpFPredicate::UGT,
                                     CmpFPredicate::OGE, CmpFPredicate::OGT},
                                    compare.getPredicate()) &&
                 compare.getLhs() == value &&
                 compare.getRhs().getDefiningOp<SplatOp>();
  bool isVote = llvm::all_of(compare->getUsers(), llvm::IsaPred<AnyOp>);
  if (isLimit && isVote)
    compares.insert(compare);
  return isLimit && isVote;
}

/// After a loop there may always be the total.
bool PartialSums::addUse(OpOperand &use) {
  if (!use.get().getDefiningOp<scf::ForOp>())
    return addUser(use);
  PartialSums before = *this;
  if (!addUser(use))
    *this = before;
  return true;
}

bool PartialSums::addUser(OpOperand &use) {
  Operation *user = use.getOwner();
  Value value = use.get();
  if (auto step = dyn_cast<math::FmaOp>(user))
    return step.getB() != value && add(step.getResult());
  if (isa<arith::AddFOp>(user))
    return add(user->getResult(0));
  if (auto product = dyn_cast<arith::MulFOp>(user))
    return product.getRhs() != value && add(product.getResult());
  if (auto compare = dyn_cast<arith::CmpFOp>(user))
    return addCompare(compare, value);
  if (auto loop = dyn_cast<scf::ForOp>(user))
    return add(loop.getTiedLoopRegionIterArg(&use));
  if (!isa<scf::YieldOp>(user))
    return false;
  if (auto branch = dyn_cast<scf::IfOp>(user->getParentOp()))
    return add(branch.getResult(use.getOperandNumber()));
  auto loop = dyn_cast<scf::ForOp>(user->getParentOp());
  return loop && add(loop.getRegionIterArg(use.getOperandNumber()));
}

//===----------------------------------------------------------------------===//
// Build
//===----------------------------------------------------------------------===//

/// A slice of one value per row, for each lane.
static Value createLanes(RewriterBase &rewriter, Operation *before,
                         Value rows) {
  rewriter.setInsertionPoint(before);
  FragType lanes = getLaneType(rows.getType());
  if (auto splat = rows.getDefiningOp<SplatOp>())
    return SplatOp::create(rewriter, rows.getLoc(), lanes, splat.getScalar());
  return BroadcastOp::create(rewriter, rows.getLoc(), lanes, rows);
}

static bool isUseOfPartial(OpOperand &use, const PartialSums &sums) {
  Operation *user = use.getOwner();
  if (isa<math::FmaOp, arith::AddFOp, arith::MulFOp>(user))
    return sums.values.contains(user->getResult(0));
  if (isa<arith::CmpFOp>(user))
    return sums.compares.contains(user);
  if (auto loop = dyn_cast<scf::ForOp>(user))
    return sums.values.contains(loop.getTiedLoopRegionIterArg(&use));
  if (!isa<scf::YieldOp>(user))
    return false;
  if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
    return sums.values.contains(loop.getRegionIterArg(use.getOperandNumber()));
  return sums.values.contains(
      user->getParentOp()->getResult(use.getOperandNumber()));
}

/// Users of a loop's result that want the total get it.
static void finishTotal(RewriterBase &rewriter, OpResult result,
                        const PartialSums &sums) {
  SmallVector<OpOperand *> totals;
  for (OpOperand &use : result.getUses())
    if (!isUseOfPartial(use, sums))
      totals.push_back(&use);
  if (totals.empty())
    return;
  rewriter.setInsertionPointAfter(result.getOwner());
  Value total = ReduceOp::create(rewriter, result.getLoc(), result.getType(),
                                 ReduceKind::Add, result);
  for (OpOperand *use : totals)
    rewriter.modifyOpInPlace(use->getOwner(), [&] { use->set(total); });
}

/// The operand of an operation per lane, if it is not partial itself.
static void stretchOperand(RewriterBase &rewriter, OpOperand &operand,
                           Operation *before, const PartialSums &sums) {
  if (sums.values.contains(operand.get()))
    return;
  Value lanes = createLanes(rewriter, before, operand.get());
  rewriter.modifyOpInPlace(operand.getOwner(), [&] { operand.set(lanes); });
}

/// The operands from which a partial value comes.
static void stretchOperands(RewriterBase &rewriter, Value value,
                            const PartialSums &sums) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = cast<scf::ForOp>(argument.getOwner()->getParentOp());
    OpOperand *init = loop.getTiedLoopInit(argument);
    OpOperand *yielded = loop.getTiedLoopYieldedValue(argument);
    stretchOperand(rewriter, *init, loop, sums);
    stretchOperand(rewriter, *yielded, yielded->getOwner(), sums);
    return;
  }
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  if (isa<math::FmaOp, arith::AddFOp, arith::MulFOp>(op))
    for (OpOperand &operand : op->getOpOperands())
      stretchOperand(rewriter, operand, op, sums);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
      stretchOperand(rewriter, yield->getOpOperand(result.getResultNumber()),
                     yield, sums);
}

static void makePartial(RewriterBase &rewriter, const PartialSums &sums) {
  for (Value value : sums.values)
    if (value.getDefiningOp<scf::ForOp>())
      finishTotal(rewriter, cast<OpResult>(value), sums);
  for (Value value : sums.values)
    stretchOperands(rewriter, value, sums);
  for (Operation *compare : sums.compares) {
    stretchOperand(rewriter, compare->getOpOperand(1), compare, sums);
    rewriter.modifyOpInPlace(compare, [&] {
      compare->getResult(0).setType(
          getLaneType(compare->getResult(0).getType()));
    });
  }
  for (Value value : sums.values)
    value.setType(getLaneType(value.getType()));
}

int64_t attn::warp::deferRowSums(RewriterBase &rewriter, KernelOp kernel,
                                 std::string &reason) {
  SmallVector<BlockArgument> carried;
  kernel.walk([&](scf::ForOp loop) {
    llvm::append_range(carried, loop.getRegionIterArgs());
  });
  int64_t deferred = 0;
  for (BlockArgument argument : carried) {
    PartialSums sums;
    bool drawsRowSum =
        sums.add(argument) && llvm::any_of(sums.values, [](Value value) {
          return isRowSum(value.getDefiningOp());
        });
    if (!drawsRowSum)
      continue;
    makePartial(rewriter, sums);
    ++deferred;
  }
  if (deferred == 0)
    reason =
        "no loop carries a row sum that starts at zero and is added to only";
  return deferred;
}

namespace {
struct WarpDeferSum final
    : attn::SchedulePass<attn::warp::impl::WarpDeferSumBase<WarpDeferSum>,
                         KernelOp, WarpForm::Sync> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("sums", deferRowSums(rewriter, kernel, reason), reason);
  }
};
} // namespace
