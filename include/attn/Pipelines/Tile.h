//===- Tile.h - the pipeline from attention to a tile kernel -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_TILE_H
#define ATTN_PIPELINES_TILE_H

#include "attn/Pipelines/PassSelection.h"
#include "attn/Plan/Passes.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <limits>
#include <string>

namespace attn {

struct TileOptions : public PassPipelineOptions<TileOptions> {
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("what the plan is made for: cpu, sm_80 or sm_90a"),
      llvm::cl::init("sm_80")};
  Option<std::string> plan{
      *this, "plan",
      llvm::cl::desc("the plan, as in IR (#attn.plan<...>); empty: the plan "
                     "the operation has, or the heuristic's"),
      llvm::cl::init("")};
  Option<std::string> results{
      *this, "results",
      llvm::cl::desc("file of measured plans, for operations without a plan"),
      llvm::cl::init("")};
  Option<std::string> gpu{
      *this, "gpu",
      llvm::cl::desc("the GPU whose measured plans are taken, by its name"),
      llvm::cl::init("")};
  PassSwitches tilePasses{*this, "tile", std::numeric_limits<int64_t>::max()};

  /// The passes of a pipeline that may know its target.
  PassSelection selection(StringRef target) const;
};

/// Attention on tensors, with regions and simplified.
void buildExpandPipeline(OpPassManager &manager);

/// The same, and with its plan.
void buildPlanPipeline(OpPassManager &manager,
                       const plan::AttnPlanOptions &options);

/// A tile kernel of `convert-attn-to-tile`, with these passes and its softmax
/// expanded, ready for either way out of the room.
void buildTileSchedulePipeline(OpPassManager &functions,
                               const PassSelection &passes);

/// `attn-to-tile`: attention on tensors to a tile kernel, with these passes,
/// whatever plan an operation may have.
void buildAttnToTilePipeline(OpPassManager &manager, StringRef target,
                             const TileOptions &options,
                             const PassSelection &passes);

/// Runs a pipeline on an operation.
using PipelineRunner = function_ref<LogicalResult(
    Operation *, function_ref<void(OpPassManager &)>)>;

/// Builds a pipeline on functions of those optional passes.
using ScheduleBuilder =
    function_ref<void(OpPassManager &, const PassSelection &)>;

/// Runs a pipeline on each function that has a plan, with its passes.
LogicalResult runSchedules(ModuleOp module, PipelineRunner run,
                           ScheduleBuilder build);

/// The same as `attn-to-tile`, for attention that has its plan.
LogicalResult lowerPlannedToTile(ModuleOp module, PipelineRunner run);

/// Registers the pipelines of this file by name.
void registerTilePipelines();

} // namespace attn

#endif // ATTN_PIPELINES_TILE_H
