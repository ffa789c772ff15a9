//===- NestExits.cpp - what follows an exit, in a branch ------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::warp;

void attn::warp::nestExits(RewriterBase &rewriter, Block *body) {
  OpBuilder::InsertionGuard guard(rewriter);
  while (!body->getOps<ExitIfOp>().empty()) {
    ExitIfOp exit = *body->getOps<ExitIfOp>().begin();
    Location loc = exit.getLoc();
    rewriter.setInsertionPoint(exit);
    Value isTrue = arith::ConstantIntOp::create(rewriter, loc, 1, 1);
    Value hasWork =
        arith::XOrIOp::create(rewriter, loc, exit.getCondition(), isTrue);
    auto branch = scf::IfOp::create(rewriter, loc, hasWork,
                                    /*withElseRegion=*/false);
    Block *then = branch.thenBlock();
    for (Operation &op : llvm::make_early_inc_range(
             llvm::make_range(std::next(exit->getIterator()),
                              body->getTerminator()->getIterator())))
      rewriter.moveOpBefore(&op, then->getTerminator());
    rewriter.eraseOp(exit);
    body = then;
  }
}
