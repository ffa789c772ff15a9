//===- Passes.h - passes -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLAN_PASSES_H
#define ATTN_PLAN_PASSES_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attn::plan {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Plan/Passes.h.inc"
} // namespace attn::plan

#endif // ATTN_PLAN_PASSES_H
