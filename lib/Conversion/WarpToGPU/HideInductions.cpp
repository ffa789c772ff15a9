//===- HideInductions.cpp - what LLVM shall not know of a loop ------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM's loop strength reduction would keep a running value for each address
// and each row count that depends on the number of an iteration. Recomputing
// them costs less than the registers. A number of unknown origin, new in each
// iteration, is no sequence.
//
//===----------------------------------------------------------------------===//

#include "Integers.h"

#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {
#define GEN_PASS_DEF_GPUHIDEINDUCTIONS
#include "attn/Conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using namespace attn::warp;

static void hideInduction(scf::ForOp loop) {
  Value number = loop.getInductionVar();
  if (!number.getType().isIndex() || number.use_empty())
    return;
  auto builder = OpBuilder::atBlockBegin(loop.getBody());
  Location loc = loop.getLoc();
  Value wide = Addresses(builder, loc).fromIndex(number);
  Value hidden = arith::IndexCastOp::create(builder, loc, number.getType(),
                                            hideOrigin(builder, loc, wide));
  number.replaceAllUsesExcept(hidden, wide.getDefiningOp());
}

namespace {
struct GPUHideInductions final
    : attn::impl::GPUHideInductionsBase<GPUHideInductions> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) { hideInduction(loop); });
  }
};
} // namespace
