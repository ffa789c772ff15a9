//===- Tile.cpp - the pipeline from attention to a tile kernel -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Pipelines/Tile.h"

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Tile/Transforms/Passes.h"
#include "attn/Pipelines/KernelList.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace attn;

void attn::buildExpandPipeline(OpPassManager &manager) {
  manager.addPass(createAttnExpandVariantsPass());
  manager.addPass(createAttnExpandMathPass());
  manager.addPass(createAttnSimplifyPass());
}

void attn::buildPlanPipeline(OpPassManager &manager,
                             const plan::AttnPlanOptions &options) {
  buildExpandPipeline(manager);
  manager.addPass(plan::createAttnPlan(options));
}

void attn::buildTileSchedulePipeline(OpPassManager &functions,
                                     const PassSelection &passes) {
  auto add = [&](OptionalPass pass, std::unique_ptr<Pass> (*create)()) {
    if (passes.runs(pass))
      functions.addPass(create());
  };
  add(OptionalPass::OrderBlocks, tile::createTileOrderBlocks);
  add(OptionalPass::ListBlocks, tile::createTileListBlocks);
  if (passes.runs(OptionalPass::PeelMasks))
    functions.addPass(tile::createTilePeelMasks(
        {passes.getUse(OptionalPass::PeelMasks) == PassUse::Selective}));
  add(OptionalPass::PeelScores, tile::createTilePeelScores);
  add(OptionalPass::HideFaint, tile::createTileHideFaint);
  functions.addPass(tile::createTileShareBlocks());
  add(OptionalPass::GroupBounds, tile::createTileGroupBounds);
  add(OptionalPass::KeysToRanges, tile::createTileKeysToRanges);
  add(OptionalPass::ReverseKeys, tile::createTileReverseKeys);
  add(OptionalPass::FoldExp2, tile::createTileFoldExp2);
  add(OptionalPass::OverlapProducts, tile::createTileOverlapProducts);
  functions.addPass(tile::createTileExpandScores());
  // It works on exponentials that are folded.
  if (passes.runs(OptionalPass::FoldExp2))
    add(OptionalPass::LazyMax, tile::createTileLazyMax);
  functions.addPass(tile::createTileExpandSoftmax());
  add(OptionalPass::MergeFactors, tile::createTileMergeFactors);
  add(OptionalPass::LoopHeads, tile::createTileLoopHeads);
}

void attn::buildAttnToTilePipeline(OpPassManager &manager, StringRef target,
                                   const TileOptions &options,
                                   const PassSelection &passes) {
  plan::AttnPlanOptions plan;
  plan.target = target.str();
  plan.planText = options.plan;
  plan.results = options.results;
  plan.gpu = options.gpu;
  plan.fixed = true;
  auto [without, with] = passes.changesFrom(PassSelection(target));
  for (OptionalPass pass : without)
    plan.without.emplace_back(optionalPasses[size_t(pass)].name);
  for (OptionalPass pass : with)
    plan.with.emplace_back(optionalPasses[size_t(pass)].name);
  buildPlanPipeline(manager, plan);
  manager.addPass(createAttnRecomputePass());
  manager.addPass(createConvertAttnToTile());
  buildTileSchedulePipeline(manager.nest<func::FuncOp>(), passes);
}

PassSelection TileOptions::selection(StringRef target) const {
  PassSelection passes(target);
  tilePasses.apply(passes);
  return passes;
}

LogicalResult attn::runSchedules(ModuleOp module, PipelineRunner run,
                                 ScheduleBuilder build) {
  for (auto function : module.getOps<func::FuncOp>())
    if (PlanAttr plan = findPlan(function))
      if (failed(run(function, [&](OpPassManager &functions) {
            build(functions, plan.getPasses());
          })))
        return failure();
  return success();
}

LogicalResult attn::lowerPlannedToTile(ModuleOp module, PipelineRunner run) {
  return success(
      succeeded(run(module,
                    [](OpPassManager &manager) {
                      manager.addPass(createAttnRecomputePass());
                      manager.addPass(createConvertAttnToTile());
                    })) &&
      succeeded(runSchedules(module, run, buildTileSchedulePipeline)));
}

void attn::registerTilePipelines() {
  PassPipelineRegistration<TileOptions>(
      "attn-to-tile", "Attention on tensors to a tile kernel on memrefs",
      [](OpPassManager &manager, const TileOptions &options) {
        buildAttnToTilePipeline(manager, options.target, options,
                                options.selection(options.target));
      });
}
