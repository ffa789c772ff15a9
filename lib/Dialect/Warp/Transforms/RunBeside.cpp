//===- RunBeside.cpp - what idle warps do instead of a grid ---------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel with roles has all registers of a multiprocessor, so no other grid
// runs beside it: one that only writes zeros takes the time that memory takes,
// and then the kernel begins. But three of four warps of the role that copies
// are idle. They can do what the blocks of the grid before did, if these had
// one warp each and if nothing that one of the two writes concerns the other.
//
// The warps of all blocks share the grid's blocks out: warp w takes the blocks
// w, w + number of warps, …
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPRUNBESIDE
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// A role with idle warps in a kernel whose blocks stay; null if there is none.
static RoleOp findHost(KernelOp kernel) {
  if (kernel && kernel.getResident())
    for (RoleOp role : kernel.getRoles())
      if (role.getActiveWarps() < int64_t(role.getWarps()))
        return role;
  return {};
}

/// What needs the block as a whole, or its shared memory.
static bool needsBlock(KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        return isa<AllocOp, RingOp, MailboxOp, RoleOp, DrawOp, CopyOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult attn::warp::runBeside(RewriterBase &rewriter, KernelOp kernel,
                                    std::string &reason) {
  KernelOp next = kernel.getNextKernel();
  RoleOp role = findHost(next);
  if (!kernel.getIndependent())
    reason = "the kernel after it may need it";
  else if (kernel.getWarps() != 1 || needsBlock(kernel))
    reason = "its blocks are more than a warp";
  else if (!role)
    reason = "the kernel after it has no idle warps that stay";
  else
    reason.clear();
  if (!reason.empty())
    return failure();

  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = kernel.getLoc();
  // A block without a tile of its own has these now.
  for (auto exit :
       llvm::make_early_inc_range(next.getBodyBlock()->getOps<ExitIfOp>()))
    rewriter.eraseOp(exit);
  rewriter.setInsertionPointToStart(role.getBodyBlock());
  auto beside = BesideOp::create(rewriter, loc);
  Type index = rewriter.getIndexType();
  rewriter.createBlock(&beside.getBody(), {}, index, loc);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  };
  auto multiply = [&](Value lhs, Value rhs) -> Value {
    return arith::MulIOp::create(rewriter, loc, lhs, rhs);
  };
  Value numWarps = constant(beside.getNumWarps());
  Value first = arith::AddIOp::create(
      rewriter, loc, multiply(next.getBody().getArgument(0), numWarps),
      beside.getWarp());
  Value step = multiply(
      gpu::GridDimOp::create(rewriter, loc, gpu::Dimension::x), numWarps);
  Value sizeX = kernel.getGridX(), sizeY = kernel.getGridY();
  Value blocks = multiply(multiply(sizeX, sizeY), kernel.getGridZ());
  auto loop = scf::ForOp::create(rewriter, loc, first, blocks, step);
  YieldOp::create(rewriter, loc);

  rewriter.setInsertionPointToStart(loop.getBody());
  // Numbers of blocks are not negative.
  auto divide = [&](Value lhs, Value rhs) -> std::pair<Value, Value> {
    Value quotient = arith::DivUIOp::create(rewriter, loc, lhs, rhs);
    Value rest =
        arith::SubIOp::create(rewriter, loc, lhs, multiply(quotient, rhs));
    return {quotient, rest};
  };
  auto [row, x] = divide(loop.getInductionVar(), sizeX);
  auto [z, y] = divide(row, sizeY);
  rewriter.eraseOp(kernel.getBodyBlock()->getTerminator());
  rewriter.inlineBlockBefore(kernel.getBodyBlock(),
                             loop.getBody()->getTerminator(),
                             ValueRange{x, y, z});
  nestExits(rewriter, loop.getBody());
  rewriter.eraseOp(kernel);
  return success();
}

namespace {
struct WarpRunBeside final
    : attn::SchedulePass<attn::warp::impl::WarpRunBesideBase<WarpRunBeside>,
                         KernelOp, WarpForm::Deepened> {
  using Base::Base;

  bool isWanted(KernelOp kernel) override { return kernel.getIndependent(); }

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    if (failed(runBeside(rewriter, kernel, reason)))
      return missed(reason);
    passed();
  }
};
} // namespace
