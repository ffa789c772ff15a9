//===- WarpBlock.h - what the warps of a block share ------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_WARPBLOCK_H
#define ATTN_TEST_SIMULATOR_WARPBLOCK_H

#include "Interpreter.h"
#include "Meetings.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace attn::simulator {

/// The elements that the lanes of one warp hold: of lane l and part p at
/// p * 32 + l.
using Spread = std::vector<layout::Coord>;
/// For each element of a fragment the part of another fragment in the same
/// lane that holds it, or -1.
using Sources = std::vector<int64_t>;

/// A row of a tile among those of the warp that holds it, counted through.
int64_t localRow(int64_t row, int64_t warps);

/// Layouts by type and warp, computed once.
class Spreads {
public:
  const Spread &get(warp::FragType type, int64_t warp);
  /// Where a lane finds the elements of `to` in `from`, of which dimensions of
  /// size 1 are stretched.
  const Sources &getSources(warp::FragType from, warp::FragType to);

private:
  llvm::DenseMap<std::pair<warp::FragType, int64_t>, Spread> spreads;
  llvm::DenseMap<std::pair<warp::FragType, warp::FragType>, Sources> sources;
};

/// A tile in global memory.
struct Box {
  uint64_t address = 0;
  SmallVector<int64_t> sizes, strides, start;
  Type element;
  int64_t rows = 0, columns = 0;

  /// Where an element lies, or nothing if it is out of range.
  std::optional<uint64_t> find(int64_t row, int64_t column) const;
  /// Appends all elements; out of range is 0.
  std::string read(const GlobalMemory &global,
                   std::vector<float> &elements) const;
};

/// Several boxes, one after the other.
std::string readBoxes(ArrayRef<Box> boxes, const GlobalMemory &global,
                      std::vector<float> &elements);

/// A copy of the TMA engine on its way.
struct Transfer {
  Operation *op;
  Ring *ring;
  int64_t item;
  std::vector<Box> boxes;
};

/// What all blocks of a launch share.
struct Launch {
  GlobalMemory global;
  Spreads spreads;
  /// Addresses of the elements that were stored, and of those that were added
  /// to.
  llvm::DenseSet<uint64_t> stored, added;
  /// Derived numbers of Analysis, once per operation.
  llvm::DenseMap<Operation *, int64_t> younger;
};

/// What the warps of a block share.
struct WarpBlock {
  WarpBlock(warp::KernelOp kernel, Launch &launch, const BlockPlace &place);

  warp::KernelOp kernel;
  Launch &launch;
  BlockPlace place;
  /// Those of roles that compute come first.
  int64_t warps;
  llvm::MapVector<Operation *, Ring> rings; // allocs and numbers too
  /// What the items of `warp.mailbox` say, by their number.
  llvm::DenseMap<std::pair<Operation *, int64_t>, SmallVector<int64_t>> numbers;
  /// Barriers passed when a slot of `warp.alloc` was last copied or stored to,
  /// and what is stored to it.
  llvm::DenseMap<Operation *, int64_t> copiedAt;
  llvm::DenseMap<Operation *, std::vector<float>> stored;
  Barrier barrier;
  llvm::MapVector<Operation *, Turns> turns; // of each role
  Issues issues;
  std::vector<Transfer> transfers;
  /// A warp did something that others may wait for.
  bool hasNews = false;

  LogicalResult finish(const Transfer &transfer);
  /// What is left over at the end.
  LogicalResult checkEnd();
};

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_WARPBLOCK_H
