//===- AttnOps.cpp - operations of the attn dialect -*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

#include "mlir/IR/Builders.h"

#include <cmath>

using namespace mlir;
using namespace attn;

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"

bool AttentionOp::isScalar(Type type) {
  return type.isSignlessInteger(1) || type.isSignlessInteger(8) ||
         type.isSignlessInteger(16) || type.isSignlessInteger(32) ||
         type.isSignlessInteger(64) || type.isF16() || type.isBF16() ||
         type.isF32();
}

int64_t AttentionOp::getHeadDim() {
  return getQuery().getType().getDimSize(kDim);
}

int64_t AttentionOp::getValueHeadDim() {
  return getValue().getType().getDimSize(kDim);
}

double AttentionOp::getScaleValue() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToDouble();
  return 1.0 / std::sqrt(static_cast<double>(getHeadDim()));
}

FloatType AttentionOp::getElementType() {
  return cast<FloatType>(getQuery().getType().getElementType());
}

NumericsAttr AttentionOp::getNumericsOrDefault() {
  if (NumericsAttr numerics = getNumericsAttr())
    return numerics;
  return NumericsAttr::get(getContext(), /*fast_math=*/true,
                           /*deterministic=*/true);
}

LogicalResult CaptureLoadOp::verify() {
  RankedTensorType type = getBuffer().getType();
  if (static_cast<int64_t>(getIndices().size()) == type.getRank())
    return success();
  return emitOpError("reads a tensor of rank ")
         << type.getRank() << " and wants as many indices, got "
         << getIndices().size();
}
