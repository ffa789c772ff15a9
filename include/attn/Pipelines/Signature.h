//===- Signature.h - what a caller must pass --------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_SIGNATURE_H
#define ATTN_PIPELINES_SIGNATURE_H

#include "attn/Support/Artifact.h"
#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// The function called `name` of `module`, or its only one if `name` is empty.
FailureOr<func::FuncOp> findFunction(ModuleOp module, StringRef name);

/// Fills `arguments` (inputs, then results) and `checks` (the sizes that must
/// agree at launch) of `artifact` from a function on tensors with one
/// attn.attention. The operands of the attention are called q, k and v, its
/// captures what their locations say, as in `%t: tensor<?xf32> loc("table")`,
/// or c0, c1, …, its results o and lse, whatever else arg<N>.
LogicalResult describeSignature(func::FuncOp function, Artifact &artifact);

/// Whether the function was written in the Warp room: it holds warp.kernels.
bool isWarpProgram(func::FuncOp function);

/// The same of such a function on memrefs, with its kernels. An argument that a
/// kernel stores to is an output; names come from locations.
LogicalResult describeWarpProgram(func::FuncOp function, Artifact &artifact);

} // namespace attn

#endif // ATTN_PIPELINES_SIGNATURE_H
