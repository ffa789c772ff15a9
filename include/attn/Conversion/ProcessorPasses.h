//===- ProcessorPasses.h - passes for the host processor -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CONVERSION_PROCESSORPASSES_H
#define ATTN_CONVERSION_PROCESSORPASSES_H

#include "attn/Support/LLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Conversion/ProcessorPasses.h.inc"
} // namespace attn

#endif // ATTN_CONVERSION_PROCESSORPASSES_H
