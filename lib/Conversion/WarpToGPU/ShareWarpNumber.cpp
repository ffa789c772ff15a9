//===- ShareWarpNumber.cpp - the number of the warp, once for a kernel ----===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All lanes have the same number of the warp, and so that ptxas knows it, they
// get it by a shuffle (`Integers::blockWarp`): from lane 0, thread / 32. Many
// operations ask for it, and nobody dares to move a shuffle. Here it is told by
// all of its operands: whatever shuffle has these gives the number of the warp,
// whoever wrote it.
//
//===----------------------------------------------------------------------===//

#include "Integers.h"

#include "attn/Conversion/Passes.h"
#include "attn/Layout/Fragments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace attn {
#define GEN_PASS_DEF_GPUSHAREWARPNUMBER
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::warp;

/// The number of the thread in a block of one dimension.
static bool isThread(Value value) {
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  auto thread = value.getDefiningOp<gpu::ThreadIdOp>();
  return thread && thread.getDimension() == gpu::Dimension::x;
}

/// thread / 32, of lane 0, for all lanes.
static bool isWarpNumber(NVVM::ShflOp shuffle) {
  auto divide = shuffle.getVal().getDefiningOp<arith::DivUIOp>();
  return divide && isThread(divide.getLhs()) &&
         isConstantIntValue(divide.getRhs(), layout::warpSize) &&
         shuffle.getKind() == NVVM::ShflKind::idx &&
         !shuffle.getReturnValueAndIsValid() &&
         isConstantIntValue(shuffle.getThreadMask(), -1) &&
         isConstantIntValue(shuffle.getOffset(), 0) &&
         isConstantIntValue(shuffle.getMaskAndClamp(), layout::warpSize - 1);
}

static void shareWarpNumber(gpu::GPUFuncOp function) {
  SmallVector<NVVM::ShflOp> shuffles;
  function.walk([&](NVVM::ShflOp shuffle) {
    if (isWarpNumber(shuffle))
      shuffles.push_back(shuffle);
  });
  if (shuffles.size() < 2)
    return;
  auto builder = OpBuilder::atBlockBegin(&function.getBody().front());
  Value shared = Integers(builder, shuffles.front().getLoc()).blockWarp();
  for (NVVM::ShflOp shuffle : shuffles) {
    shuffle.replaceAllUsesWith(shared);
    shuffle.erase();
  }
}

namespace {
struct GPUShareWarpNumber final
    : attn::impl::GPUShareWarpNumberBase<GPUShareWarpNumber> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<gpu::GPUFuncOp>())
      shareWarpNumber(function);
  }
};
} // namespace
