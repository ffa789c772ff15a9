//===- Upstream.h - what of MLIR attn-opt offers -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTN_OPT_UPSTREAM_H
#define ATTN_TOOLS_ATTN_OPT_UPSTREAM_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Registers MLIR's own passes. A tool that links the shared libraries offers
/// all of them, and every dialect; a static one those that are of use between
/// the project's passes.
void registerUpstream(mlir::DialectRegistry &registry);

} // namespace attn

#endif // ATTN_TOOLS_ATTN_OPT_UPSTREAM_H
