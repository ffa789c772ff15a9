//===- StagingProtocol.cpp - the rule of slots on the way out -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// W2 of warp.kernel for `warp.store … via`: each warp (or group) overwrites its
// own rows of the slot, so nobody else may read them, and no product that is
// in flight. The `a` operand of a product is read by the warps that own its
// rows; the `b` operand, and an `a` operand that is transposed, by all.
//
//===----------------------------------------------------------------------===//

#include "Protocol.h"

#include "attn/Dialect/Warp/IR/Turns.h"

using namespace mlir;
using namespace attn::warp;

static LogicalResult refuse(StoreOp store, Operation *reader,
                            const char *text) {
  InFlightDiagnostic diag = store.emitOpError(text);
  diag.attachNote(reader->getLoc()) << "read here";
  return failure();
}

static LogicalResult verifyReader(StoreOp store, OpOperand *use) {
  Operation *reader = use->getOwner();
  auto product = dyn_cast<ProductOp>(reader);
  if (product && product.isReadByAll(use))
    return refuse(store, reader, "goes via a slot that all warps read");
  auto issue = dyn_cast<MmaAsyncOp>(reader);
  if (!issue)
    return success();
  WaitOp wait = getOnlyWait(issue);
  if (!wait)
    return failure();
  // Waits stand in the block of their issue (W1).
  Block *home = getHomeBlock(issue);
  if (!runsBefore(home, issue, store) || runsBefore(home, wait, store))
    return success();
  return refuse(store, reader,
                "goes via a slot that a product in flight still reads");
}

LogicalResult attn::warp::verifyStagedStores(KernelOp kernel) {
  WalkResult walk = kernel.walk([](StoreOp store) {
    if (!store.getStaging())
      return WalkResult::advance();
    Value slot = getSourceThroughTurns(store.getStaging());
    for (OpOperand *use : getUsesThroughTurns(slot))
      if (failed(verifyReader(store, use)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}
