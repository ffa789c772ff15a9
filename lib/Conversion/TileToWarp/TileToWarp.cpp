//===- TileToWarp.cpp - tile kernels to warp kernels ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlatForm.h"
#include "Patterns.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/Analysis/TileForms.h"
#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Descriptors.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTTILETOWARP
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

warp::FragType attn::getAccType(VectorType type, PlanAttr plan) {
  layout::Fragment fragment = spread(type, plan);
  return warp::FragType::get(type.getContext(),
                             {fragment.rows, fragment.columns},
                             type.getElementType(), warp::FragKind::Acc,
                             fragment.warps, fragment.gridColumns);
}

FragmentConverter::FragmentConverter(PlanAttr plan) {
  addConversion([](Type type) { return type; });
  addConversion([plan](VectorType type) -> Type {
    // The tiles of slots, which the contract pattern looks through, need not be
    // fragments; `matchFlatKernel` has checked all others.
    if (!spread(type, plan).check().empty())
      return type;
    return getAccType(type, plan);
  });
}

/// What the plan says, or null where it leaves it to the passes.
static warp::SchedulerAttr getScheduler(PlanAttr plan) {
  std::optional<warp::Scheduler> scheduler =
      warp::symbolizeScheduler(stringifySchedulerKind(plan.getScheduler()));
  return scheduler ? warp::SchedulerAttr::get(plan.getContext(), *scheduler)
                   : warp::SchedulerAttr();
}

/// tile.kernel (b, h, x) -> warp.kernel blocks(x, h, b): the query block varies
/// fastest.
static warp::KernelOp buildKernel(RewriterBase &rewriter, tile::KernelOp grid) {
  Location loc = grid.getLoc();
  PlanAttr plan = grid.getPlan();
  IntegerAttr registers, blocksPerSM;
  if (plan.getBlocksPerSm() != 1)
    blocksPerSM = rewriter.getI64IntegerAttr(plan.getBlocksPerSm());
  if (plan.getConsumerRegisters() != 0)
    registers = rewriter.getI64IntegerAttr(plan.getConsumerRegisters());
  rewriter.setInsertionPoint(grid);
  auto kernel = warp::KernelOp::create(
      rewriter, loc, grid.getSymNameAttr(), grid.getBlocks(), grid.getHeads(),
      grid.getBatches(), rewriter.getI64IntegerAttr(plan.getWarps()),
      rewriter.getI64IntegerAttr(plan.getStages()),
      /*sharedBytes=*/nullptr, /*resident=*/nullptr, getScheduler(plan),
      registers, blocksPerSM, grid.getIndependentAttr(), /*start=*/nullptr);
  Type index = rewriter.getIndexType();
  Block *body = rewriter.createBlock(&kernel.getBody(), {},
                                     {index, index, index}, {loc, loc, loc});
  warp::YieldOp::create(rewriter, loc);
  rewriter.eraseOp(grid.getTerminator());
  rewriter.inlineBlockBefore(
      grid.getBody(), body->getTerminator(),
      {body->getArgument(2), body->getArgument(1), body->getArgument(0)});
  rewriter.eraseOp(grid);
  return kernel;
}

/// Vector constants before the kernel move into the kernel.
static void sinkConstants(RewriterBase &rewriter, warp::KernelOp kernel) {
  llvm::MapVector<Operation *, SmallVector<OpOperand *>> outside;
  kernel.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *def = operand.get().getDefiningOp();
      if (def && isa<VectorType>(operand.get().getType()) &&
          !kernel->isAncestor(def))
        outside[def].push_back(&operand);
    }
  });
  rewriter.setInsertionPointToStart(kernel.getBodyBlock());
  for (auto &[def, uses] : outside) {
    Value inside = rewriter.clone(*def)->getResult(0);
    for (OpOperand *use : uses)
      rewriter.modifyOpInPlace(use->getOwner(), [&] { use->set(inside); });
  }
}

/// Groups of warps are those of the rows if each has as many.
static void convertGroups(RewriterBase &rewriter, warp::KernelOp kernel,
                          PlanAttr plan, const TargetInfo &target) {
  int64_t groups = plan.getWarps() / layout::warpsPerGroup;
  bool hasGroups = target.hasWarpgroups && groups > 1;
  SmallVector<tile::GroupBoundsOp> ops;
  kernel.walk([&](tile::GroupBoundsOp op) { ops.push_back(op); });
  for (tile::GroupBoundsOp op : ops)
    hasGroups &=
        static_cast<int64_t>(op.getRows()) * groups == plan.getBlockQ();
  for (tile::GroupBoundsOp op : ops) {
    if (!hasGroups) {
      rewriter.replaceOp(op, op.getBounds());
      continue;
    }
    // What all groups have in common is computed once.
    for (Operation &inner :
         llvm::make_early_inc_range(op.getOwn().front().without_terminator()))
      if (llvm::none_of(inner.getOperands(), [&](Value operand) {
            return operand.getParentRegion() == &op.getOwn();
          }))
        rewriter.moveOpBefore(&inner, op);
    rewriter.setInsertionPoint(op);
    auto bounds = warp::GroupBoundsOp::create(rewriter, op.getLoc(),
                                              op.getBounds(), op.getRows());
    rewriter.inlineRegionBefore(op.getOwn(), bounds.getOwn(),
                                bounds.getOwn().begin());
    Operation *yield = bounds.getOwn().front().getTerminator();
    rewriter.setInsertionPoint(yield);
    rewriter.replaceOpWithNewOp<warp::YieldOp>(yield, yield->getOperands());
    rewriter.replaceOp(op, bounds);
  }
}

/// The conversion leaves no vector; casts of `placeSlots` are dead then.
static LogicalResult convertVectors(warp::KernelOp kernel, PlanAttr plan,
                                    AtomChoice choice) {
  MLIRContext *context = kernel.getContext();
  FragmentConverter converter(plan);
  ConversionTarget target(*context);
  RewritePatternSet patterns(context);
  target.markUnknownOpDynamicallyLegal(
      [&](Operation *op) { return converter.isLegal(op); });
  target.addLegalOp<UnrealizedConversionCastOp>();
  // Of scalars, too.
  target.addIllegalOp<tile::SearchOp, tile::ExitIfOp, tile::StoreBinsOp>();
  populateElementwisePatterns(converter, patterns);
  populateReductionPatterns(converter, patterns);
  populateContractPatterns(converter, patterns, choice);
  populateMemoryPatterns(converter, patterns);
  populateBinPatterns(converter, patterns);
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  ConversionConfig config;
  config.allowPatternRollback = false;
  config.foldingMode = DialectConversionFoldingMode::Never;
  return applyFullConversion(kernel, target, std::move(patterns), config);
}

/// Casts of `placeSlots`, neutral accumulators and their like.
static void eraseDeadOps(RewriterBase &rewriter, warp::KernelOp kernel) {
  SmallVector<Operation *> ops;
  kernel.getBody().walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (op->getNumRegions() == 0 && isOpTriviallyDead(op))
      rewriter.eraseOp(op);
}

namespace {
struct ConvertTileToWarp final
    : attn::impl::ConvertTileToWarpBase<ConvertTileToWarp> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(
            requireForm(getOperation(), tile::TileForm::Flat, getArgument())))
      return signalPassFailure();
    SmallVector<FlatKernel> kernels;
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      FailureOr<FlatKernel> flat = matchFlatKernel(kernel);
      if (failed(flat))
        return signalPassFailure();
      kernels.push_back(*flat);
    }
    IRRewriter rewriter(&getContext());
    for (const FlatKernel &flat : kernels)
      if (failed(convert(rewriter, flat)))
        return signalPassFailure();
  }

private:
  static LogicalResult convert(RewriterBase &rewriter, FlatKernel flat) {
    PlanAttr plan = flat.kernel.getPlan();
    warp::KernelOp kernel = buildKernel(rewriter, flat.kernel);
    sinkConstants(rewriter, kernel);
    convertGroups(rewriter, kernel, plan, flat.target);
    AtomChoice choice{flat.target, flat.ieee};
    convertRowProducts(rewriter, kernel);
    if (flat.target.hasWarpgroups)
      stageGathers(rewriter, kernel, choice,
                   plan.getBlocksPerSm() == 1
                       ? flat.target.sharedBytesPerBlock
                       : flat.target.sharedBytesPerSM / plan.getBlocksPerSm() -
                             flat.target.sharedBytesReserved);
    placeSlots(rewriter, kernel, plan, choice);
    placeBins(rewriter, kernel);
    if (failed(convertVectors(kernel, plan, choice)))
      return failure();
    eraseDeadOps(rewriter, kernel);
    return success();
  }
};
} // namespace
