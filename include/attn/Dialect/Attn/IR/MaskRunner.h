//===- MaskRunner.h - a mask, run for some positions ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For guesses about what a mask shows: values are 32 bits wide, whatever their
// type, and wrap around. What is computed must not depend on them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_MASKRUNNER_H
#define ATTN_DIALECT_ATTN_IR_MASKRUNNER_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <vector>

namespace attn {

/// Runs the region of a mask, of (b, h, i, j, …), for one query and all keys of
/// a sequence at a time, or for one key and all queries.
class MaskRunner {
public:
  /// The numbers of what is not of the region, constants apart, are `scalar`;
  /// conditions among them are unknown.
  MaskRunner(Block &mask, int64_t length, bool isAlongQueries, int64_t scalar)
      : mask(mask), length(length), isAlongQueries(isAlongQueries),
        scalar(scalar) {}

  /// Computes what is the same for all positions that are run; false where
  /// something is unknown, as data are that the mask reads.
  bool start(int64_t head);
  /// 1 for each key that is seen, 0 for others; one number where it is the same
  /// for all.
  ArrayRef<int32_t> run(int64_t position);

private:
  /// A value for all keys, or one number where it is the same for all.
  struct KeyNumbers {
    bool isOfPosition = false;
    std::vector<int32_t> numbers = {0};
    std::vector<float> floats = {0};
  };

  Value getPosition() const;
  bool isKnown(Value value);
  bool evaluate(Operation &op);
  bool evaluateInteger(Operation &op);
  bool evaluateFloat(Operation &op);
  ArrayRef<int32_t> getNumbers(Value value) const {
    return values.find(value)->second.numbers;
  }
  ArrayRef<float> getFloats(Value value) const {
    return values.find(value)->second.floats;
  }

  Block &mask;
  int64_t length;
  bool isAlongQueries;
  int64_t scalar;
  DenseMap<Value, KeyNumbers> values;
  SmallVector<Operation *> ofPosition; // in order
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_MASKRUNNER_H
