//===- ChangedScores.h - loops that compute upon scores -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_WARP_TRANSFORMS_CHANGEDSCORES_H
#define ATTN_LIB_DIALECT_WARP_TRANSFORMS_CHANGEDSCORES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::warp {

/// Whether a body masks its scores, or computes more upon them than weights:
/// that takes registers and instructions of its own.
bool changesScores(mlir::scf::ForOp loop);

} // namespace attn::warp

#endif // ATTN_LIB_DIALECT_WARP_TRANSFORMS_CHANGEDSCORES_H
