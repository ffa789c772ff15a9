//===- GradientKernelPlans.cpp - plans of the kernels of gradients --------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan has the tiles of d_key and d_value, which are two sums. d_query is one
// sum, and leaves registers for more rows or columns. Some kernels of d_key and
// d_value leave a pass out. Where the plan has more warps than rows for them,
// these share rows of both sums (f32), and other kernels have fewer warps.
//
//===----------------------------------------------------------------------===//

#include "BackwardKernels.h"

#include "attn/Layout/Products.h"
#include "attn/Support/OptionalPasses.h"
#include "attn/Support/RoleRegisters.h"
#include "attn/Support/TargetInfo.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

/// Of mma.sync: a warp has twice as many rows, by half as many columns. Then
/// each key that it reads serves two instructions.
static PlanAttr chooseTallWarps(PlanAttr plan, int64_t dim) {
  constexpr int64_t leastColumns = 64, fewWarps = 4;
  bool isTall = plan.getBlockQ() >= 2 * layout::groupRows * plan.getWarps();
  if (isTall || plan.getBlockK() < leastColumns ||
      plan.getBlockK() % (2 * layout::mmaSync.depth) != 0 ||
      2 * dim > layout::maxSummedColumns)
    return plan;
  bool hasMany = plan.getWarps() > fewWarps;
  return plan.withTiles(plan.getBlockQ() * (hasMany ? 1 : 2),
                        plan.getBlockK() / 2,
                        plan.getWarps() / (hasMany ? 2 : 1), plan.getStages());
}

/// Of wgmma: three warpgroups in place of two, so that two of them multiply
/// while one takes exponentials; and as many columns as they have registers
/// for, at most `mostColumns`. On an H100 with a causal mask, 192 x 96 at d =
/// 64 take 0.87 to 0.9 of the time of 128 x 64, and 192 x 64 at d = 128 0.91 to
/// 0.99.
static PlanAttr chooseThreeGroups(PlanAttr plan, int64_t dim, int64_t valueDim,
                                  int64_t mostColumns,
                                  const TargetInfo &target) {
  constexpr int64_t groups = 3, others = 32, elementBytes = 2, fewColumns = 64;
  constexpr int64_t warps = groups * layout::warpsPerGroup;
  constexpr int64_t rows = groups * layout::groupOfWarpsRows;
  constexpr int64_t rowsOfTwo = 2 * layout::groupOfWarpsRows;
  if (plan.getBlockQ() != rowsOfTwo ||
      plan.getWarps() != 2 * layout::warpsPerGroup || plan.getStages() < 2)
    return plan;
  // A lane has half a row of each: the sum, scores and what goes back to them.
  int64_t columns = shareRegisters(warps).consumer - others - dim / 2;
  columns = std::min(columns - columns % layout::wgmma.depth, mostColumns);
  if (columns < std::min(plan.getBlockK(), fewColumns))
    return plan;
  // q and d_o, keys and values, and d_query on its way out.
  int64_t bytes =
      elementBytes *
      ((rows + plan.getStages() * columns) * (dim + valueDim) + rows * dim);
  constexpr int64_t barrierBytes = 1024;
  if (bytes + barrierBytes > target.sharedBytesPerBlock)
    return plan;
  return plan.withConsumerRegisters(0).withTiles(rows, columns, warps,
                                                 plan.getStages());
}

/// Whether the mask is a conjunction of comparisons of sums of positions.
static bool isBand(Region &mask) {
  return llvm::all_of(mask.front(), [](Operation &op) {
    return isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::CmpIOp,
               arith::AndIOp, YieldOp>(op);
  });
}

/// Whether a score function or a mask leaves three warpgroups the registers for
/// 64 columns. Of an H100, s = 8192, the time of both programs: d = 64 ALiBi
/// 0.92, a captured prefix 0.94, a neighbourhood in two dimensions 0.93,
/// documents 0.98; d = 128 ALiBi and a softcap 0.97. First keys or a window,
/// both behind a causal mask, spill; documents are slower at d = 128.
static bool leavesRegisters(ScoredOp op, bool isBandOrFull, int64_t dim) {
  constexpr int64_t narrow = 64;
  if (op.hasDropout() || (op.hasScore() && !op.getCaptures().empty()))
    return false;
  if (isBandOrFull)
    return true;
  Block &mask = op.getMask().front();
  bool isMixed = !mask.getOps<arith::OrIOp>().empty() &&
                 !mask.getOps<arith::AndIOp>().empty();
  return dim <= narrow && !isMixed;
}

/// Whether rows see all keys, or all up to a distance, or from one on.
static bool isOneSided(ScoredOp op) {
  if (!op.hasMask())
    return true;
  return isBand(op.getMask()) &&
         llvm::hasSingleElement(op.getMask().front().getOps<arith::CmpIOp>());
}

/// Two sums of 128 columns leave no registers for bounds that each warpgroup
/// has for itself, and long rows are worth little by them: plain attention at d
/// = 128, in a fixed order, takes 0.97 to 0.99 of the time without them (of an
/// H100, full from 512 on, causal from 4096 on; at lengths of 400 and 700 up to
/// 1.015, causal at 512 1.009). With a softcap it takes 1.01 to 1.06, at d =
/// 112 without a mask up to 1.23; at 64, 80, 96, 192 and 256 0.99 to 1.03.
PlanAttr BackwardKernels::getKeyPlan() {
  constexpr int64_t dim = 128;
  PlanAttr plan = attention.getPlanAttr();
  const TargetInfo *target = findTarget(stringifyTargetKind(plan.getTarget()));
  PassSelection passes = plan.getPasses();
  bool isMeasured =
      target && target->hasWarpgroups && !element.isF32() && paddedDim == dim &&
      paddedValueDim == dim && passes.runs(OptionalPass::MakeAsync) &&
      !attention.hasScore() && !attention.hasDropout() && isOneSided(attention);
  // Where keys add up gradients of queries, no group has bounds of its own.
  if (!isMeasured || querySums)
    return plan;
  passes.setUse(OptionalPass::GroupBounds, PassUse::Off);
  return plan.withPasses(passes);
}

PlanAttr BackwardKernels::getPlanOfRows() {
  PlanAttr plan = attention.getPlanAttr();
  int64_t groups = layout::chooseGridColumns(plan.getBlockQ(), plan.getWarps());
  if (plan.getTarget() == TargetKind::CPU || groups == 1)
    return plan;
  return plan.withTiles(plan.getBlockQ(), plan.getBlockK(),
                        plan.getWarps() / groups, plan.getStages());
}

/// Of a kernel that has nothing but so many sums of what goes back to captures:
/// what the pullback computes for each column lives beside all of them. 64
/// columns spill 1020 bytes with 6 sums and 5400 to 12400 with 12 to 25, none
/// to 1580 and 600 to 5900 with 32 columns; other tiles of the attention would
/// be sought for that (d = 64, sm_90a).
PlanAttr BackwardKernels::getSumPlan(size_t numSums) {
  constexpr size_t several = 5, many = 9;
  constexpr int64_t fewColumns = 32, fewestColumns = 16;
  PlanAttr plan = getPlanOfRows();
  if (plan.getTarget() == TargetKind::CPU || numSums < several)
    return plan;
  int64_t columns =
      std::min(plan.getBlockK(), numSums < many ? fewColumns : fewestColumns);
  return plan.withTiles(plan.getBlockQ(), columns, plan.getWarps(),
                        plan.getStages());
}

PlanAttr BackwardKernels::getQueryPlan() {
  PlanAttr plan = getPlanOfRows();
  const TargetInfo *target = findTarget(stringifyTargetKind(plan.getTarget()));
  if (!target || target->sm == 0 || element.isF32())
    return plan;
  if (!target->hasWarpgroups)
    return chooseTallWarps(plan, paddedDim);
  bool isBandOrFull = !attention.hasMask() || isBand(attention.getMask());
  if (isBandOrFull && !attention.hasScore() && !attention.hasDropout())
    return chooseThreeGroups(plan, paddedDim, paddedValueDim,
                             /*mostColumns=*/96, *target);
  // What others take is not known here: on top of 96 columns it would spill.
  if (!leavesRegisters(attention, isBandOrFull, paddedDim))
    return plan;
  return chooseThreeGroups(plan, paddedDim, paddedValueDim, /*mostColumns=*/64,
                           *target);
}
