//===- PlanSearch.h - plans whose kernels do not spill -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_PLANSEARCH_H
#define ATTN_LIB_PIPELINES_PLANSEARCH_H

#include "attn/Pipelines/Compile.h"

namespace attn {

/// Compiles the function that the options name. Where the plans are the
/// compiler's choice and one of them spills, others are tried: one that was
/// chosen for other sizes and does not, else those that need fewer registers,
/// the fastest by estimate first and three at most. The first one without
/// spills is taken, else the one with the least, and a remark says so; what is
/// spilled then is a warning.
FailureOr<Artifact> compileSparingly(ModuleOp module,
                                     const CompileOptions &options);

} // namespace attn

#endif // ATTN_LIB_PIPELINES_PLANSEARCH_H
