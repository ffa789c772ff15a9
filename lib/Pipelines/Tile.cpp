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

void attn::buildAttnToTilePipeline(OpPassManager &manager,
                                   const TileOptions &options) {
  manager.addPass(createAttnExpandVariantsPass());
  manager.addPass(createAttnExpandMathPass());
  manager.addPass(createAttnSimplifyPass());
  plan::AttnPlanOptions plan;
  plan.target = options.target;
  plan.planText = options.plan;
  plan.results = options.results;
  plan.gpu = options.gpu;
  manager.addPass(plan::createAttnPlan(plan));
  manager.addPass(createConvertAttnToTile());
  manager.addNestedPass<func::FuncOp>(tile::createTileExpandScores());
  if (options.orderBlocks)
    manager.addNestedPass<func::FuncOp>(tile::createTileOrderBlocks());
  if (options.listBlocks)
    manager.addNestedPass<func::FuncOp>(tile::createTileListBlocks());
  if (options.peelMasks)
    manager.addNestedPass<func::FuncOp>(tile::createTilePeelMasks());
  if (options.groupBounds)
    manager.addNestedPass<func::FuncOp>(tile::createTileGroupBounds());
  if (options.keysToRanges)
    manager.addNestedPass<func::FuncOp>(tile::createTileKeysToRanges());
  if (options.reverseKeys)
    manager.addNestedPass<func::FuncOp>(tile::createTileReverseKeys());
  if (options.foldExp2)
    manager.addNestedPass<func::FuncOp>(tile::createTileFoldExp2());
  if (options.overlapProducts)
    manager.addNestedPass<func::FuncOp>(tile::createTileOverlapProducts());
  if (options.lazyMax)
    manager.addNestedPass<func::FuncOp>(tile::createTileLazyMax());
  manager.addNestedPass<func::FuncOp>(tile::createTileExpandSoftmax());
}

void attn::registerTilePipelines() {
  PassPipelineRegistration<TileOptions>(
      "attn-to-tile", "Attention on tensors to a tile kernel on memrefs",
      buildAttnToTilePipeline);
}
