//===- KeyLoops.h - the loops over blocks of a kernel --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a tile program that go through blocks: of keys where the tile is
// one of queries, and of queries where the tile is one of keys. Rows are those
// of the tile, columns those of the block, in both.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_KEYLOOPS_H
#define ATTN_DIALECT_TILE_ANALYSIS_KEYLOOPS_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/BlockLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace attn::tile {

/// True for a loop whose body works on a block that its induction variable
/// chooses: it loads a tile there, or asks for the coordinates.
bool isLoopOverBlocks(scf::ForOp loop);

/// The loops over blocks that stand directly in `block`; says in `reason` why
/// there is none, or why they are no chain.
FailureOr<BlockLoops> matchKeyLoops(Block *block, std::string &reason);

/// All loops over blocks under `root`, in order.
SmallVector<scf::ForOp> findLoopsOverBlocks(Operation *root);

/// The rows of the tile that `loops` multiply with their blocks; 0 where there
/// is no such product.
int64_t getNumTileRows(const BlockLoops &loops);

/// The softmax that takes what `op` gives, or null.
OnlineSoftmaxOp findSoftmax(ScoresOp op);

/// The softmax of the step in `loop`, or null.
OnlineSoftmaxOp findSoftmax(scf::ForOp loop);

/// What a loop over blocks does with the softmax of its step.
struct SoftmaxStep {
  OnlineSoftmaxOp softmax;
  Operation *rounding = nullptr; // of the weights, or null
  Operation *dropping = nullptr; // where dropout keeps them, or null
  Value weights;                 // rounded, and those that are kept
  vector::BroadcastOp stretched; // the correction, which goes nowhere else
  arith::MulFOp rescaled;        // output * stretched

  Value getOutput() { return rescaled.getLhs(); }
};

/// Matches the step of a loop over blocks; says in `reason` what is missing.
FailureOr<SoftmaxStep> matchSoftmaxStep(scf::ForOp loop, std::string &reason);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_KEYLOOPS_H
