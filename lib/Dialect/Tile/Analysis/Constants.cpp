//===- Constants.cpp - what values are known to be ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Tile/Analysis/MaskReader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn::tile;

std::optional<int64_t> attn::tile::getIntegerConstant(Value value) {
  APInt scalar;
  if (matchPattern(value, m_ConstantInt(&scalar)))
    return scalar.trySExtValue();
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
      isa<IntegerType, IndexType>(elements.getElementType()))
    return elements.getSplatValue<APInt>().trySExtValue();
  return std::nullopt;
}

bool attn::tile::isWholeNumber(Value value) {
  if (auto magnitude = value.getDefiningOp<math::AbsFOp>())
    value = magnitude.getOperand();
  return isa_and_present<arith::SIToFPOp, arith::UIToFPOp>(
      value.getDefiningOp());
}

attn::IntegerSizes attn::tile::getMaskIntegerSizes() {
  return IntegerSizes([](Value value) {
    value = ScoresOp::resolve(value);
    auto broadcast = value.getDefiningOp<vector::BroadcastOp>();
    bool isOfIntegers = broadcast && broadcast.getSourceType().isIntOrIndex();
    return isOfIntegers ? broadcast.getSource() : value;
  });
}
