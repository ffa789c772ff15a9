//===- KernelOps.h - what kernels of all rooms have in common ---*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_KERNELOPS_H
#define ATTN_SUPPORT_KERNELOPS_H

#include "attn/Support/LLVM.h"
#include "mlir/IR/Diagnostics.h"

namespace attn {

/// A kernel has a name that no kernel before it has, and a body with three
/// block numbers.
template <typename KernelOp>
LogicalResult verifyNameAndBody(KernelOp kernel, Block &body) {
  if (body.getNumArguments() != 3 ||
      llvm::any_of(body.getArgumentTypes(),
                   [](Type type) { return !type.isIndex(); }))
    return kernel.emitOpError(
        "expects a body with three block numbers of type index");
  for (auto other : kernel->getBlock()->template getOps<KernelOp>()) {
    if (other == kernel)
      break;
    if (other.getSymName() != kernel.getSymName())
      continue;
    InFlightDiagnostic diag = kernel.emitOpError("has the name of another "
                                                 "kernel, @")
                              << kernel.getSymName()
                              << ", expected one of its own";
    diag.attachNote(other.getLoc()) << "the other kernel is here";
    return diag;
  }
  return success();
}

} // namespace attn

#endif // ATTN_SUPPORT_KERNELOPS_H
