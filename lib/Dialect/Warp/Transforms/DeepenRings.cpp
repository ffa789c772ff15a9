//===- DeepenRings.cpp - a second slot where memory is left ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The queries have a ring of one slot: in a tile they are loaded once. In a
// resident kernel that slot is refilled for the next tile, at the earliest when
// the last consumer has read it, and the consumer that is ahead waits for the
// memory's latency between two tiles. With a second slot the next queries are
// there before they are asked for.
//
// It takes what is left of shared memory, so it runs after whatever else uses
// that, and what it does not find it does without. But a ring that each step
// refills (of gradients with wide heads, of which there is room for one slot of
// some) comes before memory for stores, which a tile needs once.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPDEEPENRINGS
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

bool attn::warp::addSecondSlot(RewriterBase &rewriter, RingOp ring,
                               int64_t limit, std::string &reason) {
  // Items are counted, so a ring's depth is a matter of its type alone.
  RingType type = ring.getRing().getType();
  auto deeper = RingType::get(type.getContext(), 2, type.getShape(),
                              type.getElementType(), type.getPanelBytes());
  auto setType = [&](RingType wanted) {
    rewriter.modifyOpInPlace(ring, [&] { ring.getRing().setType(wanted); });
  };
  setType(deeper);
  int64_t bytes = getSharedBytesUsed(ring->getParentOfType<KernelOp>());
  if (bytes <= limit)
    return true;
  setType(type);
  reason = "a second slot would make it " + std::to_string(bytes) +
           " bytes of shared memory of " + std::to_string(limit);
  return false;
}

/// Whether each step of a loop copies a tile to the ring.
static bool isOfSteps(RingOp ring) {
  return llvm::any_of(ring.getRing().getUsers(), [](Operation *user) {
    return isa<CopyAsyncOp>(user) && isa<scf::ForOp>(user->getParentOp());
  });
}

int64_t attn::warp::deepenRings(RewriterBase &rewriter, KernelOp kernel,
                                int64_t limit, bool isForSteps,
                                std::string &reason) {
  int64_t numDeepened = 0;
  bool refills = kernel.hasRoles() && (isForSteps || kernel.getResident());
  for (RingOp ring : kernel.getBodyBlock()->getOps<RingOp>()) {
    if (refills && ring.getRing().getType().getDepth() == 1 &&
        (!isForSteps || isOfSteps(ring)))
      numDeepened += addSecondSlot(rewriter, ring, limit, reason);
  }
  if (numDeepened == 0 && reason.empty())
    reason = isForSteps ? "no step refills a ring of one slot"
                        : "no loop over tiles refills a ring of one slot";
  return numDeepened;
}

namespace {
struct WarpDeepenRings final
    : attn::SchedulePass<attn::warp::impl::WarpDeepenRingsBase<WarpDeepenRings>,
                         KernelOp, WarpForm::Deepened> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("rings", deepenRings(rewriter, kernel, sharedLimit, steps, reason),
           reason);
  }
};
} // namespace
