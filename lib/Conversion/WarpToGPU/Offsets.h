//===- Offsets.h - elements that are one value plus constants ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_WARPTOGPU_OFFSETS_H
#define ATTN_LIB_CONVERSION_WARPTOGPU_OFFSETS_H

#include "attn/Dialect/Attn/IR/Decisions.h"
#include "attn/Dialect/Warp/IR/Warp.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace attn::warp {

/// base + constant; without a base the constant alone.
struct Offset {
  Value base;
  int64_t constant = 0;

  static Offset split(Value value);
};

/// Elements of a row, base + constant each, that meet the same limit.
struct OffsetRow {
  Value base, limit;
  SmallVector<size_t> numbers; // of the elements
  SmallVector<int64_t> constants;
};

/// All elements, row by row; none if no two of them share a base.
struct OffsetRows {
  SmallVector<OffsetRow, 0> groups;

  static OffsetRows group(ArrayRef<Offset> offsets, ArrayRef<Value> limits,
                          ArrayRef<layout::Coord> coords);
  /// Rows are longer than those of `other`, which may be none.
  bool isBetter(const OffsetRows &other) const {
    return !groups.empty() &&
           (other.groups.empty() || groups.size() <= other.groups.size());
  }
};

/// Operands of comparisons and of conversions to floats that are coordinates,
/// plus or minus each other and numbers that all elements share; not of
/// conversions that `exact` names. Indices of gathers that are quotients of
/// such.
struct Positions {
  llvm::DenseSet<std::pair<Operation *, unsigned>> operands;
  /// Operands of comparisons that are remainders of such.
  llvm::DenseSet<std::pair<Operation *, unsigned>> dividends;
  /// Gathers of whose indices all quotients, as far as sums and products by
  /// constants are made of them, are such.
  llvm::DenseSet<Operation *> digits;
  /// Differences that are remainders of anything.
  llvm::DenseSet<Operation *> remainders;

  bool has(Operation *op, unsigned operand) const {
    return operands.contains({op, operand});
  }
  bool hasDividend(Operation *op, unsigned operand) const {
    return dividends.contains({op, operand});
  }
  bool hasDigits(Operation *op) const { return digits.contains(op); }
  /// Reads a function before anything of it is lowered.
  static Positions plan(gpu::GPUFuncOp function, const DecisionPaths &exact);
};

/// lhs + rhs, or lhs - rhs, one value plus constants again if one side is; at
/// most one sum per pair of values, and one with a constant per element. Not of
/// remainders, which are known by their form.
std::optional<SmallVector<Value>> addOffsets(Operation *op, ArrayRef<Value> lhs,
                                             ArrayRef<Value> rhs,
                                             const Positions &positions,
                                             OpBuilder &builder);
/// base + c < limit as c < limit - base: what differs between elements is an
/// immediate operand. The difference saturates, so that it is right for every
/// limit; constants of 2^30 and more are compared as they stand. `coords` are
/// the places of the elements.
std::optional<SmallVector<Value>>
compareOffsets(arith::CmpIOp op, ArrayRef<Value> lhs, ArrayRef<Value> rhs,
               ArrayRef<layout::Coord> coords, const Positions &positions,
               OpBuilder &builder);
/// float(base + c) as float(base) + c, which is exact below 2^24 and rounds
/// twice beyond: conversions are slow, sums are not.
std::optional<SmallVector<Value>> convertOffsets(CastOp op,
                                                 ArrayRef<Value> values,
                                                 const Positions &positions,
                                                 OpBuilder &builder);
/// Products of base + c with a factor, plus something: those of the base, plus
/// c times the factor, where `op` may be reassociated and elements share the
/// first.
std::optional<SmallVector<Value>>
scaleOffsets(math::FmaOp op, ArrayRef<Value> numbers, ArrayRef<Value> factors,
             ArrayRef<Value> addends, OpBuilder &builder);

} // namespace attn::warp

#endif // ATTN_LIB_CONVERSION_WARPTOGPU_OFFSETS_H
