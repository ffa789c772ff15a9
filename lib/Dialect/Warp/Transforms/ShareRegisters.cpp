//===- ShareRegisters.cpp - registers for producers that need many -------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The producer knows where each interval of key blocks begins, as long as its
// loops run; with many intervals these are more numbers than it has registers.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/RoleRegisters.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPSHAREREGISTERS
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

/// Adds the numbers that `loop` uses and does not compute.
static void addNumbersBefore(Operation *loop, SetVector<Value> &numbers) {
  loop->walk([&](Operation *op) {
    for (Value value : op->getOperands())
      if (value.getType().isIntOrIndex() &&
          !matchPattern(value, m_Constant()) &&
          !loop->isAncestor(value.getParentRegion()->getParentOp()))
        numbers.insert(value);
  });
}

/// About how many registers the loops of a producer need: for numbers that are
/// known before the loops over key blocks and used there, or known before the
/// loop over tiles.
static int64_t countNeeded(RoleOp producer) {
  constexpr int64_t others = 16; // addresses, parities, what a copy takes
  int64_t most = 0;
  producer.walk([&](scf::ForOp loop) {
    SetVector<Value> numbers;
    addNumbersBefore(loop, numbers);
    for (Operation *outer = loop->getParentOp(); outer != producer;
         outer = outer->getParentOp())
      if (isa<LoopLikeOpInterface>(outer))
        addNumbersBefore(outer, numbers);
    most = std::max<int64_t>(most, numbers.size());
  });
  return most + others;
}

/// The registers of a lane that hold a fragment.
static int64_t countRegisters(Type type) {
  auto fragment = dyn_cast<FragType>(type);
  if (!fragment)
    return 0;
  constexpr int64_t registerBits = 32;
  return fragment.getNumElements() *
         fragment.getElementType().getIntOrFloatBitWidth() /
         (fragment.getWarps() * attn::layout::warpSize * registerBits);
}

/// What a lane of a consumer cannot do without: its products, and for masks and
/// functions of scores.
static int64_t countNeededByConsumer(RoleOp consumer) {
  constexpr int64_t others = 48;
  int64_t most = 0;
  consumer.walk([&](Block *block) {
    int64_t registers = 0;
    for (auto mma : block->getOps<MmaOp>())
      registers += countRegisters(mma.getAcc().getType()) +
                   countRegisters(mma.getA().getType());
    most = std::max(most, registers);
  });
  return most + others;
}

int64_t attn::warp::spareForProducer(RewriterBase &rewriter, KernelOp kernel,
                                     std::string &reason) {
  RoleOp producer, consumer;
  for (RoleOp role : kernel.getRoles())
    (role.getKind() == RoleKind::Copy ? producer : consumer) = role;
  if (kernel.getRegisters() || !producer || !consumer ||
      kernel.getRoles().size() != 2) {
    reason = "the plan says how many registers the consumer has, or there is "
             "none beside a producer";
    return 0;
  }
  int64_t needed = countNeeded(producer);
  int64_t least = countNeededByConsumer(consumer);
  int64_t warps = consumer.getWarps();
  constexpr int64_t step = 8;
  int64_t blocks = kernel.getBlocksPerSM().value_or(1);
  attn::RoleRegisters before = attn::shareRegisters(warps, 0, blocks),
                      shares = before;
  // What every producer does with, also one that has less.
  constexpr int64_t usual = 40;
  while (needed > usual && shares.producer < needed &&
         shares.consumer - step >= least)
    shares = attn::shareRegisters(warps, shares.consumer - step, blocks);
  if (shares.producer == before.producer) {
    reason = "the producer has what it needs, or the consumer nothing to spare";
    return 0;
  }
  rewriter.modifyOpInPlace(producer,
                           [&] { producer.setRegisters(shares.producer); });
  rewriter.modifyOpInPlace(consumer,
                           [&] { consumer.setRegisters(shares.consumer); });
  return shares.producer - before.producer;
}

namespace {
struct WarpShareRegisters final
    : attn::SchedulePass<
          attn::warp::impl::WarpShareRegistersBase<WarpShareRegisters>,
          KernelOp, WarpForm::Roles> {
  using Base::Base;

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    report("registers", spareForProducer(rewriter, kernel, reason), reason);
  }
};
} // namespace
