//===- DeadOps.cpp - what nobody uses any more ------------------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeadOps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

void attn::tile::eraseDeadOps(RewriterBase &rewriter, Block *block) {
  SmallVector<Operation *> ops =
      llvm::to_vector(llvm::make_pointer_range(block->without_terminator()));
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
}
