//===- Meetings.h - where warps wait for each other -------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_MEETINGS_H
#define ATTN_TEST_SIMULATOR_MEETINGS_H

#include "Rings.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace attn::simulator {

/// The barrier of all warps of a block.
class Barrier {
public:
  explicit Barrier(int64_t warps) : warps(warps) {}

  /// A warp comes for the first time, or again after it had to wait.
  Answer pass(int64_t warp, mlir::Operation *op);
  /// The number of barriers that a warp has passed.
  int64_t countPassed(int64_t warp) const { return warps[warp].passed; }

private:
  struct Warp {
    int64_t passed = 0;
    bool isHere = false;
  };
  std::vector<Warp> warps;
  int64_t meetings = 0, here = 0;
  mlir::Operation *place = nullptr;
};

/// The turns that the groups of a role take: 0, 1, 2, …, 0, 1, 2, …
class Turns {
public:
  explicit Turns(int64_t warps) : warps(warps) {}

  Answer enter(int64_t warp, mlir::Operation *turn);
  void leave(int64_t warp) { ++warps[warp].left; }
  std::string checkEnd() const;

private:
  static constexpr int64_t groupWarps = 4;
  struct Warp {
    int64_t come = 0, entered = 0, left = 0;
  };
  std::vector<Warp> warps;
  /// The operation of each turn, as the first group takes it.
  std::vector<mlir::Operation *> order;
};

/// The products that the warps of each group issue, which must be the same.
class Issues {
public:
  explicit Issues(int64_t warps) : counts(warps), orders(warps) {}

  std::string issue(int64_t warp, mlir::Operation *product);
  std::string checkEnd() const;

private:
  static constexpr int64_t groupWarps = 4;
  std::vector<int64_t> counts;
  std::vector<std::vector<mlir::Operation *>> orders; // by group
};

} // namespace attn::simulator

#endif // ATTN_TEST_SIMULATOR_MEETINGS_H
