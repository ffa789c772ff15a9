//===- RegionCost.cpp - regions that can be compiled ----------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU the code of a region stands in the kernel once for each score that a
// lane holds, 64 times for a tile of 128 by 64 and four warps, in up to three
// loops: with many hundreds of operations MLIR and LLVM take minutes. On the
// CPU it stands there once in each loop.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// Of all elements that a lane holds; of one.
static constexpr int64_t maxCostOfLane = 512 * 64, maxCostOnCPU = 8192;
/// What has no instruction of its own, and reads of memory with their bounds.
static constexpr int64_t costOfFunction = 20, costOfRead = 8;
static constexpr int64_t lanesOfWarp = 32;

static int64_t costOf(Operation &op) {
  if (op.hasTrait<OpTrait::ConstantLike>() || isa<YieldOp>(op))
    return 0;
  if (isa<CaptureLoadOp, CaptureSearchOp, arith::DivSIOp, arith::DivUIOp,
          arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
    return costOfRead;
  bool isInstruction =
      !isa_and_nonnull<math::MathDialect>(op.getDialect()) ||
      isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp,
          math::RoundEvenOp, math::TruncOp, math::CopySignOp, math::FmaOp,
          math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::SqrtOp,
          math::RsqrtOp>(op);
  return isInstruction ? 1 : costOfFunction;
}

LogicalResult attn::checkRegionCost(ScoredOp op) {
  int64_t cost = 0;
  for (Region *region : {&op.getScore(), &op.getMask()})
    for (Operation &inner : region->getOps())
      cost += costOf(inner);
  PlanAttr plan = op.getPlanAttr();
  bool isCPU = plan.getTarget() == TargetKind::CPU;
  int64_t elements = llvm::divideCeil(plan.getBlockQ() * plan.getBlockK(),
                                      plan.getWarps() * lanesOfWarp);
  int64_t most = isCPU ? maxCostOnCPU : maxCostOfLane / elements;
  if (cost <= most)
    return success();
  InFlightDiagnostic error = op.emitOpError("has score and mask regions of ")
                             << cost << " operations, wanted at most " << most
                             << " on " << stringifyTargetKind(plan.getTarget());
  if (!isCPU)
    error << " where a lane holds " << elements << " scores";
  return error << " (reads of captures and divisions count for " << costOfRead
               << ", functions without an instruction for " << costOfFunction
               << ")";
}
