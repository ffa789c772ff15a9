//===- CaptureCheck.h - promises that only data can break -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CHECK_CAPTURECHECK_H
#define ATTN_CHECK_CAPTURECHECK_H

#include "attn/Execute/Operands.h"
#include "attn/Support/LLVM.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Looks at all positions of a call of `function` (empty: the only one) for
/// captured tensors that are not sorted although they should be, and for
/// indices out of range that matter: CaptureReads.h. The status says what was
/// found; failure: the program cannot be compiled, as a diagnostic said.
FailureOr<runtime::Status> checkCaptures(ModuleOp module, StringRef function,
                                         StringRef processor,
                                         Operands &operands);

} // namespace attn

#endif // ATTN_CHECK_CAPTURECHECK_H
