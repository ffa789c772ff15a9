//===- SymbolEmitter.h - symbols of a visit set as values ----- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Index arithmetic with folding, and the values of symbols.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_TILE_ANALYSIS_SYMBOLEMITTER_H
#define ATTN_LIB_DIALECT_TILE_ANALYSIS_SYMBOLEMITTER_H

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attn::tile {

class SymbolEmitter {
public:
  SymbolEmitter(OpBuilder &builder, const MaskProblem &problem, scf::ForOp loop)
      : builder(builder), loc(loop.getLoc()), problem(problem), loop(loop) {}

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value lhs, Value rhs) { return fold<arith::AddIOp>(lhs, rhs); }
  Value sub(Value lhs, Value rhs) { return fold<arith::SubIOp>(lhs, rhs); }
  Value max(Value lhs, Value rhs) { return fold<arith::MaxSIOp>(lhs, rhs); }
  Value min(Value lhs, Value rhs) { return fold<arith::MinSIOp>(lhs, rhs); }
  Value conjoin(Value lhs, Value rhs) { return fold<arith::AndIOp>(lhs, rhs); }
  Value floorDiv(Value value, int64_t divisor) {
    if (divisor == 1)
      return value;
    return fold<arith::FloorDivSIOp>(value, constant(divisor));
  }
  Value ceilDiv(Value value, int64_t divisor) {
    if (divisor == 1)
      return value;
    return fold<arith::CeilDivSIOp>(value, constant(divisor));
  }
  Value notBelow(Value lhs, Value rhs) {
    return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sge,
                                               lhs, rhs);
  }
  Value select(Value condition, Value yes, Value no) {
    return builder.createOrFold<arith::SelectOp>(loc, condition, yes, no);
  }
  /// factor * form + extra.
  Value linear(const LinearForm &form, int64_t factor, int64_t extra);

private:
  template <typename OpTy> Value fold(Value lhs, Value rhs) {
    return builder.createOrFold<OpTy>(loc, lhs, rhs);
  }
  Value toIndex(Value integer);
  Value toI32(Value index);
  Value isInRange(Value view, unsigned dimension, Value index);
  Value loadOr(Value view, ValueRange indices, Value condition,
               Value otherwise);

  Value getSymbol(unsigned symbol);
  Value emitSymbol(const SymbolSource &source);
  Value emitRowBound(const SymbolSource &source);
  Value emitKeyCount(const SymbolSource &source);
  Value emitGatherCount(const SymbolSource &source, GatherOp gather,
                        Value limit);
  Value emitSearchBound(const SymbolSource &source, SearchOp search,
                        Value limit);
  /// What a vector of one value per row is in row `row` of the block. Where it
  /// is the value of no row between, `valid` becomes false.
  Value emitAtRow(Value value, Value row, Value &valid,
                  DenseMap<Value, Value> &known);
  Value getLastRow();

  OpBuilder &builder;
  Location loc;
  const MaskProblem &problem;
  scf::ForOp loop;
  DenseMap<unsigned, Value> symbols;
};

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_TILE_ANALYSIS_SYMBOLEMITTER_H
