//===- Persist.cpp - blocks that take one tile after the other -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel with roles has a multiprocessor for itself. If its blocks end, the
// next one starts with an empty pipeline; if instead as many blocks as there
// are multiprocessors stay and take tile t, t + number of blocks, …, the
// producer loads the next tile's operands while the last one's results leave.
//
// The body of the kernel goes into a loop over tiles; the numbers that the
// block had come from the tile's number, the first one varying fastest.
//
// Handing out tiles in advance pays only if they take equally long. Where the
// bounds of a loop depend on the block's numbers (a causal mask) the kernel
// stays as it is, and the hardware gives the next tile to who is free.
//
//===----------------------------------------------------------------------===//

#include "CopiedTiles.h"
#include "ProducerSlice.h"

#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Remarks.h"

#include <array>

namespace attn::warp {
#define GEN_PASS_DEF_WARPPERSIST
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

/// Whether a value is computed from the block's numbers.
static bool dependsOnBlock(KernelOp kernel, Value value) {
  SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (owner == kernel)
        return true;
      if (kernel->isAncestor(owner))
        values.insert(owner->operand_begin(), owner->operand_end());
      continue;
    }
    Operation *op = values[i].getDefiningOp();
    if (kernel->isAncestor(op))
      op->walk([&](Operation *inner) {
        values.insert(inner->operand_begin(), inner->operand_end());
      });
  }
  return false;
}

static bool isBalanced(KernelOp kernel) {
  WalkResult walk = kernel.walk([&](scf::ForOp loop) {
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound()})
      if (dependsOnBlock(kernel, bound))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return !walk.wasInterrupted();
}

/// value = quotient * divisor + remainder, of numbers that are not negative.
static std::pair<Value, Value> divide(OpBuilder &b, Location loc, Value value,
                                      Value divisor) {
  Value quotient = b.createOrFold<arith::DivUIOp>(loc, value, divisor);
  Value below = b.createOrFold<arith::MulIOp>(loc, quotient, divisor);
  return {quotient, b.createOrFold<arith::SubIOp>(loc, value, below)};
}

LogicalResult attn::warp::persistBlocks(RewriterBase &rewriter, KernelOp kernel,
                                        std::string &reason) {
  Block *body = kernel.getBodyBlock();
  if (kernel.hasRoles() || !body->getOps<RingOp>().empty() ||
      kernel.getResident()) {
    reason = "the kernel has rings already, or a loop over tiles";
    return failure();
  }
  // Without a producer nothing would run ahead of the loop.
  if (failed(matchCopiedTiles(kernel, reason)) ||
      failed(ProducerSlice(kernel).compute(reason)))
    return failure();
  if (!isBalanced(kernel)) {
    reason = "some blocks have more to do than others";
    return failure();
  }
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = kernel.getLoc();
  SmallVector<Operation *> moved;
  for (Operation &op : body->without_terminator())
    if (!isa<AllocOp>(op))
      moved.push_back(&op);

  rewriter.setInsertionPoint(kernel);
  Value nx = kernel.getGridX(), ny = kernel.getGridY(), nz = kernel.getGridZ();
  Value tiles = rewriter.createOrFold<arith::MulIOp>(loc, nx, ny);
  tiles = rewriter.createOrFold<arith::MulIOp>(loc, tiles, nz);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);

  rewriter.setInsertionPoint(body->getTerminator());
  Value blocks = gpu::GridDimOp::create(rewriter, loc, gpu::Dimension::x);
  auto loop =
      scf::ForOp::create(rewriter, loc, body->getArgument(0), tiles, blocks);
  rewriter.setInsertionPointToStart(loop.getBody());
  auto [outer, x] = divide(rewriter, loc, loop.getInductionVar(), nx);
  auto [z, y] = divide(rewriter, loc, outer, ny);
  for (Operation *op : moved)
    rewriter.moveOpBefore(op, loop.getBody()->getTerminator());
  const std::array numbers = {x, y, z};
  for (auto [argument, number] : llvm::zip_equal(body->getArguments(), numbers))
    rewriter.replaceUsesWithIf(argument, number, [&](OpOperand &use) {
      return loop->isProperAncestor(use.getOwner());
    });
  rewriter.modifyOpInPlace(kernel, [&] {
    kernel.getGridXMutable().assign(tiles);
    kernel.getGridYMutable().assign(one);
    kernel.getGridZMutable().assign(one);
    kernel.setResident(true);
  });
  return success();
}

namespace {
struct WarpPersist final : attn::warp::impl::WarpPersistBase<WarpPersist> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation().walk([&](KernelOp kernel) {
      std::string reason;
      if (failed(persistBlocks(rewriter, kernel, reason)))
        remark::missed(
            kernel.getLoc(),
            remark::RemarkOpts::name("Persist").category("warp-persist"))
            << reason;
    });
  }
};
} // namespace
