//===- CellRange.h - ranges of scalar code over many pairs ---- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interval arithmetic on the code of a mask. The ends of each range are values
// that are computed from the first query and the first key of a cell of the
// scores. What is the same in a whole cell may be any code; else there are
// rules for booleans, integers and floats, and a value without a rule has no
// range. A range may be too wide, and never too narrow.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_TRANSFORMS_CELLRANGE_H
#define ATTN_LIB_DIALECT_TILE_TRANSFORMS_CELLRANGE_H

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>
#include <limits>
#include <optional>

namespace attn::tile {

/// A cell of the scores: aligned queries and keys.
struct MaskCell {
  int64_t queries = 1, keys = 1;
};

/// What a value may be in a cell: least <= value <= greatest; of booleans,
/// false is less than true.
struct CellRange {
  Value least, greatest;
  /// No value of any cell is below; of integers and floats.
  double floor = -std::numeric_limits<double>::infinity();
  /// Of floats: no value of any cell is above it or below minus it, nor is one
  /// not a number. Infinite where that is not known.
  double magnitude = std::numeric_limits<double>::infinity();
  /// Set where the value is floor(position / divisor), of queries (2) or keys
  /// (3), the arguments of the region.
  unsigned axis = 0;
  int64_t divisor = 1;

  bool isOne() const { return least == greatest; }
  bool isNonNegative() const { return floor >= 0; }
  bool isFinite() const;
};

/// Reads the ranges of the values of a region of a mask; adds code where the
/// builder stands, after all of the region's.
class CellRangeReader {
public:
  CellRangeReader(OpBuilder &b, Block &region, MaskCell cell)
      : b(b), region(region), cell(cell) {}

  /// If set: gives the range of a value without a rule that depends on queries
  /// alone, or on keys alone. Booleans without a range may then be either.
  std::function<CellRange(Value value, bool isOfQueries)> ofData;

  /// If set: what a value stands for that is not of the region.
  std::function<Value(Value value)> ofScalar;

  /// Of `root`, in the cell that begins with the positions in `arguments`,
  /// which stand for those of the region.
  std::optional<CellRange> read(ValueRange arguments, Value root);

private:
  using Optional = std::optional<CellRange>;

  Optional find(Value value) const;
  Optional compute(Operation *op);
  Optional computeByRule(Operation *op);
  static bool describeConstant(Value value, CellRange &range);
  static void describe(Operation *op, ArrayRef<CellRange> of, CellRange &range);

  Optional bound(Operation *op, ArrayRef<CellRange> of);
  Optional boundBoolean(Operation *op, ArrayRef<CellRange> of);
  Optional boundInteger(Operation *op, ArrayRef<CellRange> of);
  Optional boundFloat(Operation *op, ArrayRef<CellRange> of);
  Optional divide(Operation *op, CellRange lhs, int64_t divisor);
  Optional remainder(Operation *op, CellRange lhs, int64_t divisor);
  Optional multiply(Operation *op, CellRange lhs, CellRange rhs);
  Optional square(Operation *op, CellRange of);
  Optional compare(arith::CmpIOp op, CellRange lhs, CellRange rhs);
  Optional compare(arith::CmpFOp op, CellRange lhs, CellRange rhs);
  Optional select(Operation *op, CellRange condition, CellRange lhs,
                  CellRange rhs);
  CellRange extremes(ArrayRef<Value> values);
  CellRange widen(CellRange range, double absolute);
  /// `op`, which grows with all that it is of.
  CellRange increase(Operation *op, ArrayRef<CellRange> of);

  Location loc() { return region.getParentOp()->getLoc(); }
  template <typename Op> Value make(Value lhs, Value rhs) {
    return b.createOrFold<Op>(loc(), lhs, rhs);
  }
  Value choose(Value condition, Value lhs, Value rhs) {
    return b.createOrFold<arith::SelectOp>(loc(), condition, lhs, rhs);
  }
  Value test(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(loc(), predicate, lhs, rhs);
  }
  Value test(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpFOp>(loc(), predicate, lhs, rhs);
  }
  Value number(Type type, double value);
  Value invert(Value value) {
    return make<arith::XOrIOp>(value, number(value.getType(), 1));
  }
  Value smaller(Value lhs, Value rhs);
  Value larger(Value lhs, Value rhs);
  /// `op`, of other operands.
  Value repeat(Operation *op, ValueRange operands);

  OpBuilder &b;
  Block &region;
  MaskCell cell;
  DenseMap<Value, Optional> known;
  /// Whether a value depends on the query (1), the key (2), both or none.
  DenseMap<Value, unsigned> axes;
  IntegerSizes sizes = getMaskIntegerSizes();
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_TRANSFORMS_CELLRANGE_H
