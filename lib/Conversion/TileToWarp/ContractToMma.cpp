//===- ContractToMma.cpp - vector.contract to warp.mma --------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// The slot or operand fragment of a value of `placeSlots`.
static Value lookThroughCasts(Value value) {
  while (auto cast = value.getDefiningOp<UnrealizedConversionCastOp>())
    value = cast.getInputs().front();
  return value;
}

namespace {
/// vector.contract -> warp.mma; a left operand that was computed is rearranged
/// inside the lanes.
struct ContractToMma final : OpConversionPattern<vector::ContractionOp> {
  ContractToMma(const FragmentConverter &converter, MLIRContext *context,
                AtomChoice choice)
      : OpConversionPattern(converter, context), choice(choice) {}

  LogicalResult
  matchAndRewrite(vector::ContractionOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value a = lookThroughCasts(adaptor.getLhs());
    Value b = lookThroughCasts(adaptor.getRhs());
    auto slot = dyn_cast<warp::SlotType>(b.getType());
    if (!slot)
      return rewriter.notifyMatchFailure(op, "rhs is not in shared memory");
    auto frag = dyn_cast<warp::FragType>(a.getType());
    if (frag && frag.getKind() == warp::FragKind::Acc)
      a = warp::ConvertOp::create(
          rewriter, op.getLoc(),
          warp::FragType::get(getContext(), frag.getShape(),
                              frag.getElementType(), warp::FragKind::A,
                              frag.getWarps()),
          a);
    AffineMap rhsMap = op.getIndexingMapsArray()[1];
    bool transposeB = rhsMap.getResult(0) == rewriter.getAffineDimExpr(1);
    rewriter.replaceOpWithNewOp<warp::MmaOp>(
        op, adaptor.getAcc().getType(), choice.of(slot.getElementType()), a, b,
        adaptor.getAcc(), /*transpose_a=*/false, transposeB);
    return success();
  }

  AtomChoice choice;
};
} // namespace

void attn::populateContractPatterns(const FragmentConverter &converter,
                                    RewritePatternSet &patterns,
                                    AtomChoice choice) {
  patterns.add<ContractToMma>(converter, patterns.getContext(), choice);
}
