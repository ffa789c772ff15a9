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
#include "attn/Support/LLVM.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

#include <limits>
#include <string>

namespace attn {

/// What is built on the way from attention to a tile kernel.
struct TileSchedule {
  explicit TileSchedule(StringRef target)
      : target(target.str()), passes(target) {}

  /// What the plan is made for: cpu, sm_80 or sm_90a.
  std::string target;
  /// As in IR, `#attn.plan<…>`; empty: the operation's own, else the best one
  /// known.
  std::string plan;
  /// A file of measured plans, for operations without a plan; empty: none.
  std::string results;
  /// The GPU whose measured plans are taken, by its name; empty: none.
  std::string gpu;
  PassSelection passes;
};

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

  /// What the options say, for a pipeline that may know its target.
  TileSchedule schedule(StringRef target) const;
};

/// Attention on tensors, with regions and simplified.
void buildExpandPipeline(OpPassManager &manager);

/// The same, and with its plan.
void buildPlanPipeline(OpPassManager &manager, const TileSchedule &schedule);

/// Attention with its plan to a tile kernel, as `attn-to-tile`.
void buildPlannedToTilePipeline(OpPassManager &manager,
                                const TileSchedule &schedule);

/// `attn-to-tile`: attention on tensors to a tile kernel with its softmax
/// expanded, ready for either way out of the room.
void buildAttnToTilePipeline(OpPassManager &manager,
                             const TileSchedule &schedule);

/// Registers the pipelines of this file by name.
void registerTilePipelines();

} // namespace attn

#endif // ATTN_PIPELINES_TILE_H
