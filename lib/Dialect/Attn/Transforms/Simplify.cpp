//===- Simplify.cpp - attn-simplify -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_ATTNSIMPLIFYPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The operations that feed captures and dropout, transitively.
static void collectFeeders(ScoredOp op, SetVector<Operation *> &ops) {
  SmallVector<Value> worklist(op.getCaptures());
  llvm::append_range(worklist, op.getDropoutKey());
  while (!worklist.empty()) {
    Operation *feeder = worklist.pop_back_val().getDefiningOp();
    if (feeder && ops.insert(feeder))
      llvm::append_range(worklist, feeder->getOperands());
  }
}

namespace {
struct Simplify : attn::impl::AttnSimplifyPassBase<Simplify> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet owned(context);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      if (llvm::is_contained({"attn", "arith", "math"},
                             op.getDialectNamespace()))
        op.getCanonicalizationPatterns(owned, context);
    patterns = std::move(owned);
    return success();
  }

  void runOnOperation() override {
    // Common subexpressions may make a body or two captures equal to something
    // simpler; simpler bodies have more of them in common.
    bool changed = true;
    while (changed) {
      if (failed(canonicalize()))
        return signalPassFailure();
      changed = eliminateCommon();
    }
  }

  LogicalResult canonicalize() {
    SetVector<Operation *> ops;
    getOperation()->walk([&](ScoredOp op) {
      collectFeeders(op, ops);
      op->walk([&](Operation *nested) { ops.insert(nested); });
    });
    if (ops.empty())
      return success();
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    if (succeeded(applyOpPatternsGreedily(ops.getArrayRef(), patterns, config)))
      return success();
    return getOperation()->emitError("attn-simplify did not converge");
  }

  bool eliminateCommon() {
    bool any = false;
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](ScoredOp op) {
      DominanceInfo dominance(op);
      bool changed = false;
      eliminateCommonSubExpressions(rewriter, dominance, op, &changed);
      any |= changed;
    });
    return any;
  }

  FrozenRewritePatternSet patterns;
};
} // namespace
