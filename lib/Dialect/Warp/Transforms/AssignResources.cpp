//===- AssignResources.cpp - places in shared memory ----------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "llvm/Support/MathExtras.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPASSIGNRESOURCES
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

/// The swizzle counts banks from the start of a slot.
static constexpr int64_t slotAlignment = 128;

namespace {
/// A slot or ring: how many slots of which bytes.
struct Memory {
  Operation *op;
  int64_t depth, slotBytes;
};
} // namespace

static SmallVector<Memory> collectMemory(KernelOp kernel) {
  SmallVector<Memory> memory;
  for (Operation &op : *kernel.getBodyBlock()) {
    if (auto alloc = dyn_cast<AllocOp>(op))
      memory.push_back({&op, 1, alloc.getSlot().getType().getLayout().bytes()});
    else if (auto ring = dyn_cast<RingOp>(op))
      memory.push_back(
          {&op, ring.getRing().getType().getDepth(),
           ring.getRing().getType().getSlotType().getLayout().bytes()});
  }
  return memory;
}

static int64_t alignedBytes(const Memory &memory) {
  return llvm::alignTo(memory.depth * memory.slotBytes, slotAlignment);
}

/// "1 x 32768 + 2 x 16384 + 2 x 16384"
static std::string inWords(ArrayRef<Memory> memory) {
  std::string text;
  for (const Memory &part : memory)
    text += (text.empty() ? "" : " + ") + std::to_string(part.depth) + " x " +
            std::to_string(part.slotBytes);
  return text;
}

LogicalResult attn::warp::placeSharedMemory(KernelOp kernel, int64_t limit) {
  SmallVector<Memory> memory = collectMemory(kernel);
  int64_t bytes = 0;
  for (const Memory &part : memory)
    bytes += alignedBytes(part);
  if (bytes > limit)
    return kernel.emitOpError("needs ")
           << bytes << " bytes of shared memory (" << inWords(memory)
           << "), the target has " << limit;
  int64_t offset = 0;
  for (const Memory &part : memory) {
    if (auto alloc = dyn_cast<AllocOp>(part.op))
      alloc.setOffset(offset);
    else
      cast<RingOp>(part.op).setOffset(offset);
    offset += alignedBytes(part);
  }
  kernel.setSharedBytes(bytes);
  return success();
}

namespace {
struct WarpAssignResources final
    : attn::warp::impl::WarpAssignResourcesBase<WarpAssignResources> {
  using Base::Base;

  void runOnOperation() override {
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
