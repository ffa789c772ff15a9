//===- IntegerSizes.h - integers that may wrap around --------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which integers of score and mask functions may leave their type. What reads a
// mask as inequalities calculates with whole numbers; an operation that wraps
// around, such as the product of a hash, is none of these.
//
// What no operation on integers gives, such as positions, sizes and captured
// numbers, is taken to be less than 2^22 in magnitude, or what its type holds.
// So is a product of two numbers that are not constants, such as the square of
// a distance.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_INTEGERSIZES_H
#define ATTN_DIALECT_ATTN_IR_INTEGERSIZES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>

namespace attn {

/// Reads code that does not change meanwhile; what is read is read once.
class IntegerSizes {
public:
  /// What a value is, if it is another one: an argument of a region, or one of
  /// many elements that are all the same.
  using Resolve = std::function<Value(Value)>;

  explicit IntegerSizes(Resolve resolve = [](Value value) { return value; })
      : resolve(std::move(resolve)) {}

  /// Whether a result of `op` may differ from what it is in whole numbers.
  /// False for what is no sum, difference, product, shift to the left,
  /// truncation or magnitude of integers of a known width.
  bool mayWrap(Operation *op);

private:
  bool isVaryingProduct(Operation *op) const;
  ConstantIntRanges of(Value value);
  /// Of which values the range of `value` is made.
  SmallVector<Value> getSources(Value value) const;
  ConstantIntRanges compute(Value value);

  Resolve resolve;
  llvm::DenseMap<Value, ConstantIntRanges> known;
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_INTEGERSIZES_H
