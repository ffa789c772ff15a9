//===- Raise.h - the pipeline from plain graphs to attention -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PIPELINES_RAISE_H
#define ATTN_PIPELINES_RAISE_H

#include "attn/Support/LLVM.h"
#include "mlir/Pass/PassManager.h"

namespace attn {

/// `attn-raise`: graphs of linalg, tensor and arith that compute attention
/// become attn.attention; what is no attention stays as it is.
void buildRaisePipeline(OpPassManager &manager);

/// Registers the pipelines of this file by name.
void registerRaisePipelines();

} // namespace attn

#endif // ATTN_PIPELINES_RAISE_H
