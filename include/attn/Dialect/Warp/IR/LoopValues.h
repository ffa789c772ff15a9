//===- LoopValues.h - what loops carry ------------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two loops stand in warp kernels: `scf.for`, and for tiles that are handed out
// `scf.while`, whose body is its `after` region. An argument of either region
// is carried if it is passed on to the body as it is.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_WARP_IR_LOOPVALUES_H
#define ATTN_DIALECT_WARP_IR_LOOPVALUES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/ValueRange.h"

#include <optional>

namespace mlir {
class RewriterBase;
namespace scf {
class WhileOp;
} // namespace scf
} // namespace mlir

namespace attn::warp {

/// A value from one iteration to the next.
struct CarriedValue {
  Operation *loop;
  Value init, yielded;
};

/// What an argument of a loop carries; nothing for an induction variable, and
/// for what a `scf.while` computes before its condition.
std::optional<CarriedValue> getCarriedValue(Value argument);

/// The result of the loop that is the last value of an argument of its body.
Value getLastValue(BlockArgument argument);

/// A loop that carries more values, which its body yields as they are.
mlir::scf::WhileOp addCarriedValues(mlir::RewriterBase &rewriter,
                                    mlir::scf::WhileOp loop,
                                    mlir::ValueRange inits);

} // namespace attn::warp

#endif // ATTN_DIALECT_WARP_IR_LOOPVALUES_H
