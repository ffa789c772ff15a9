//===- OrderTiles.cpp - longest tiles of a grid first ---------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU begins the blocks of a grid in the order of x, y, z. With query blocks
// as x, each head ends with its shortest tiles and the next one begins with its
// longest: what begins last is as long as what began first, and the kernel ends
// with few multiprocessors at work. In groups of heads with x slowest, as
// `warp-persist` draws them, the last group ends with short tiles.
//
//===----------------------------------------------------------------------===//

#include "TileOrder.h"

#include "attn/Dialect/Warp/Analysis/WarpForms.h"
#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "attn/Support/SchedulePass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPORDERTILES
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn;
using namespace attn::warp;

FailureOr<int64_t> attn::warp::orderTiles(RewriterBase &rewriter,
                                          KernelOp kernel,
                                          std::string &reason) {
  if (kernel.getScheduler() == Scheduler::Grid)
    reason = "the plan leaves the tiles to the grid";
  else if (isOneInteger(kernel.getGridX()) ||
           (isOneInteger(kernel.getGridY()) && isOneInteger(kernel.getGridZ())))
    reason = "the grid has no order but one";
  else
    reason.clear();
  if (!reason.empty())
    return failure();

  OpBuilder::InsertionGuard guard(rewriter);
  Block *body = kernel.getBodyBlock();
  rewriter.setInsertionPoint(kernel);
  TileOrder order(rewriter, kernel, {});
  Value tiles = order.countTiles();
  Value one = arith::ConstantIndexOp::create(rewriter, kernel.getLoc(), 1);
  rewriter.setInsertionPointToStart(body);
  Operation *first = &body->front();
  int64_t heads = order.takeGroups();
  TileOrder::Numbers numbers =
      order.decodeInGroups(order.toInt(body->getArgument(0)));
  for (auto [number, argument] : llvm::zip_equal(numbers, body->getArguments()))
    rewriter.replaceUsesWithIf(argument, number, [&](OpOperand &use) {
      Operation *user = body->findAncestorOpInBlock(*use.getOwner());
      return user == first || first->isBeforeInBlock(user);
    });
  rewriter.modifyOpInPlace(kernel, [&] {
    kernel.getGridXMutable().assign(tiles);
    kernel.getGridYMutable().assign(one);
    kernel.getGridZMutable().assign(one);
  });
  return heads;
}

namespace {
struct WarpOrderTiles final
    : attn::SchedulePass<attn::warp::impl::WarpOrderTilesBase<WarpOrderTiles>,
                         KernelOp, WarpForm::Resident> {
  using Base::Base;

  // A loop over tiles has its own order. Blocks that copy no tiles (sums of
  // parts, lists of blocks) are short.
  bool isWanted(KernelOp kernel) override {
    bool copies = kernel.walk([](CopyOp) { return WalkResult::interrupt(); })
                      .wasInterrupted();
    return copies && !kernel.getResident() && !hasEvenTiles(kernel);
  }

  void transform(RewriterBase &rewriter, KernelOp kernel) override {
    std::string reason;
    FailureOr<int64_t> heads = orderTiles(rewriter, kernel, reason);
    if (failed(heads))
      return missed(reason);
    passed() << remark::metric("heads_at_a_time", *heads);
  }
};
} // namespace
