//===- ValidateRaise.h - does a raised graph compute the same? -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HOST_VALIDATERAISE_H
#define ATTN_HOST_VALIDATERAISE_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

struct ValidateOptions {
  /// How many times sizes and inputs are drawn.
  int samples = 2;
  uint64_t seed = 0;
  /// The largest difference, relative to the largest result.
  double tolerance = 1e-5;
  /// Where they run: Processor.h.
  std::string processor = "native";
};

/// Raises a copy of `func` (convert-linalg-to-attn) and runs it and the
/// function itself on the CPU, both in f64 without any rounding, on the same
/// random inputs; unknown sizes are small, and differ where they may. A
/// difference is an error; so is a function that cannot be run. Where the graph
/// gives NaN because a row sees no key, attention may give 0. The number of
/// graphs that were raised.
FailureOr<int> validateRaise(func::FuncOp func, const ValidateOptions &options);

/// Registers `attn-validate-raise`.
void registerValidateRaisePass();

} // namespace attn

#endif // ATTN_HOST_VALIDATERAISE_H
