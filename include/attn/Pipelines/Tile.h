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

#include "attn/Support/LLVM.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace attn {

struct TileOptions : public PassPipelineOptions<TileOptions> {
  TileOptions() = default;
  TileOptions(const TileOptions &other) : PassPipelineOptions() {
    copyOptionValuesFrom(other);
  }
  TileOptions &operator=(const TileOptions &other) {
    copyOptionValuesFrom(other);
    return *this;
  }

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
  Option<bool> orderBlocks{*this, "order-blocks",
                           llvm::cl::desc("run tile-order-blocks"),
                           llvm::cl::init(true)};
  Option<bool> listBlocks{*this, "list-blocks",
                          llvm::cl::desc("run tile-list-blocks"),
                          llvm::cl::init(true)};
  Option<bool> peelMasks{*this, "peel-masks",
                         llvm::cl::desc("run tile-peel-masks"),
                         llvm::cl::init(true)};
  Option<bool> groupBounds{*this, "group-bounds",
                           llvm::cl::desc("run tile-group-bounds"),
                           llvm::cl::init(false)};
  Option<bool> keysToRanges{*this, "keys-to-ranges",
                            llvm::cl::desc("run tile-keys-to-ranges"),
                            llvm::cl::init(true)};
  Option<bool> reverseKeys{*this, "reverse-keys",
                           llvm::cl::desc("run tile-reverse-keys"),
                           llvm::cl::init(false)};
  Option<bool> overlapProducts{*this, "overlap-products",
                               llvm::cl::desc("run tile-overlap-products"),
                               llvm::cl::init(false)};
  Option<bool> lazyMax{*this, "lazy-max", llvm::cl::desc("run tile-lazy-max"),
                       llvm::cl::init(false)};
  Option<bool> foldExp2{*this, "fold-exp2",
                        llvm::cl::desc("run tile-fold-exp2"),
                        llvm::cl::init(true)};
};

/// `attn-to-tile`: attention on tensors to a tile kernel with its softmax
/// expanded, ready for either way out of the room.
void buildAttnToTilePipeline(OpPassManager &manager,
                             const TileOptions &options);

/// Registers the pipelines of this file by name.
void registerTilePipelines();

} // namespace attn

#endif // ATTN_PIPELINES_TILE_H
