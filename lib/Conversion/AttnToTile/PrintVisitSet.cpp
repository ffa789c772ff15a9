//===- PrintVisitSet.cpp - attn-print-visit-set ---------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/AttnToTile.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Tile/Analysis/BlockCounts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {
#define GEN_PASS_DEF_ATTNPRINTVISITSET
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Prints the sets of the loops over key blocks of a kernel.
static void printSets(func::FuncOp kernel) {
  kernel.walk([&](scf::ForOp loop) {
    FailureOr<tile::ScoresOp> scores = tile::findMaskedScores(loop);
    if (failed(scores))
      return;
    tile::MaskProblem problem = tile::readMask(*scores, loop);
    tile::VisitSet set = tile::computeVisitSet(problem.problem);
    llvm::outs() << "// @" << kernel.getSymName() << "\n";
    tile::printVisitSet(llvm::outs(), problem, set, loop);
  });
}

namespace {
struct AttnPrintVisitSet final
    : attn::impl::AttnPrintVisitSetBase<AttnPrintVisitSet> {
  using Base::Base;

  void runOnOperation() override {
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      bool hasAttention =
          func.walk([](AttentionOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
      if (!hasAttention)
        continue;
      FailureOr<KernelMatch> match = matchKernels(func);
      if (failed(match))
        return signalPassFailure();
      // A kernel for a moment: the set printed is that of its loop.
      OpBuilder builder(&getContext());
      func::FuncOp kernel = buildForward(builder, *match);
      printSets(kernel);
      kernel.erase();
    }
  }
};
} // namespace
