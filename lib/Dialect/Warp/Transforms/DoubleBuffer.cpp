//===- DoubleBuffer.cpp - weights in two sets of registers ----*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that carries the left operand of a product (the weights of the block
// before, from `tile-rotate`) makes the next one while the product reads the
// last. If both are the same carried value they are the same registers, so the
// product has to end first. Two steps in one body have two values: the first
// step reads the carried one and makes the second, the second step reads that
// and makes the carried one. Nothing is copied from set to set, and
// `warp-make-async` may leave the product in flight while its successor's
// operand is made.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Transforms/Passes.h"
#include "attn/Dialect/Warp/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/IR/Remarks.h"

namespace attn::warp {
#define GEN_PASS_DEF_WARPDOUBLEBUFFER
#include "attn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace attn::warp

using namespace mlir;
using namespace attn::warp;

/// Whether a product of the body reads a carried value, in registers, while
/// others can run beside it.
static bool carriesOperand(scf::ForOp loop) {
  return llvm::any_of(loop.getBody()->getOps<MmaOp>(), [&](MmaOp mma) {
    Value left = mma.getA();
    if (auto convert = left.getDefiningOp<ConvertOp>())
      left = convert.getValue();
    return mma.getB().getType().hasPanels() && isa<FragType>(left.getType()) &&
           llvm::is_contained(loop.getRegionIterArgs(), left);
  });
}

FailureOr<int64_t> attn::warp::doubleBufferOperands(KernelOp kernel,
                                                    std::string &reason) {
  if (kernel.hasRoles()) {
    reason = "the kernel has roles already, whose loops must stay alike";
    return failure();
  }
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (carriesOperand(loop))
      loops.push_back(loop);
  });
  int64_t numLoops = 0;
  for (scf::ForOp loop : loops)
    numLoops += succeeded(loopUnrollByFactor(loop, /*unrollFactor=*/2));
  if (numLoops == 0) {
    reason = "no loop carries an operand of a product in registers";
    return failure();
  }
  return numLoops;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct WarpDoubleBuffer final
    : attn::warp::impl::WarpDoubleBufferBase<WarpDoubleBuffer> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([&](KernelOp kernel) {
      auto opts = remark::RemarkOpts::name("DoubleBuffer")
                      .category("warp-double-buffer");
      std::string reason;
      FailureOr<int64_t> loops = doubleBufferOperands(kernel, reason);
      if (failed(loops))
        remark::missed(kernel.getLoc(), opts) << reason;
      else
        remark::passed(kernel.getLoc(), opts)
            << remark::metric("loops", *loops);
    });
  }
};
} // namespace
