//===- Gradients.h - the gradients of a function - -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_GRADIENTS_H
#define ATTN_PIPELINES_GRADIENTS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace attn {

/// Which functions of a program are compiled: the one that it has, the
/// gradients that attn-differentiate makes of that, both, or the one with its
/// tangents.
enum class FunctionChoice { Forward, Backward, Both, Jvp };

struct GradientFunctions {
  std::string forward, backward;
};

/// What attn-differentiate may be asked.
struct GradientRequest {
  bool lse = false;     // d_lse is an argument
  bool captures = true; // captures of floats have gradients
};

/// Puts the gradients of function `name` (empty: the only public one) into the
/// module, as attn-differentiate does. Other functions with an attention go.
/// Both functions then have query, key, value and output as the attention has
/// them, batch, heads, length, dimension, in any strides: reshapes and
/// transposes of arguments go.
/// Returns the names of the two functions.
FailureOr<GradientFunctions> addGradients(ModuleOp module, StringRef name,
                                          const GradientRequest &request);

/// The same with the function that has tangents; returns its name.
FailureOr<std::string> addTangents(ModuleOp module, StringRef name);

} // namespace attn

#endif // ATTN_PIPELINES_GRADIENTS_H
