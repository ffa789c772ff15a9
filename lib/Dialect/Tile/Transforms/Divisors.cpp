//===- Divisors.cpp - what integers are divided by ------------------------===//
//
// Part of attn, an attention compiler.
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Divisors.h"

#include "attn/Dialect/Tile/Analysis/MaskReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

static std::optional<int64_t> inRange(std::optional<int64_t> divisor) {
  bool isOne = divisor && *divisor >= 1 && *divisor <= attn::tile::maxDivisor;
  return isOne ? divisor : std::nullopt;
}

std::optional<int64_t> attn::tile::getQuotientDivisor(Operation *op) {
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(op))
    return inRange(getIntegerConstant(op->getOperand(1)));
  if (!isa<arith::ShRSIOp, arith::ShRUIOp>(op))
    return std::nullopt;
  std::optional<int64_t> places = getIntegerConstant(op->getOperand(1));
  if (!places || *places < 0 || *places > 30)
    return std::nullopt;
  return int64_t(1) << *places;
}

std::optional<int64_t> attn::tile::getRemainderDivisor(Operation *op) {
  if (isa<arith::RemSIOp, arith::RemUIOp>(op))
    return inRange(getIntegerConstant(op->getOperand(1)));
  if (!isa<arith::AndIOp>(op) || op->getResult(0).getType().isInteger(1))
    return std::nullopt;
  std::optional<int64_t> bits = getIntegerConstant(op->getOperand(1));
  if (!bits || *bits <= 0 || !llvm::isPowerOf2_64(*bits + 1))
    return std::nullopt;
  return inRange(*bits + 1);
}
