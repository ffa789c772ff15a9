//===- IntegerReader.h - integers of a mask as linear forms --- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An integer is a linear form, or one of several by conditions.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_ANALYSIS_INTEGERREADER_H
#define ATTN_LIB_DIALECT_TILE_ANALYSIS_INTEGERREADER_H

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attn::tile {

/// Reads the values of one loop. What many use is read once.
class IntegerReader {
public:
  /// Nested operations beyond which a value is opaque: each takes a few frames
  /// of the stack.
  static constexpr unsigned maxDepth = 200;

  IntegerReader(scf::ForOp loop, MaskProblem &result)
      : loop(loop), result(result) {}

  void readBounds(Value lo, Value hi);
  /// What `op` shows.
  Formula readScores(ScoresOp op);
  /// Without `rhs`, of `lhs` with `number`.
  Formula readComparison(arith::CmpIPredicate predicate, Value lhs, Value rhs,
                         int64_t number = 0);

private:
  Formula readBoolean(Value value);

  /// `form`, where `condition` holds.
  struct Case {
    Formula condition;
    LinearForm form;
  };
  /// Of which one applies.
  using Cases = SmallVector<Case, 1>;

  Formula computeBoolean(Value value);
  Formula comparePredicate(arith::CmpIPredicate predicate,
                           const LinearForm &lhs, const LinearForm &rhs);

  Cases readInteger(Value value);
  Cases computeInteger(Value value);
  Cases readCoords(CoordsOp coords);
  Cases readArithmetic(Operation *op);
  Cases readDivision(Operation *op, int64_t divisor);
  Cases readUnsigned(const Cases &cases,
                     llvm::function_ref<LinearForm(const LinearForm &)> make);
  Cases readBinary(
      Operation *op,
      llvm::function_ref<Cases(const LinearForm &, const LinearForm &)> make);
  LinearForm quotient(const LinearForm &form, int64_t divisor);
  LinearForm symbolicQuotient(const LinearForm &form, int64_t divisor);
  Cases opaque();
  Formula tooLarge();
  static Cases single(LinearForm form);

  /// How a value changes from one row to the next: 1 never decreases, -1 never
  /// increases, 0 the same for all rows; nothing if that is not known, or if it
  /// depends on the key.
  using Direction = std::optional<int>;
  Direction getDirection(Value value);
  Direction computeDirection(Value value);
  std::optional<unsigned> readRowData(Value value);
  std::optional<unsigned> readKeyData(Value value);
  std::optional<LinearForm> readSingle(Value value);
  Formula atLeastZero(const LinearForm &form);
  std::optional<LinearForm> getExtreme(const LinearForm &form, bool greatest);
  unsigned getSymbol(SymbolSource source);

  /// What is known of an element that is read for the key.
  struct KeyData {
    Value value;
    LinearForm offset;
  };
  /// Two symbols around an element that is read for the row.
  struct RowData {
    unsigned least, greatest;
  };

  scf::ForOp loop;
  MaskProblem &result;
  DenseMap<Value, Formula> booleans;
  DenseMap<Value, Cases> integers;
  DenseMap<Value, Direction> directions;
  IntegerSizes sizes = getMaskIntegerSizes();
  /// Operations between the value that is read and the mask.
  unsigned depth = 0;
  DenseMap<unsigned, KeyData> keyData;
  DenseMap<unsigned, RowData> rowData;
  DenseSet<unsigned> boundedQuotients;
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_ANALYSIS_INTEGERREADER_H
