//===- WrongRoom.cpp - passes that have nothing to do ---------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WrongRoom.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace {
struct RoomNeeds {
  llvm::StringLiteral pass;
  /// An operation, or that of its gradients or tangents; or, with a point at
  /// its end, those of a dialect.
  llvm::StringLiteral operation;
};
} // namespace

static constexpr llvm::StringLiteral graph = "linalg.",
                                     attention = "attn.attention",
                                     step = "tile.scores", program = "tile.",
                                     kernel = "warp.kernel";

// Every pass of the project but convert-copy-to-loops, which takes what comes.
static constexpr RoomNeeds table[] = {
    {"attn-normalize-input", graph},
    {"convert-linalg-to-attn", graph},
    {"attn-validate-raise", graph},
    {"attn-expand-variants", attention},
    {"attn-expand-math", attention},
    {"attn-simplify", attention},
    {"attn-differentiate", attention},
    {"attn-push-tangents", graph},
    {"attn-outline", attention},
    {"attn-plan", attention},
    {"attn-recompute", attention},
    {"attn-print-plans", attention},
    {"attn-print-visit-set", attention},
    {"convert-attn-to-linalg", attention},
    {"convert-attn-to-tile", attention},
    {"tile-expand-scores", step},
    {"tile-order-blocks", step},
    {"tile-list-blocks", step},
    {"tile-peel-masks", step},
    {"tile-peel-scores", step},
    {"tile-hide-faint", step},
    {"tile-share-blocks", program},
    {"tile-group-bounds", step},
    {"tile-keys-to-ranges", step},
    {"tile-reverse-keys", step},
    {"tile-fold-exp2", program},
    {"tile-overlap-products", program},
    {"tile-lazy-max", program},
    {"tile-expand-softmax", program},
    {"tile-merge-factors", "tile.kernel"},
    {"tile-loop-heads", "tile.kernel"},
    {"convert-tile-to-loops", program},
    {"convert-tile-to-warp", "tile.kernel"},
    {"warp-buffer", kernel},
    {"warp-defer-sum", kernel},
    {"warp-persist", kernel},
    {"warp-order-tiles", kernel},
    {"warp-double-buffer", kernel},
    {"warp-specialize", kernel},
    {"warp-share-registers", kernel},
    {"warp-delay-exchange", kernel},
    {"warp-share-columns", kernel},
    {"warp-make-async", kernel},
    {"warp-insert-turns", kernel},
    {"warp-stage-stores", kernel},
    {"warp-deepen-rings", kernel},
    {"warp-test-ahead", kernel},
    {"warp-run-beside", kernel},
    {"warp-start-early", kernel},
    {"warp-expand-tanh", kernel},
    {"warp-turn-ends", kernel},
    {"warp-assign-resources", kernel},
    {"convert-warp-to-gpu", kernel},
    {"gpu-share-warp-number", "gpu.func"},
    {"gpu-hide-inductions", "gpu.func"},
    {"gpu-order-integers", "gpu.func"},
    {"gpu-add-relayouts", "gpu.launch_func"},
};

namespace {
class WrongRoomWarning final : public PassInstrumentation {
public:
  void runBeforePass(Pass *pass, Operation *op) override {
    const RoomNeeds *needs = llvm::find_if(table, [&](const RoomNeeds &row) {
      return row.pass == pass->getArgument();
    });
    if (needs == std::end(table))
      return;
    bool &isFound = found[needs];
    isFound |=
        op->walk([&](Operation *inner) {
            StringRef name = inner->getName().getStringRef();
            bool isIt = name.consume_front(needs->operation) &&
                        (needs->operation.ends_with(".") || name.empty() ||
                         name == "_backward" || name == "_jvp");
            return isIt ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted();
  }

  // Passes on functions have seen all of them when the module comes to an end.
  void runAfterPass(Pass *, Operation *op) override {
    if (op->getParentOp())
      return;
    for (auto [needs, isFound] : found) {
      if (isFound || isWarned)
        continue;
      isWarned = true;
      bool isDialect = needs->operation.ends_with(".");
      emitWarning(op->getLoc())
          << needs->pass << " has nothing to do: it looks for "
          << (isDialect ? "operations of " : "")
          << needs->operation.take_front(needs->operation.size() - isDialect)
          << ", and found none";
    }
    found.clear();
  }

private:
  llvm::MapVector<const RoomNeeds *, bool> found;
  bool isWarned = false;
};
} // namespace

std::unique_ptr<PassInstrumentation> attn::createWrongRoomWarning() {
  return std::make_unique<WrongRoomWarning>();
}
