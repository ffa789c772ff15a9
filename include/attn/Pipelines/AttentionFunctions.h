//===- AttentionFunctions.h - functions of one attention - -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is made of a function with one attn.attention of its arguments. What
// comes from a model has more: projections, several attentions, and all of it
// may be linalg.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_ATTENTIONFUNCTIONS_H
#define ATTN_PIPELINES_ATTENTIONFUNCTIONS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace attn {

/// The functions that kernels are made of.
struct AttentionFunctions {
  SmallVector<std::string> names;
  /// It is the one that was asked for, as it stood.
  bool isUnchanged = false;
};

/// Finds them for function `name` of `module` (empty: the only public one):
/// that function, where it is an attention of its arguments or a program of
/// another room; else those that it calls, in their order. Where it has other
/// operations, its graphs are raised (attn-raise) and its attentions outlined
/// (attn-outline), in place; a remark says so. `name` may be one that a
/// function only then gets.
FailureOr<AttentionFunctions> prepareAttention(ModuleOp module, StringRef name);

/// The same where one function is wanted: several are an error, which lists
/// them.
FailureOr<std::string> prepareOneAttention(ModuleOp module, StringRef name);

/// A copy of the module with the one function.
OwningOpRef<ModuleOp> isolateFunction(ModuleOp module, StringRef name);

} // namespace attn

#endif // ATTN_PIPELINES_ATTENTIONFUNCTIONS_H
