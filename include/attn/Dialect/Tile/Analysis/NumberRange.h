//===- NumberRange.h - ranges of numbers in scalar code ------- -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Between which numbers a value of scalar code lies where another one lies
// between two: the distance of a pair, and its bucket min(8 + 3 log(distance),
// 15). No operation is taken to be monotonic that only its exact result is:
// each float is taken to be off by a part in 2^16 and by 2^-16, in which what
// GPUs compute of logarithms, quotients and roots lies, and one of 16 bits by a
// last place.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TILE_ANALYSIS_NUMBERRANGE_H
#define ATTN_DIALECT_TILE_ANALYSIS_NUMBERRANGE_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace attn::tile {

/// Numbers from `least` to `most`; of an i1, 0 is false and 1 true.
struct NumberRange {
  double least, most;
};

/// The range of `value` where `variable`, an integer, has `range`. Nothing
/// where it depends on anything else, but for constants, or on an operation
/// that is not known, or where an integer may wrap around.
std::optional<NumberRange> findRange(Value value, Value variable,
                                     NumberRange range);

} // namespace attn::tile

#endif // ATTN_DIALECT_TILE_ANALYSIS_NUMBERRANGE_H
