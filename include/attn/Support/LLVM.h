//===- LLVM.h - the LLVM and MLIR names this project uses -------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR names enter the project's namespaces here and nowhere else, so that no
// header writes `using namespace mlir` and none reopens `namespace mlir`.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_LLVM_H
#define ATTN_SUPPORT_LLVM_H

#include "mlir/Support/LLVM.h"

namespace attn {
using namespace mlir; // NOLINT(google-build-using-namespace)
} // namespace attn

#endif // ATTN_SUPPORT_LLVM_H
