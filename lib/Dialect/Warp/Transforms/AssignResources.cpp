//===- AssignResources.cpp - places in shared memory ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "llvm/Support/MathExtras.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPASSIGNRESOURCES
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

namespace {
/// A slot or ring: how many slots of which type.
struct Memory {
  Operation *op;
  int64_t depth;
  SlotType slot;

  int64_t slotBytes() const { return slot.getLayout().bytes(); }
  int64_t alignment() const { return slot.getLayout().alignment(); }
};
} // namespace

static SmallVector<Memory> collectMemory(KernelOp kernel) {
  SmallVector<Memory> memory;
  for (Operation &op : *kernel.getBodyBlock()) {
    if (auto alloc = dyn_cast<AllocOp>(op))
      memory.push_back({&op, 1, alloc.getSlot().getType()});
    else if (auto ring = dyn_cast<RingOp>(op))
      memory.push_back({&op, ring.getRing().getType().getDepth(),
                        ring.getRing().getType().getSlotType()});
  }
  return memory;
}

/// "1 x 32768 + 2 x 16384 + 2 x 16384"
static std::string inWords(ArrayRef<Memory> memory) {
  std::string text;
  for (const Memory &part : memory)
    text += (text.empty() ? "" : " + ") + std::to_string(part.depth) + " x " +
            std::to_string(part.slotBytes());
  return text;
}

int64_t attn::warp::getSharedBytesUsed(KernelOp kernel) {
  int64_t bytes = kernel.getBarrierBytes();
  for (const Memory &part : collectMemory(kernel))
    bytes += llvm::alignTo(part.depth * part.slotBytes(), part.alignment());
  return bytes;
}

LogicalResult attn::warp::placeSharedMemory(KernelOp kernel, int64_t limit) {
  SmallVector<Memory> memory = collectMemory(kernel);
  int64_t bytes = 0, barriers = kernel.getBarrierBytes();
  SmallVector<int64_t> offsets;
  for (const Memory &part : memory) {
    offsets.push_back(llvm::alignTo(bytes, part.alignment()));
    bytes = llvm::alignTo(offsets.back() + part.depth * part.slotBytes(),
                          layout::SharedTile().alignment());
  }
  bytes += barriers;
  if (bytes > limit)
    return kernel.emitOpError("needs ")
           << bytes << " bytes of shared memory (" << inWords(memory)
           << (barriers != 0 ? " + barriers" : "") << "), the target has "
           << limit;
  for (auto [part, offset] : llvm::zip_equal(memory, offsets)) {
    if (auto alloc = dyn_cast<AllocOp>(part.op))
      alloc.setOffset(offset);
    else
      cast<RingOp>(part.op).setOffset(offset);
  }
  kernel.setSharedBytes(bytes);
  return success();
}

namespace {
struct WarpAssignResources final
    : attn::warp::impl::WarpAssignResourcesBase<WarpAssignResources> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireForm(getOperation(), WarpForm::Deepened, getArgument())))
      return signalPassFailure();
    WalkResult walk = getOperation().walk([&](KernelOp kernel) {
      return failed(placeSharedMemory(kernel, sharedLimit))
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
