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
#include "attn/Plan/Passes.h"
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
                             const TileSchedule &schedule) {
  buildExpandPipeline(manager);
  plan::AttnPlanOptions plan;
  plan.target = schedule.target;
  plan.planText = schedule.plan;
  plan.results = schedule.results;
  plan.gpu = schedule.gpu;
  manager.addPass(plan::createAttnPlan(plan));
}

void attn::buildPlannedToTilePipeline(OpPassManager &manager,
                                      const TileSchedule &schedule) {
  manager.addPass(createConvertAttnToTile());
  auto add = [&](OptionalPass pass, std::unique_ptr<Pass> (*create)()) {
    if (schedule.passes.runs(pass))
      manager.addNestedPass<func::FuncOp>(create());
  };
  add(OptionalPass::OrderBlocks, tile::createTileOrderBlocks);
  add(OptionalPass::ListBlocks, tile::createTileListBlocks);
  add(OptionalPass::PeelMasks, tile::createTilePeelMasks);
  add(OptionalPass::GroupBounds, tile::createTileGroupBounds);
  add(OptionalPass::KeysToRanges, tile::createTileKeysToRanges);
  add(OptionalPass::ReverseKeys, tile::createTileReverseKeys);
  add(OptionalPass::FoldExp2, tile::createTileFoldExp2);
  manager.addNestedPass<func::FuncOp>(tile::createTileExpandScores());
  add(OptionalPass::OverlapProducts, tile::createTileOverlapProducts);
  // It works on exponentials that are folded.
  if (schedule.passes.runs(OptionalPass::FoldExp2))
    add(OptionalPass::LazyMax, tile::createTileLazyMax);
  manager.addNestedPass<func::FuncOp>(tile::createTileExpandSoftmax());
}

void attn::buildAttnToTilePipeline(OpPassManager &manager,
                                   const TileSchedule &schedule) {
  buildPlanPipeline(manager, schedule);
  buildPlannedToTilePipeline(manager, schedule);
}

TileSchedule TileOptions::schedule(StringRef target) const {
  TileSchedule schedule(target);
  schedule.plan = plan.getValue();
  schedule.results = results.getValue();
  schedule.gpu = gpu.getValue();
  tilePasses.apply(schedule.passes);
  return schedule;
}

void attn::registerTilePipelines() {
  PassPipelineRegistration<TileOptions>(
      "attn-to-tile", "Attention on tensors to a tile kernel on memrefs",
      [](OpPassManager &manager, const TileOptions &options) {
        buildAttnToTilePipeline(manager,
                                options.schedule(options.target.getValue()));
      });
}
