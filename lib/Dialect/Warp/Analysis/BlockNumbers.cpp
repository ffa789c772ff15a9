//===- BlockNumbers.cpp - how large numbers of blocks are -----------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/Analysis/BlockNumbers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace attn;

static constexpr StringLiteral kMostAttrName = "most";

bool attn::warp::isCountOfPositions(memref::DimOp dim) {
  constexpr int64_t rank = 4;
  auto type = dyn_cast<MemRefType>(dim.getSource().getType());
  return type && type.getRank() == rank &&
         !ShapedType::isDynamic(type.getShape().back());
}

std::optional<int64_t> attn::warp::getMostBelow(Value size) {
  if (std::optional<int64_t> number = getConstantIntValue(size))
    return std::max<int64_t>(*number - 1, 0);
  Operation *op = size.getDefiningOp();
  int64_t divisor = 1;
  if (isa_and_nonnull<arith::CeilDivSIOp, arith::CeilDivUIOp>(op)) {
    divisor = getConstantIntValue(op->getOperand(1)).value_or(0);
    op = op->getOperand(0).getDefiningOp();
  }
  auto dim = dyn_cast_or_null<memref::DimOp>(op);
  if (!dim || !isCountOfPositions(dim) || divisor <= 0)
    return std::nullopt;
  return (maxPositions - 1) / divisor;
}

std::optional<int64_t> attn::warp::getMost(Operation *op) {
  auto most = op->getAttrOfType<IntegerAttr>(kMostAttrName);
  return most ? std::optional(most.getInt()) : std::nullopt;
}

void attn::warp::setMost(Operation *op, int64_t most) {
  op->setAttr(kMostAttrName, Builder(op).getI64IntegerAttr(most));
}

void attn::warp::dropMost(Operation *op) { op->removeAttr(kMostAttrName); }
