//===- Decisions.h - integers and truth values of floats -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An error of one unit in the last place of a score is one of 2^-24 of it. But
// where an integer is made of a float, or a choice, it is another bucket of a
// table and another score:
//
//   1 / 41 * 41 = 0.99999994, which fptosi makes 0; of 1 * (1 / 41 * 41) it
//   makes 1
//
// What leads to such a decision is therefore computed as it is written (C32):
// every rounding stays.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_DECISIONS_H
#define ATTN_DIALECT_ATTN_IR_DECISIONS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace attn {

/// True for operations of arith and math whose result jumps where their float
/// operands do not: integers, truth values and whole numbers made of floats.
/// Whether a number is infinite is none of these: no rounding makes it so, but
/// for numbers next to the largest one.
bool isDecision(Operation *op);

/// The operations inside of a region whose results lead to a decision there,
/// element by element. Not what leads to operands of other operations, such as
/// sums of rows, whose order is nobody's promise.
struct DecisionPaths {
  using Predicate = function_ref<bool(Operation *)>;

  /// Of decisions of arith and math, through operations that upstream defines
  /// element by element, and changes of shape.
  static DecisionPaths find(Region &region);
  /// The same with further operations of a dialect.
  static DecisionPaths find(Region &region, Predicate isDecision,
                            Predicate isElementwise);

  bool contains(Operation *op) const { return operations.contains(op); }

  llvm::DenseSet<Operation *> operations;
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_DECISIONS_H
