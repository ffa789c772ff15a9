//===- SavedResults.h - what gradients read of the forward - -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CHECK_SAVEDRESULTS_H
#define ATTN_CHECK_SAVEDRESULTS_H

#include "attn/Execute/Operands.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// A function of gradients, which reads output and lse.
bool readsForward(const Artifact &manifest);

/// The forward of `function` (empty: the only one), which computes gradients:
/// output and lse in f64, by their definition, from the same arguments. Failure
/// is a diagnostic.
FailureOr<HostProgram> compileForward(ModuleOp module, StringRef function,
                                      HostOptions options);

/// Fills those of the arguments output and lse that no file of `request` gives
/// with what the forward gives for the other operands, rounded to their types
/// (C8 of attn.attention_backward).
runtime::Status fillSavedResults(const HostProgram &forward,
                                 const Artifact &manifest,
                                 const OperandRequest &request,
                                 Operands &operands);

} // namespace attn

#endif // ATTN_CHECK_SAVEDRESULTS_H
