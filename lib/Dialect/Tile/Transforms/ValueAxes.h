//===- ValueAxes.h - where values of scores change --------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_VALUEAXES_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_VALUEAXES_H

#include "attn/Dialect/Tile/IR/Tile.h"
#include "attn/Support/BlockLoops.h"

namespace attn::tile {

/// Along which axes of the scores the values of one of their regions change.
class ValueAxes {
public:
  /// With `loops`, what cannot be computed before them changes with the key.
  ValueAxes(ScoresOp op, Region &region, const BlockLoops *loops = nullptr);

  /// True for what differs from score to score: a number per element.
  bool isPerScore(Value value) const { return of(value) == all; }
  /// True for what is the same for all keys.
  bool isPerRow(Value value) const { return !(of(value) & Columns); }
  /// True for what is the same for all scores.
  bool isUniform(Value value) const { return of(value) == 0; }
  /// `value` changes where `other` does.
  void add(Value value, Value other) { known[value] = of(other); }

private:
  enum : unsigned { Rows = 1, Columns = 2 };
  static unsigned axesOf(Value value);
  unsigned of(Value value) const;

  const BlockLoops *loops;
  unsigned all;
  DenseMap<Value, unsigned> known; // results in the region
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_VALUEAXES_H
