//===- StartEarly.cpp - kernels that start while others end ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel after the other costs some microseconds each time: gradients of
// short sequences are five to eight kernels of that length. A launch may say
// that its blocks wait themselves (PTX: griddepcontrol). Then they come while
// the kernel before runs, as soon as each of its blocks has begun.
//
// Kernels of which none touches what another one writes need not wait at all.
// They are a group: the first one starts early, the others beside it. A block
// of these still waits before it ends, for the kernel after the group waits
// only for the last one.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPSTARTEARLY
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

namespace {
/// The tensors and workspaces that a kernel reads, and those that it writes.
struct TouchedMemory {
  llvm::SmallDenseSet<Value> read, written;
  bool isKnown = true; // else it may touch any other, too
};
} // namespace

static TouchedMemory findTouchedMemory(KernelOp kernel) {
  TouchedMemory memory;
  kernel.walk([&](Operation *op) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    auto add = [&](Value value, bool isWritten) {
      if (!isa<BaseMemRefType>(value.getType()))
        return;
      while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
        value = view.getViewSource();
      (isWritten ? memory.written : memory.read).insert(value);
    };
    bool takesMemory =
        llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BaseMemRefType>);
    if (!effects) {
      memory.isKnown &= !takesMemory || isa<ViewLikeOpInterface>(op);
      return;
    }
    SmallVector<MemoryEffects::EffectInstance> instances;
    effects.getEffects(instances);
    for (const MemoryEffects::EffectInstance &effect : instances) {
      bool isRead = isa<MemoryEffects::Read>(effect.getEffect());
      if (Value value = effect.getValue())
        add(value, !isRead);
      else if (takesMemory)
        memory.isKnown = false;
    }
  });
  return memory;
}

static bool areDisjoint(const TouchedMemory &a, const TouchedMemory &b) {
  auto isUntouched = [](const TouchedMemory &writer,
                        const TouchedMemory &other) {
    return llvm::none_of(writer.written, [&](Value value) {
      return other.read.contains(value) || other.written.contains(value);
    });
  };
  return a.isKnown && b.isKnown && isUntouched(a, b) && isUntouched(b, a);
}

std::optional<Start> attn::warp::findStart(KernelOp kernel) {
  std::optional<TouchedMemory> memory;
  for (Operation *op = kernel->getPrevNode(); op; op = op->getPrevNode()) {
    auto before = dyn_cast<KernelOp>(op);
    if (!before)
      continue;
    if (!memory)
      memory = findTouchedMemory(kernel);
    if (!areDisjoint(*memory, findTouchedMemory(before)))
      return Start::Early;
    if (before.getStart() != Start::Beside)
      return Start::Beside;
  }
  return memory ? std::optional(Start::Beside) : std::nullopt;
}

namespace {
struct WarpStartEarly final
    : attn::SchedulePass<attn::warp::impl::WarpStartEarlyBase<WarpStartEarly>,
                         KernelOp, WarpForm::Deepened> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::optional<Start> start = findStart(kernel);
    if (!start)
      return;
    rewriter.modifyOpInPlace(kernel, [&] { kernel.setStart(start); });
    passed() << remark::metric("beside", int64_t(start == Start::Beside));
  }
};
} // namespace
