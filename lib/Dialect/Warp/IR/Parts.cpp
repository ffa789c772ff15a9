//===- Parts.cpp - key blocks that a warpgroup passes over ------*- C++ -*-===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Warp/IR/Parts.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn::warp;

LogicalResult PartRowOp::verify() {
  if (getRows() < 1) // C1
    return emitOpError("is of ") << getRows() << " rows, expected at least 1";
  return success();
}

std::optional<PassedBlocks> attn::warp::getPassedBlocks(scf::ForOp loop) {
  auto lower = loop.getUpperBound().getDefiningOp<NarrowOp>();
  if (lower && loop.getUpperBound() == lower.getFirst() &&
      isEqualConstantIntOrValue(loop.getLowerBound(), lower.getLo()))
    return PassedBlocks{lower, PassedEnd::Lower};
  auto upper = loop.getLowerBound().getDefiningOp<NarrowOp>();
  if (upper && loop.getLowerBound() == upper.getEnd() &&
      isEqualConstantIntOrValue(loop.getUpperBound(), upper.getHi()))
    return PassedBlocks{upper, PassedEnd::Upper};
  return std::nullopt;
}
